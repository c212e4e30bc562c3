/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <math.h>
#include <stdlib.h>

#include "advise_map.h"
#include "base/log.h"
#include "cmd.h"
#include "step_files.h"
#include "trace_advise.h"

struct args {
	const char *what, *matrix, *snapshot;
	bool brief;
};

static void check_together(void *args, struct argp_state *state)
{
	struct args *a = args;

	if (a->snapshot && !a->matrix)
		argp_error(state, "--snapshot requires --matrix");
}

static const struct cmd_option options[] = {
	{ "matrix", 0, "FILE", CMD_TEXT(matrix),
	  "Compare the ranks' places with a mapping by this communication matrix (default: the matrix of "
	  "--topo-capture)" },
	{ "snapshot", 0, "FILE", CMD_TEXT(snapshot), "The nodes' hardware, instead of SnapshotFile or the registry" },
	{ "brief", 'b', NULL, CMD_FLAG(brief), "Print the first finding of each step, one line a step" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "JOB[.STEP]\nFOLDER",
	"Find what in the placement of a job cost it time, from what --topo-monitor left of its steps: traces, and "
	"where its tasks were.\vA JOB's folders topiary-JOB.STEP are read in the current directory or the job's own. "
	"Each finding is printed with its evidence.",
	CMD_TEXT(what), "JOB, JOB.STEP or FOLDER", check_together,
};

/* --- a step --- */

/* Where a trace cannot be judged, for example that of a short step, it is still known where the tasks were. */
static int node_advise(struct trace_advised *a, const struct step_node *node, const struct trace_tasks *tasks,
		       struct err *e)
{
	struct trace *t = node->trace ? trace_open(node->trace, e) : NULL;
	const char *name = node->trace;
	struct advice_node only = { .tasks = tasks, .lack = node->trace ? "a trace that can be judged" : NULL };
	int rc = t ? advise_found_add(a, &(struct advice_node){ &t, &name, 1, tasks, NULL }, node->name, e) : -1;
	double seconds = t ? t->end * 1e-9 : 0;

	trace_close(t);
	if (!rc || !tasks)
		return rc;
	if (node->trace)
		log_warning("%s", e->text);
	a->seconds = fmax(a->seconds, seconds);
	return advise_found_add(a, &only, node->name, e);
}

struct step {
	const struct step_files *files;
	struct trace_tasks **tasks;	/* of each node, or NULL */
	struct trace_advised found;
};

static void step_free(struct step *s)
{
	for (unsigned i = 0; s->tasks && i < s->files->n; i++)
		trace_tasks_free(s->tasks[i]);
	free(s->tasks);
	advise_found_free(&s->found);
}

static int step_check_mapping(const struct cmd *c, const struct args *a, struct step *s, struct err *e)
{
	struct trace_tasks **known = calloc(s->files->n, sizeof(*known));
	struct advise_map how = { .step = s->files->name, .matrix = a->matrix, .snapshot = a->snapshot,
				  .nodes = known };
	struct advice advice;
	int rc;

	if (!known)
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < s->files->n; i++)
		if (s->tasks[i])
			known[how.n++] = s->tasks[i];
	rc = advise_map(c, &how, &advice, e) || advise_found_add_step(&s->found, &advice, e) ? -1 : 0;
	free(known);
	return rc;
}

static int step_advise(const struct cmd *c, const struct args *a, struct step *s, struct err *e)
{
	struct err why = {"its list of tasks cannot be read"};
	unsigned judged = 0;

	if (!(s->tasks = calloc(s->files->n, sizeof(*s->tasks))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < s->files->n; i++) {
		const struct step_node *node = &s->files->nodes[i];

		s->tasks[i] = node->tasks ? trace_advise_tasks(node->tasks) : NULL;
		if (!node_advise(&s->found, node, s->tasks[i], &why))
			judged++;
		else if (s->files->n > 1)
			log_warning("%s", why.text);
	}
	if (!judged && s->files->n == 1)
		return err_set(e, "%s", why.text);
	if (!judged)
		return err_set(e, "%s: nothing in it can be judged", s->files->name);
	/* At a step's end neither a registry nor the time of a mapping is worth waiting for. */
	return a->brief && !a->matrix ? 0 : step_check_mapping(c, a, s, e);
}

/* --- output --- */

static void print_brief(const struct step *s)
{
	unsigned found = advise_found_count(&s->found);

	for (const struct trace_advised_check *c = s->found.checks; c < s->found.checks + s->found.n; c++) {
		if (c->advice.result != ADVICE_FOUND)
			continue;
		printf("step %s: %s%s%s: %s", s->files->name, c->advice.evidence, *c->node ? " on " : "", c->node,
		       c->advice.remedy);
		if (found > 1)
			printf(" (and %u more: topiary advise %s)", found - 1, s->files->name);
		putchar('\n');
		return;
	}
}

static int print_step(const struct step *s, unsigned number, struct err *e)
{
	const unsigned all = s->files->n;
	char name[300], what[64], judged[32] = "";

	snprintf(name, sizeof(name), "%s%.256s", step_files_is_id(s->files->name) ? "step " : "", s->files->name);
	if (s->found.nodes < all)
		snprintf(judged, sizeof(judged), "%u of ", s->found.nodes);
	snprintf(what, sizeof(what), "%s%u node%s", judged, all, all == 1 ? "" : "s");
	if (number)
		putchar('\n');
	return advise_found_print(&s->found, name, what, e);
}

static json_t *step_json(const struct step *s)
{
	return json_pack("{s:s, s:i, s:f, s:o}", "step", s->files->name, "nodes", (int) s->found.nodes, "seconds",
			 s->found.seconds, "checks", advise_found_json(&s->found));
}

static int steps_advise(const struct cmd *c, const struct args *a, const struct step_files *files, unsigned n,
			json_t *rows, struct err *e)
{
	unsigned judged = 0;
	struct err why;

	for (unsigned i = 0; i < n; i++) {
		struct step s = { .files = &files[i] };
		int rc = step_advise(c, a, &s, &why);

		if (rc && n > 1)
			log_warning("%s", why.text);
		else if (rc)
			err_set(e, "%s", why.text);
		else if (c->json)
			json_array_append_new(rows, step_json(&s));
		else if (a->brief)
			print_brief(&s);
		else if (print_step(&s, judged, &why))
			rc = -1;
		judged += !rc;
		step_free(&s);
	}
	if (!judged && n > 1)
		err_set(e, "%s: none of its %u steps can be judged", a->what, n);
	return judged ? 0 : -1;
}

int cmd_advise(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	struct step_files *files;
	json_t *all, *rows;
	unsigned n;
	int rc;

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	if (a.brief)
		log_set_level("error");
	if (step_files_find(a.what, &files, &n, e))
		return -1;
	rows = json_array();
	all = json_pack("{s:o}", "steps", rows);
	rc = all ? steps_advise(c, &a, files, n, rows, e) : err_set(e, "out of memory");
	if (rc == 0 && c->json)
		rc = cmd_print_json(all, e);
	json_decref(all);
	step_files_free(files, n);
	return rc;
}
