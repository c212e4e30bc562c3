/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio_ext.h>
#include <sysexits.h>

#include "base/log.h"
#include "cmd.h"

static const struct command {
	const char *name, *help;
	cmd_fn *run;		/* NULL: not in this program */
} commands[] = {
	{ "nodes", "List the nodes in the registry", cmd_nodes },
	{ "shapes", "List the shapes of nodes", cmd_shapes },
	{ "show", "Show one node: a summary, its XML, its shape or a drawing", cmd_show },
	{ "history", "List a node's exports and what changed in each", cmd_history },
	{ "facts", "Look up serial numbers, addresses, memory, kernels", cmd_facts },
	{ "diff", "Compare two nodes, two times of a node, or two files", cmd_diff },
	{ "drift", "List nodes that have drifted from their class", cmd_drift },
	{ "verify", "Check a node against its class, for a health check", cmd_verify },
	{ "accept", "Accept a node's current state as the baseline of its class", cmd_accept },
	{ "forget", "Remove decommissioned nodes from the registry", cmd_forget },
	{ "fsck", "Check that every stored document can be rebuilt", cmd_fsck },
	{ "shape", "Print synthetic strings of XML files, offline", cmd_shape },
	{ "pack", "Encode XML files as the registry would, offline", cmd_pack },
	{ "snapshot", "Write the snapshot for slurmctld", cmd_snapshot },
	{ "matrix", "Read, add up, convert or generate communication matrices", cmd_matrix },
	{ "fabric", "Show, draw, convert, import or compare a network fabric", cmd_fabric },
	{ "map", "Map a job's ranks to its cores and write a rank file", cmd_map },
	{ "reorder", "Order the ranks of a communicator, for libtopiary-reorder", cmd_reorder },
	{ "why", "Explain what a job has and cost, or why it waits", cmd_why },
	{ "whatif", "Say when and where a job would start, without submitting it", cmd_whatif },
	{ "fragmentation", "Count and draw what of the cluster is wholly free", cmd_fragmentation },
	{ "bind", "Run a rank of torchrun, Ray or mpirun near its GPU, memory and NIC", cmd_bind },
	{ "audit", "Report how the running jobs of a cluster are placed on its hardware", cmd_audit },
	{ "observed", "Report how Topiary would have placed the jobs that TopoMode=observe saw", cmd_observed },
	{ "replay", "Replay past jobs under other policies, offline", cmd_replay },
	{ "record", "Record what a command does on each PU, by level of the hardware", cmd_record },
	{ "top", "Show what a command or process does on the hardware tree, live", cmd_top },
	{ "trace", "Summarize or export what was recorded of a node's hardware, offline", cmd_trace },
	{ "advise", "Find what in the placement of a job cost it time", cmd_advise },
	{ "memory", "Show on which NUMA nodes the memory of a job's ranks is", cmd_memory },
	{ "move", "Move the memory of a running job to other NUMA nodes", cmd_move },
	{ "bench", "Measure memory and caches of this node", cmd_bench },
	{ "enable", "Add Topiary to slurm.conf and plugstack.conf", cmd_enable },
	{ "disable", "Remove Topiary from slurm.conf and plugstack.conf", cmd_disable },
	{ "doctor", "Check this host's part of the installation", cmd_doctor },
};

#define COUNT (sizeof(commands) / sizeof(commands[0]))

static int usage(FILE *out)
{
	fputs("Usage: topiary COMMAND [OPTION...]\n\n", out);
	for (size_t i = 0; i < COUNT; i++)
		if (commands[i].run)
			fprintf(out, "  %-13s %s\n", commands[i].name, commands[i].help);
	fputs("\nUse `topiary COMMAND --help` for the options of a command and `topiary --version` for the version.\n",
	      out);
	return out == stdout ? EXIT_SUCCESS : EX_USAGE;
}

/* At the end of each command that reports no error: its output was written whole, or that is one. */
static void check_output(int status, void *)
{
	bool is_used = __fpending(stdout), has_failed = ferror(stdout), is_closed = fclose(stdout) == 0;

	if (status || (!has_failed && (is_closed || (!is_used && errno == EBADF))))
		return;
	log_error("standard output: %s", is_closed ? "a part could not be written" : strerror(errno));
	_exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	struct cmd c = {0};
	struct err e = {""};
	char name[32];
	int at, rc;

	log_open("topiary");
	on_exit(check_output, NULL);
	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?")))
		return usage(stdout);
	if (argc > 1 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")))
		return puts("topiary " TOPIARY_VERSION) == EOF ? EXIT_FAILURE : EXIT_SUCCESS;
	if ((at = cmd_parse_common(&c, argc, argv)) == argc)
		return usage(stderr);
	for (size_t i = 0; i < COUNT; i++)
		if (commands[i].run && !strcmp(argv[at], commands[i].name)) {
			snprintf(name, sizeof(name), "topiary %s", commands[i].name);
			argv[at] = name;
			rc = commands[i].run(&c, argc - at, argv + at, &e);
			settings_free(&c.settings);
			if (rc) {
				err_within(&e, "%s", commands[i].name);
				log_error("%s", e.text);
			}
			return rc && !c.status ? EXIT_FAILURE : c.status;
		}
	log_error("unknown command '%s'; see `topiary --help`", argv[at]);
	return EX_USAGE;
}
