/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

#include "base/file.h"
#include "child.h"
#include "cmd.h"
#include "table.h"

/*
 * `topiary whatif sbatch ...`: when and where a job would start with each fit. `sbatch --test-only` asks slurmctld
 * (slurm_job_will_run), through the job_submit and the select plugins, and submits nothing. Unlike backfill, it adds
 * for each job that waits before it in the partition the time of whole nodes (_delayed_job_start_time).
 */
#define SECONDS 60
#define OUTPUT_MAX (1u << 20)

struct args {
	struct cmd_words line;
};

static const struct cmd_syntax syntax = {
	NULL, "sbatch [OPTION...] [SCRIPT [ARGUMENT...]]",
	"Say when and where a job would start with --topo-fit=prefer, require and off, without submitting it.\vWithout "
	"a script an empty one is assumed.",
	CMD_COMMAND(line), "the line for sbatch", NULL,
};

struct answer {
	const char *fit;
	char start[32], *nodes, *partition, *refusal;	/* start is "": it would not */
	unsigned cpus;
};

/*
 * "sbatch: Job 7 to start at 2026-11-28T03:34:17 using 8 processors on nodes cn1 in partition main"; of a heterogeneous
 * job "on cn1", for all its components together.
 */
static bool answer_read(struct answer *a, char *output)
{
	for (char *rest = output, *line; (line = strsep(&rest, "\n"));) {
		char *at = strstr(line, " to start at "), *using = at ? strstr(at, " using ") : NULL;
		char *nodes = using ? strstr(using, " on ") : NULL, *error = strstr(line, "error: ");

		if (nodes && sscanf(at, " to start at %31s", a->start) == 1) {
			char *partition = strstr(nodes, " in partition ");

			a->cpus = strtoul(using + strlen(" using "), NULL, 10);
			nodes += strlen(strncmp(nodes, " on nodes ", strlen(" on nodes ")) ? " on " : " on nodes ");
			a->nodes = strndup(nodes, strcspn(nodes, " "));
			a->partition = strdup(partition ? partition + strlen(" in partition ") : "");
			return a->nodes;
		}
		/* The last line that says something in words, mostly Slurm's; the plugin's come before. */
		if (error || (!a->refusal && *line)) {
			char *before = a->refusal;

			line = error ? error + strlen("error: ") : line;
			if (asprintf(&a->refusal, "%s%s%s", before ? before : "", before ? "; " : "", line) < 0)
				a->refusal = NULL;
			free(before);
		}
	}
	return false;
}

/* The line without its own --topo-fit, this one for each component; --wrap where nothing else is a script. */
static const char **line_make(const struct cmd_words *line, const char *fit, bool wrap)
{
	const char **argv = calloc(2 * line->n + 6, sizeof(*argv));
	bool skip = false;
	int n = 0;

	if (!argv)
		return NULL;
	argv[n++] = line->list[0];
	argv[n++] = "--test-only";
	argv[n++] = fit;
	for (int i = 1; i < line->n; i++) {
		/* sbatch takes --topo-f for it, too. */
		size_t len = strcspn(line->list[i], "=");
		bool own = len >= strlen("--topo-f") && !strncmp(line->list[i], "--topo-fit", len);

		if (!own && !skip)
			argv[n++] = line->list[i];
		if (!strcmp(line->list[i], ":"))
			argv[n++] = fit;
		skip = own && !line->list[i][len];
	}
	if (wrap)
		argv[n++] = "--wrap=true";
	return argv;
}

static int ask(const struct cmd_words *line, struct answer *a, struct err *e)
{
	char fit[32];
	bool found = false;

	snprintf(fit, sizeof(fit), "--topo-fit=%s", a->fit);
	for (int wrap = 0; wrap < 2 && !found; wrap++) {
		const char **argv = line_make(line, fit, wrap);
		struct buf out = {0};
		int rc = argv ? cmd_program(argv, STDERR_TOO, SECONDS, OUTPUT_MAX, &out, e) :
				err_set(e, "out of memory");

		free(argv);
		if (rc < 0) {
			buf_free(&out);
			return -1;
		}
		free(a->refusal);
		a->refusal = NULL;
		found = out.len && answer_read(a, out.data);
		/* sbatch read an empty script from standard input. */
		if (!found && !(a->refusal && strstr(a->refusal, "script")))
			wrap = 2;
		buf_free(&out);
	}
	return 0;
}

int cmd_whatif(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct answer answers[] = { { .fit = "prefer" }, { .fit = "require" }, { .fit = "off" } };
	const size_t n = sizeof(answers) / sizeof(answers[0]);
	bool starts = false;
	json_t *list = json_array();
	struct table *t = NULL;
	struct args a = {0};
	int rc;

	rc = cmd_parse(c, &syntax, &a, argc, argv, e);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = ask(&a.line, &answers[i], e);
	for (size_t i = 0; i < n; i++)
		starts |= answers[i].nodes != NULL;
	if (rc == 0 && !c->json)
		t = table_new("FIT|START|>CPUS|NODES|PARTITION");
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct answer *w = &answers[i];

		if (c->json) {
			json_array_append_new(list, !w->nodes ?
				json_pack("{s:s, s:n, s:s?}", "fit", w->fit, "start", "error", w->refusal) :
				json_pack("{s:s, s:s, s:i, s:s, s:s}", "fit", w->fit, "start", w->start, "cpus",
					  w->cpus, "nodes", w->nodes, "partition", w->partition));
			continue;
		}
		table_cell(t, "%s|%s|%.0u|%s|%s", w->fit, w->nodes ? w->start : "not at all:", w->nodes ? w->cpus : 0,
			   w->nodes ? w->nodes : w->refusal ? w->refusal : "sbatch gave no reason",
			   w->nodes ? w->partition : "");
	}
	if (rc == 0)
		rc = c->json ? cmd_print_new(json_pack("{s:O}", "whatif", list), e) : table_finish(t, e);
	if (rc == 0 && !c->json && starts)
		puts("START is that of sbatch --test-only: later by an estimate for the jobs that wait in the "
		     "partition, so that backfill may start it earlier");
	for (size_t i = 0; i < n; i++) {
		free(answers[i].nodes);
		free(answers[i].partition);
		free(answers[i].refusal);
	}
	json_decref(list);
	return rc == 0 && !starts ? err_set(e, "the job would not start with any --topo-fit") : rc;
}
