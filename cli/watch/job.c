/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/claim.h"
#include "cmd.h"
#include "step_files.h"
#include "table.h"
#include "trace/summary.h"
#include "advise.h"
#include "trace_tree.h"

struct args {
	struct cmd_words words;	/* the verb, the job and files */
	bool send;
};

static void check_together(void *args, struct argp_state *state)
{
	struct args *a = args;
	const char *verb = a->words.n ? a->words.list[0] : "";

	a->send = !strcmp(verb, "send");
	if (!a->send && strcmp(verb, "show"))
		argp_error(state, "expected show or send");
	if (a->send ? a->words.n < 2 : a->words.n != 2)
		argp_error(state, "expected %s", a->send ? "send JOB[.STEP] [FOLDER | FILE...]" : "show JOB[.STEP]");
	if (!claim_node_valid(a->words.list[1]))
		argp_error(state, "%s: expected JOB or JOB.STEP", a->words.list[1]);
}

static const struct cmd_syntax syntax = {
	NULL, "show JOB[.STEP]\nsend JOB[.STEP] [FOLDER | FILE...]",
	"Show what your job did on the hardware, as the registry has it, or send it there: one summary of the job's "
	"traces, of any number of nodes.\vA summary belongs to the user who sent it; administrators read all.",
	CMD_WORDS(words), NULL, check_together,
};

/* --- send --- */

/* A file and the node that its trace is of. */
struct job_file {
	const char *path;
	char node[256];
};

static int by_node(const void *a, const void *b)
{
	return strcmp(((const struct job_file *) a)->node, ((const struct job_file *) b)->node);
}

static int file_node(struct job_file *f, struct err *e)
{
	struct trace *t = trace_open(f->path, e);

	if (t)
		memcpy(f->node, t->head.node, sizeof(f->node));
	trace_close(t);
	return t ? 0 : -1;
}

/* The files of one node, all open at once: they are few, those of a job need not be. */
static int node_add(struct trace_summary *s, const struct job_file *files, unsigned n, struct err *e)
{
	struct trace **traces = calloc(n, sizeof(*traces));
	const char **names = calloc(n, sizeof(*names));
	char *path = trace_path_beside(files[0].path, ".tasks");
	struct trace_tasks *tasks = path ? advise_tasks(path) : NULL;
	int rc = traces && names && path ? 0 : err_set(e, "out of memory");

	for (unsigned i = 0; rc == 0 && i < n; i++) {
		names[i] = files[i].path;
		if (!(traces[i] = trace_open(files[i].path, e)))
			rc = -1;
	}
	if (rc == 0)
		rc = trace_summary_add(s, traces, names, n, tasks, e);
	for (unsigned i = 0; traces && i < n; i++)
		trace_close(traces[i]);
	trace_tasks_free(tasks);
	free(path);
	free(names);
	free(traces);
	return rc;
}

/* Of all nodes. 0 or -1. */
static int files_summarize(char *const *paths, unsigned n, struct buf *out, struct err *e)
{
	struct job_file *files = calloc(n, sizeof(*files));
	struct trace_summary *s = trace_summary_new();
	int rc = files && s ? 0 : err_set(e, "out of memory");

	for (unsigned i = 0; rc == 0 && i < n; i++) {
		files[i].path = paths[i];
		rc = file_node(&files[i], e);
	}
	if (rc == 0)
		qsort(files, n, sizeof(*files), by_node);
	for (unsigned i = 0, end; rc == 0 && i < n; i = end) {
		for (end = i; end < n && !by_node(&files[i], &files[end]); end++)
			;
		rc = node_add(s, &files[i], end - i, e);
	}
	if (rc == 0)
		rc = trace_summary_write(s, out, e);
	trace_summary_free(s);
	free(files);
	return rc;
}

