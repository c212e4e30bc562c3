/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <getopt.h>

#include "base/child.h"
#include "launch.h"

/*
 * srun's options from 22.05 to 26.05 (src/common/slurm_opt.c). LEAVE: changes the number of tasks, their place or the
 * step's resources, so that srun does not follow the rank map; SAME: likewise, unless the value is the job's own;
 * KEEP: has no such effect; REFUSED: srun ends with an error where it is given beside SLURM_HOSTFILE.
 */
enum kind { KEEP, LEAVE, SAME, EXPORT, REFUSED };

enum { NONE = no_argument, REQUIRED = required_argument, OPTIONAL = optional_argument };

static const struct row {
	const char *name;
	char letter;
	int argument;
	enum kind kind;
} rows[] = {
	{ "export", 0, REQUIRED, EXPORT },
	{ "cluster", 0, REQUIRED, LEAVE }, { "cluster-constraint", 0, REQUIRED, LEAVE },
		{ "clusters", 'M', REQUIRED, LEAVE },
	{ "constraint", 'C', REQUIRED, LEAVE }, { "contiguous", 0, NONE, LEAVE }, { "core-spec", 'S', REQUIRED, LEAVE },
	{ "cores-per-socket", 0, REQUIRED, LEAVE }, { "cpus-per-gpu", 0, REQUIRED, LEAVE },
	{ "cpus-per-task", 'c', REQUIRED, SAME }, { "distribution", 'm', REQUIRED, LEAVE },
		{ "exclude", 'x', REQUIRED, LEAVE },
	{ "external-launcher", 0, OPTIONAL, LEAVE }, { "extra-node-info", 'B', REQUIRED, LEAVE },
	{ "gpus-per-task", 0, REQUIRED, LEAVE }, { "het-group", 0, REQUIRED, LEAVE }, { "hint", 0, REQUIRED, LEAVE },
	{ "interactive", 0, NONE, LEAVE }, { "jobid", 0, REQUIRED, LEAVE }, { "mincpus", 0, REQUIRED, LEAVE },
	{ "multi-prog", 0, NONE, LEAVE }, { "no-allocate", 'Z', NONE, LEAVE }, { "nodefile", 'F', REQUIRED, LEAVE },
	{ "nodelist", 'w', REQUIRED, LEAVE }, { "nodes", 'N', REQUIRED, SRUN_REFUSES_NODES ? REFUSED : SAME },
		{ "ntasks", 'n', REQUIRED, SAME },
	{ "ntasks-per-core", 0, REQUIRED, LEAVE }, { "ntasks-per-gpu", 0, REQUIRED, LEAVE },
	{ "ntasks-per-node", 0, REQUIRED, SAME }, { "ntasks-per-socket", 0, REQUIRED, LEAVE },
	{ "ntasks-per-tres", 0, REQUIRED, LEAVE }, { "pack-group", 0, REQUIRED, LEAVE },
		{ "relative", 'r', REQUIRED, LEAVE },
	{ "sockets-per-node", 0, REQUIRED, LEAVE }, { "spread-job", 0, NONE, LEAVE },
		{ "tasks-per-node", 0, REQUIRED, SAME },
	{ "test-only", 0, NONE, LEAVE }, { "thread-spec", 0, REQUIRED, LEAVE },
		{ "threads-per-core", 0, REQUIRED, LEAVE },
	{ "tres-per-task", 0, REQUIRED, LEAVE }, { "use-min-nodes", 0, NONE, LEAVE },
	{ "accel-bind", 0, REQUIRED, KEEP }, { "account", 'A', REQUIRED, KEEP }, { "acctg-freq", 0, REQUIRED, KEEP },
	{ "async", 0, NONE, KEEP },
	{ "autocomplete", 0, REQUIRED, KEEP }, { "bb", 0, REQUIRED, KEEP }, { "bbf", 0, REQUIRED, KEEP },
	{ "bcast", 0, OPTIONAL, KEEP }, { "bcast-exclude", 0, REQUIRED, KEEP }, { "begin", 'b', REQUIRED, KEEP },
	{ "chdir", 'D', REQUIRED, KEEP }, { "comment", 0, REQUIRED, KEEP }, { "compress", 0, OPTIONAL, KEEP },
	{ "consolidate-segments", 0, NONE, KEEP }, { "container-type", 0, REQUIRED, KEEP },
	{ "container", 0, REQUIRED, KEEP }, { "container-id", 0, REQUIRED, KEEP }, { "context", 0, REQUIRED, KEEP },
	{ "cpu-bind", 0, REQUIRED, KEEP }, { "cpu-freq", 0, REQUIRED, KEEP }, { "cpu_bind", 0, REQUIRED, KEEP },
	{ "deadline", 0, REQUIRED, KEEP }, { "debugger-test", 0, NONE, KEEP }, { "delay-boot", 0, REQUIRED, KEEP },
	{ "dependency", 'd', REQUIRED, KEEP }, { "disable-status", 'X', NONE, KEEP }, { "epilog", 0, REQUIRED, KEEP },
	{ "error", 'e', REQUIRED, KEEP }, { "exact", 0, NONE, KEEP }, { "exclusive", 0, OPTIONAL, KEEP },
	{ "extra", 0, REQUIRED, KEEP }, { "gid", 0, REQUIRED, KEEP }, { "gpu-bind", 0, REQUIRED, KEEP },
	{ "gpu-freq", 0, REQUIRED, KEEP }, { "gpus", 'G', REQUIRED, KEEP }, { "gpus-per-node", 0, REQUIRED, KEEP },
	{ "gpus-per-socket", 0, REQUIRED, KEEP }, { "gres", 0, REQUIRED, KEEP }, { "gres-flags", 0, REQUIRED, KEEP },
	{ "help", 'h', NONE, KEEP }, { "hold", 'H', NONE, KEEP },
	{ "ignore-signals", 0, REQUIRED, KEEP }, { "immediate", 'I', OPTIONAL, KEEP },
	{ "input", 'i', REQUIRED, KEEP }, { "job-name", 'J', REQUIRED, KEEP },
		{ "kill-on-bad-exit", 'K', OPTIONAL, KEEP },
	{ "label", 'l', NONE, KEEP }, { "licenses", 'L', REQUIRED, KEEP }, { "mail-type", 0, REQUIRED, KEEP },
	{ "mail-user", 0, REQUIRED, KEEP }, { "mcs-label", 0, REQUIRED, KEEP }, { "mem", 0, REQUIRED, KEEP },
	{ "mem-bind", 0, REQUIRED, KEEP }, { "mem-per-cpu", 0, REQUIRED, KEEP }, { "mem-per-gpu", 0, REQUIRED, KEEP },
	{ "mem-update", 0, REQUIRED, KEEP },
	{ "mpi", 0, REQUIRED, KEEP }, { "msg-timeout", 0, REQUIRED, KEEP }, { "network", 0, REQUIRED, KEEP },
	{ "nice", 0, OPTIONAL, KEEP }, { "no-kill", 'k', OPTIONAL, KEEP }, { "oom-kill-step", 0, OPTIONAL, KEEP },
	{ "open-mode", 0, REQUIRED, KEEP }, { "output", 'o', REQUIRED, KEEP }, { "overcommit", 'O', NONE, KEEP },
	{ "overlap", 0, OPTIONAL, KEEP }, { "oversubscribe", 's', NONE, KEEP }, { "parsable", 0, NONE, KEEP },
	{ "partition", 'p', REQUIRED, KEEP },
	{ "power", 0, REQUIRED, KEEP }, { "prefer", 0, REQUIRED, KEEP }, { "preserve-env", 'E', NONE, KEEP },
	{ "priority", 0, REQUIRED, KEEP }, { "profile", 0, REQUIRED, KEEP }, { "prolog", 0, REQUIRED, KEEP },
	{ "propagate", 0, OPTIONAL, KEEP }, { "pty", 0, OPTIONAL, KEEP }, { "qos", 'q', REQUIRED, KEEP },
	{ "quiet", 'Q', NONE, KEEP }, { "quit-on-interrupt", 0, NONE, KEEP }, { "reboot", 0, NONE, KEEP },
	{ "reservation", 0, REQUIRED, KEEP }, { "resources", 0, REQUIRED, KEEP },
	{ "resv-ports", 0, OPTIONAL, KEEP }, { "segment", 0, REQUIRED, KEEP },
	{ "send-libs", 0, OPTIONAL, KEEP }, { "signal", 0, REQUIRED, KEEP }, { "slurmd-debug", 0, REQUIRED, KEEP },
	{ "spread-segments", 0, NONE, KEEP },
	{ "stepmgr", 0, NONE, KEEP }, { "switches", 0, REQUIRED, KEEP }, { "task-epilog", 0, REQUIRED, KEEP },
	{ "task-prolog", 0, REQUIRED, KEEP }, { "threads", 'T', REQUIRED, KEEP }, { "time", 't', REQUIRED, KEEP },
	{ "time-min", 0, REQUIRED, KEEP }, { "tmp", 0, REQUIRED, KEEP }, { "treewidth", 0, REQUIRED, KEEP },
	{ "tres-bind", 0, REQUIRED, KEEP }, { "uid", 0, REQUIRED, KEEP }, { "unbuffered", 'u', NONE, KEEP },
	{ "usage", 0, NONE, KEEP }, { "verbose", 'v', NONE, KEEP }, { "version", 'V', NONE, KEEP },
	{ "wait", 'W', REQUIRED, KEEP }, { "wait-for-children", 0, NONE, KEEP },
	{ "wckey", 0, REQUIRED, KEEP }, { "whole", 0, NONE, KEEP },
		{ "x11", 0, OPTIONAL, KEEP },
};

