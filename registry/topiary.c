/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd.h"

static const struct command {
	const char *name, *help;
	int (*run)(struct cmd *c, int argc, char **argv, struct err *e);
} commands[] = {
	{ "nodes", "List the nodes that the registry knows", cmd_nodes },
	{ "shapes", "List the kinds of node", cmd_shapes },
	{ "show", "Show one node: a summary, its XML, its shape or a drawing", cmd_show },
	{ "history", "Tell what a node exported, and when it changed", cmd_history },
	{ "facts", "Look up serial numbers, addresses, memory, kernels", cmd_facts },
	{ "diff", "Compare two nodes, two times of a node, or two files", cmd_diff },
	{ "drift", "List the nodes that are not what their class is", cmd_drift },
	{ "verify", "Check a node against its class: an exit status for a health check", cmd_verify },
	{ "accept", "Take a node as it is for what its class shall be", cmd_accept },
	{ "shape", "Tell the synthetic strings of XML files, off line", cmd_shape },
	{ "pack", "Pack XML files as the registry would, off line", cmd_pack },
	{ "snapshot", "Write the snapshot that slurmctld reads", cmd_snapshot },
	{ "matrix", "Read, add up, convert or make communication matrices", cmd_matrix },
	{ "fabric", "Show, draw, keep or compare a fabric, write it for others", cmd_fabric },
	{ "map", "Map the ranks of a job to its cores: a rank file", cmd_map },
	{ "why", "Tell why a job has its cores, or why it waits", cmd_why },
	{ "replay", "Replay former jobs under other policies, off line", cmd_replay },
};

#define COUNT (sizeof(commands) / sizeof(commands[0]))

static int usage(FILE *out)
{
	fputs("Usage: topiary COMMAND [OPTION...]\n\n", out);
	for (size_t i = 0; i < COUNT; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
	fputs("\n`topiary COMMAND --help` lists the options of one; `topiary --version` tells the version.\n", out);
	return out == stdout ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct cmd c = {0};
	struct err e = {""};
	char name[32];
	int rc;

	snprintf(name, sizeof(name), "topiary %s", command->name);
	argv[0] = name;
	rc = command->run(&c, argc, argv, &e);
	settings_free(&c.settings);
	if (rc)
		log_error("%s: %s", command->name, e.text);
	return rc && !c.status ? EXIT_FAILURE : c.status;
}

int main(int argc, char **argv)
{
	log_open("topiary");
	if (argc < 2)
		return usage(stderr);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?"))
		return usage(stdout);
	if (!strcmp(argv[1], "--version"))
		return puts("topiary " TOPIARY_VERSION) == EOF ? EXIT_FAILURE : EXIT_SUCCESS;
	for (size_t i = 0; i < COUNT; i++)
		if (!strcmp(argv[1], commands[i].name))
			return run(&commands[i], argc - 1, argv + 1);
	log_error("there is no command '%s'; `topiary --help` lists them", argv[1]);
	return EXIT_FAILURE;
}