/* The traces of the one step that is meant by the job's own id or by its folder; each path is of `steps`. */
static int step_traces(const char *what, struct step_files **steps, unsigned *nsteps, char ***paths, unsigned *n,
		       struct err *e)
{
	if (step_files_find(what, steps, nsteps, e))
		return -1;
	if (*nsteps > 1)
		return err_set(e, "%s: it has %u steps with traces: name one, for example %s", what, *nsteps,
			       (*steps)->name);
	if (!(*paths = calloc((*steps)->n, sizeof(**paths))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < (*steps)->n; i++)
		if ((*steps)->nodes[i].trace)
			(*paths)[(*n)++] = (*steps)->nodes[i].trace;
	return *n ? 0 : err_set(e, "%s: no traces in it", what);
}

static int words_summarize(const struct args *a, struct buf *out, unsigned *n, struct err *e)
{
	char **words = a->words.list + 1, **paths = NULL;
	unsigned nwords = a->words.n - 1, nsteps = 0;
	struct step_files *steps = NULL;
	struct stat st;
	int rc;

	*n = 0;
	if (nwords > 2 || (nwords == 2 && (stat(words[1], &st) || !S_ISDIR(st.st_mode)))) {
		*n = nwords - 1;
		return files_summarize(words + 1, *n, out, e);
	}
	rc = step_traces(words[nwords - 1], &steps, &nsteps, &paths, n, e) || files_summarize(paths, *n, out, e);
	free(paths);
	step_files_free(steps, nsteps);
	return rc ? -1 : 0;
}

static int job_send(const struct cmd *c, const struct args *a, struct err *e)
{
	const char *job = a->words.list[1];
	struct buf text = {0}, path = {0};
	json_t *answer = NULL;
	unsigned n;
	int rc = words_summarize(a, &text, &n, e);

	buf_printf(&path, "/v1/jobs/%s", job);
	if (rc == 0 && !(answer = cmd_put(c, &path, CLAIM_JOB, job, text.data, text.len, e)))
		rc = -1;
	if (answer && c->json)
		rc = cmd_print_json(answer, e);
	else if (answer)
		printf("%s: summary of %u trace(s) sent, %zu bytes\n", job, n, text.len);
	json_decref(answer);
	buf_free(&path);
	buf_free(&text);
	return rc;
}

/* --- show --- */

static const struct table_column columns[] = {
	{ "METRIC", TABLE_LEFT }, { "LEVEL", TABLE_LEFT }, { "AVERAGE", TABLE_RIGHT }, { "LEAST", TABLE_RIGHT },
	{ "AT", TABLE_LEFT },	  { "MOST", TABLE_RIGHT }, { "AT", TABLE_LEFT },       { "UNIT", TABLE_LEFT },
	{ "TOTAL", TABLE_RIGHT }, {0},
};

static double number_of(const json_t *row, const char *key)
{
	const json_t *x = json_object_get(row, key);

	return json_is_number(x) ? json_number_value(x) : NAN;
}

static void metric_row(struct table *table, const json_t *row)
{
	const json_t *unit = json_object_get(row, "unit"), *total = json_object_get(row, "total");
	const char *text = json_is_string(unit) ? json_string_value(unit) : "";
	struct trace_unit of_total = trace_unit_named(text);
	char number[TRACE_TOTAL];

	table_cell(table, "%s", cmd_text(row, "metric"));
	table_cell(table, "%s", cmd_text(row, "level"));
	trace_tree_cell(table, number_of(row, "average"));
	trace_tree_cell(table, number_of(row, "least"));
	table_cell(table, "%s", cmd_text(row, "least_at"));
	trace_tree_cell(table, number_of(row, "most"));
	table_cell(table, "%s", cmd_text(row, "most_at"));
	table_cell(table, "%s", text);
	table_cell(table, "%s", !json_is_integer(total) ? "-" :
		   trace_unit_total(&of_total, json_integer_value(total), number));
}

static int print_summary(const char *job, const json_t *row, struct err *e)
{
	const json_t *s = json_object_get(row, "summary");
	const char *step = cmd_text(row, "step"), *found, *before = "found: ";
	struct table *table = table_new(columns);
	json_t *metric, *nodes;
	size_t i;
	int rc;

#define N "%" JSON_INTEGER_FORMAT
	printf("%.*s%s%s by uid " N ": " N " node(s), " N " PUs, %.1f s\n", (int) strcspn(job, "."), job,
	       *step ? "." : "", step, cmd_number(row, "uid"), cmd_number(s, "nodes"), cmd_number(s, "pus"),
	       json_number_value(json_object_get(s, "seconds")));
	json_object_foreach(json_object_get(s, "found"), found, nodes) {
		printf("%s%s (" N " node(s))", before, found, json_integer_value(nodes));
		before = ", ";
	}
	if (*before == ',')
		putchar('\n');
	putchar('\n');
	json_array_foreach(json_object_get(s, "metrics"), i, metric)
		metric_row(table, metric);
	rc = table_finish(table, e);
	if (cmd_number(s, "omitted"))
		printf("\n" N " metric(s) more did not fit into the summary\n", cmd_number(s, "omitted"));
	return rc;
}

static int job_show(const struct cmd *c, const struct args *a, struct err *e)
{
	const char *job = a->words.list[1];
	struct buf path = {0};
	json_t *answer, *row;
	size_t i;
	int rc = 0;

	buf_printf(&path, "/v1/jobs/%s", job);
	if (!(answer = cmd_get_list(c, &path, "summaries", e)))
		return -1;
	if (c->json)
		rc = cmd_print_json(answer, e);
	else if (!json_array_size(json_object_get(answer, "summaries")))
		rc = err_set(e, "job %s: the registry has no summary that you sent", job);
	else
		json_array_foreach(json_object_get(answer, "summaries"), i, row) {
			if (i)
				putchar('\n');
			if ((rc = print_summary(job, row, e)))
				break;
		}
	json_decref(answer);
	return rc;
}

int cmd_job(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	return a.send ? job_send(c, &a, e) : job_show(c, &a, e);
}