/* FIRST_OWN: the options of this plugin, none of which changes the layout. */
enum { ROWS = sizeof(rows) / sizeof(rows[0]), FIRST_LONG = 256, FIRST_OWN = FIRST_LONG + ROWS, OWN_MAX = 64 };

/* Where srun reads the job's own value from; unset: the value when none of these is set, or NULL. */
static const struct {
	const char *name, *env[2], *unset;
} job_numbers[] = {
	{ "ntasks", { "SLURM_NTASKS", "SLURM_NPROCS" }, NULL },
	{ "nodes", { "SLURM_JOB_NUM_NODES", "SLURM_NNODES" }, NULL },
	{ "cpus-per-task", { "SLURM_CPUS_PER_TASK", NULL }, "1" },
	{ "ntasks-per-node", { "SLURM_NTASKS_PER_NODE", NULL }, NULL },
	{ "tasks-per-node", { "SLURM_NTASKS_PER_NODE", NULL }, NULL },
};

/* "4", or for nodes "4-4" */
static bool is_number(const char *text, unsigned long wanted)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || n != wanted)
		return false;
	return !*end || (*end == '-' && is_number(end + 1, wanted));
}

bool srun_exports_all(const char *value)
{
	return !strncasecmp(value, "ALL", 3) && (!value[3] || value[3] == ',');
}

static int check_option(int what, const char *word, struct err *e)
{
	const struct row *row = what >= FIRST_LONG ? &rows[what - FIRST_LONG] : NULL;

	for (int i = 0; !row && what != '?' && i < ROWS; i++)
		row = rows[i].letter == what ? &rows[i] : NULL;
	/* optopt is set for an unknown letter and for a missing value. */
	if (!row && (optopt || strncmp(word, "--", 2)))
		return err_set(e, "%.60s: unknown srun option, or its value is missing", word);
	/* One of another plugin or of a later Slurm is fine; an ambiguous abbreviation of one in the table is not. */
	for (int i = 0; !row && i < ROWS; i++)
		if (rows[i].kind != KEEP && rows[i].kind != EXPORT &&
		    !strncmp(rows[i].name, word + 2, strcspn(word + 2, "=")))
			return err_set(e, "%.62s is ambiguous: it may be --%s", word, rows[i].name);
	if (!row)
		return 0;
	if (row->kind == SAME) {
		/* The value is the job's own? */
		const char *job = NULL;

		for (size_t i = 0; i < sizeof(job_numbers) / sizeof(job_numbers[0]); i++) {
			const char *const *env = job_numbers[i].env;

			if (strcmp(job_numbers[i].name, row->name))
				continue;
			job = env[1] && !getenv(env[0]) ? getenv(env[1]) : getenv(env[0]);
			job = job ? job : job_numbers[i].unset;
		}
		if (job && is_number(optarg, strtoul(job, NULL, 10)))
			return 0;
		return job ? err_set(e, "--%s=%.20s, but the job has %.20s", row->name, optarg, job) :
			     err_set(e, "--%s=%.20s, but the job does not set it", row->name, optarg);
	}
	if (row->kind == REFUSED)
		return err_set(e, "srun of this release of Slurm accepts no --%s beside a rank map: leave it out",
			       row->name);
	if (row->kind == KEEP || (row->kind == EXPORT && srun_exports_all(optarg)))
		return 0;
	return row->kind == EXPORT ? err_set(e, "--export=%.60s does not pass the rank map to the tasks", optarg) :
				     err_set(e, "--%s changes the layout of the tasks", row->name);
}

/* Can srun read this word as options of its own? Letters: of getopt(3). */
static bool reads_word(const char *word, const char *letters)
{
	for (const char *c = word + 1; *c && word[1] != '-'; c++) {
		const char *known = *c == ':' ? NULL : strchr(letters, *c);

		if (!known || known[1] == ':')
			return known;
	}
	return true;
}

/*
 * The options of other plugins are not registered yet, so that the word behind one may be its value, srun's own option
 * or the program. It is the value if srun knows no such letter; the program if such a file exists, unless the options
 * that would be srun's otherwise end in a program, too.
 */
int srun_check_options(int argc, char **argv, const struct option *own, int *command, struct err *e)
{
	char letters[3 * ROWS + 2] = "+", *letter = letters + 1;	/* '+': stop at the first non-option */
	struct option names[ROWS + OWN_MAX + 1];
	char path[PATH_MAX];
	const char *unknown = NULL, *behind = NULL;	/* behind: the option before the word at `program` */
	int index = optind, errors = opterr, n = ROWS, program = 0, rc = 0;
	bool another;

	for (int i = 0; i < ROWS; i++) {
		names[i] = (struct option){ rows[i].name, rows[i].argument, NULL, FIRST_LONG + i };
		if (!rows[i].letter)
			continue;
		*letter++ = rows[i].letter;
		for (int colons = rows[i].argument; colons; colons--)
			*letter++ = ':';
	}
	*letter = '\0';
	for (; own->name && n < ROWS + OWN_MAX; own++, n++)
		names[n] = (struct option){ own->name, own->has_arg, NULL, FIRST_OWN };
	names[n] = (struct option){0};
	/* A heterogeneous step. */
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], ":"))
			return err_set(e, "the step has several components (:)");
	for (optind = opterr = 0; !rc || program;) {
		/* The word that may be a value; behind a long option getopt_long is between two words. */
		const char *word = unknown && optind < argc && *argv[optind] == '-' ? argv[optind] : NULL;

		if (word && !reads_word(word, letters + 1)) {
			optind++;
			unknown = NULL;
			continue;
		}
		int what = getopt_long(argc, argv, letters, names, NULL);

		if (what >= 0 && what != FIRST_OWN && check_option(what, argv[optind - 1], e))
			rc = word ? err_set(e, "%.60s may be srun's or the value of %.60s: write = before a value",
					    word, unknown) : -1;
		if (what < 0 && (!unknown || optind >= argc))
			break;
		if (what < 0 && !program && child_program(argv[optind], path)) {
			program = optind;
			behind = unknown;
		}
		unknown = what == '?' && !strchr(argv[optind - 1], '=') ? argv[optind - 1] : NULL;
		optind += what < 0;
	}
	another = optind < argc && child_program(argv[optind], path);
	*command = program && !another ? program : optind;
	if (rc && program)
		rc = !another ? 0 :
			err_set(e, "%.60s may be the program or the value of %.60s: write one of srun's own options, "
				"such as --label, between a flag and the program, and = before a value",
				argv[program], behind);
	optind = index;
	opterr = errors;
	return rc;
}
