/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "advise.h"

#include <jansson.h>
#include <math.h>

#include "base/array.h"
#include "base/log.h"
#include "base/order.h"
#include "cmd.h"
#include "map/engine/solve.h"
#include "map/matrix/matrix.h"
#include "place/place.h"
#include "step_files.h"
#include "table.h"

static const char *const results[] = {
	[ADVICE_NONE] = "none",
	[ADVICE_FOUND] = "found",
	[ADVICE_UNKNOWN] = "not checked",
};

/* What the checks found, over the nodes of a step or of one. */
struct trace_advised {
	struct trace_advised_check {
		struct advice advice;	/* of the first node where it was found */
		char node[256];		/* that one, or "" of the step as a whole */
		unsigned nodes;		/* where it was found */
	} *checks;
	unsigned n, nodes, traces;
	double seconds;			/* of the longest trace */
};

/* --- over nodes --- */

static int found_add(struct trace_advised *a, const struct advice_node *node, const char *name, struct err *e)
{
	unsigned n;
	struct advice *list = advice_list(node, &n, e);

	if (!list)
		return -1;
	if (!a->n && !array_append(a->checks, a->n, n)) {
		free(list);
		return err_set(e, "out of memory");
	}
	for (unsigned i = 0; i < n; i++) {
		/* A check that was made on any node was made; the first node that it found something on is shown. */
		struct trace_advised_check *c = &a->checks[i];
		const struct advice *advice = &list[i];
		bool is_found = advice->result == ADVICE_FOUND;

		if (!c->advice.kind || (is_found && !c->nodes) || (!c->nodes && c->advice.result == ADVICE_UNKNOWN)) {
			c->advice = *advice;
			snprintf(c->node, sizeof(c->node), "%s", name);
		}
		c->nodes += is_found;
	}
	for (unsigned i = 0; i < node->n; i++) {
		if (node->traces[i]->open_end)
			log_warning("%s: has no index: it is still being written, or was cut short", node->names[i]);
		a->seconds = fmax(a->seconds, node->traces[i]->end * 1e-9);
	}
	a->nodes++;
	a->traces += node->n;
	free(list);
	return 0;
}

static int found_add_step(struct trace_advised *a, const struct advice *advice, struct err *e)
{
	struct trace_advised_check *c = array_add(a->checks, a->n);

	if (!c)
		return err_set(e, "out of memory");
	c->advice = *advice;
	c->nodes = advice->result == ADVICE_FOUND;
	return 0;
}

static void found_free(struct trace_advised *a)
{
	free(a->checks);
	*a = (struct trace_advised){0};
}

static unsigned results_count(const struct trace_advised *a, unsigned result)
{
	unsigned n = 0;

	for (unsigned i = 0; i < a->n; i++)
		n += a->checks[i].advice.result == result;
	return n;
}

/* --- output --- */

static json_t *found_json(const struct trace_advised *a)
{
	json_t *rows = json_array();

	for (const struct trace_advised_check *c = a->checks; c < a->checks + a->n; c++) {
		bool is_found = c->advice.result == ADVICE_FOUND, is_unknown = c->advice.result == ADVICE_UNKNOWN;

		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:i}", "kind", c->advice.kind, "result",
						results[c->advice.result], "evidence",
						is_found ? json_string(c->advice.evidence) : json_null(), "remedy",
						is_found ? json_string(c->advice.remedy) : json_null(), "missing",
						is_unknown ? json_string(c->advice.evidence) : json_null(), "node",
						is_found && *c->node ? json_string(c->node) : json_null(), "nodes",
						(int) c->nodes));
	}
	return rows;
}

static int print_found(const struct trace_advised *a, struct err *e)
{
	struct table *table = table_new("FOUND|EVIDENCE");

	for (const struct trace_advised_check *c = a->checks; c < a->checks + a->n; c++) {
		if (c->advice.result != ADVICE_FOUND)
			continue;
		table_cell(table, "%s", c->advice.kind);
		table_colour(table, COLOUR_YELLOW);
		if (a->nodes > 1 && *c->node && c->nodes > 1)
			table_cell(table, "%s: %s (on %u of %u nodes)", c->node, c->advice.evidence, c->nodes,
				   a->nodes);
		else
			table_cell(table, "%s%s%s", a->nodes > 1 ? c->node : "", a->nodes > 1 && *c->node ? ": " : "",
				   c->advice.evidence);
		table_cell(table, "|-> %s", c->advice.remedy);
	}
	return table_finish(table, e);
}

static int found_print(const struct trace_advised *a, const char *name, const char *what, struct err *e)
{
	unsigned found = results_count(a, ADVICE_FOUND), made = a->n - results_count(a, ADVICE_UNKNOWN);
	/* "far memory (near_fills), slow clock, slow domain (cycles)" */
	const char *lacks = "", *before = "not checked, for lack of the event, trace or file: ";
	int rc;

	printf("%s: %s, %.1f s: %u of %u checks found something\n\n", name, what, a->seconds, found, made);
	rc = found ? print_found(a, e) : 0;
	for (const struct trace_advised_check *c = a->checks; c < a->checks + a->n; c++)
		if (c->advice.result == ADVICE_UNKNOWN) {
			if (strcmp(lacks, c->advice.evidence))
				printf(*lacks ? " (%s)" : "%s", lacks);
			printf("%s%s", *lacks ? ", " : before, c->advice.kind);
			lacks = c->advice.evidence;
		}
	printf(*lacks ? " (%s)\n" : "%s", lacks);
	return rc;
}

/* --- one node --- */

/* NODE.tasks, or NULL: there is none, or, with a warning, it cannot be read. */
static struct trace_tasks *advise_tasks(const char *path)
{
	struct trace_tasks *t;
	struct err e;

	if (access(path, F_OK))
		return NULL;
	if (!(t = trace_tasks_read(path, &e)))
		log_warning("%s", e.text);
	return t;
}

int advise_traces(struct trace *const *t, const char *const *names, unsigned n, bool as_json, struct err *e)
{
	char *path = trace_path_beside(names[0], ".tasks");
	struct trace_tasks *tasks = path ? advise_tasks(path) : NULL;
	struct trace_advised a = {0};
	int rc = found_add(&a, &(struct advice_node){ t, names, n, tasks, NULL, NULL }, t[0]->head.node, e);
	char what[32];

	snprintf(what, sizeof(what), "%u trace%s", n, n > 1 ? "s" : "");
	if (rc == 0 && !as_json)
		rc = found_print(&a, *t[0]->head.node ? t[0]->head.node : "node", what, e);
	else if (rc == 0)
		rc = cmd_print_new(json_pack("{s:s, s:I, s:f, s:o}", "node", t[0]->head.node, "traces",
					     (json_int_t) a.traces, "seconds", a.seconds, "checks", found_json(&a)), e);
	found_free(&a);
	trace_tasks_free(tasks);
	free(path);
	return rc;
}

/* --- places of the ranks, by their matrix --- */

/*
 * Whether a step's ranks would communicate over shorter distances in another order on the same cores: the cost of their
 * places, by `topiary map`'s costs and the nodes' shapes, beside that of the best mapping that it finds.
 */
struct mapping_check {
	const char *step;		/* for errors */
	const char *matrix;		/* --matrix; NULL: the file of the job's --topo-capture, if there is one */
	const char *snapshot;		/* --snapshot, or NULL */
	struct trace_tasks *const *nodes;	/* of the step */
	unsigned n;
};

#define SEED 1
#define GAIN 0.1		/* of the present cost; runs of one mapping differ by less */

/* A rank's place is its first core, so that those of several cores are mapped alike: "cn1=0,4;cn2=0,4". */
static int words_make(const struct mapping_check *a, struct buf *words, struct err *e)
{
	hwloc_bitmap_t firsts = hwloc_bitmap_alloc();
	int rc = firsts ? 0 : err_set(e, "out of memory");

	for (unsigned i = 0; rc == 0 && i < a->n; i++) {
		const struct trace_tasks *t = a->nodes[i];
		char *list = NULL;

		hwloc_bitmap_zero(firsts);
		for (unsigned k = 0; k < t->n; k++)
			if (!hwloc_bitmap_iszero(t->list[k].cores))
				hwloc_bitmap_set(firsts, hwloc_bitmap_first(t->list[k].cores));
		if ((unsigned) hwloc_bitmap_weight(firsts) < t->n)
			rc = err_set(e, "%s: the ranks of %s are not bound to cores of their own, see --topo-place",
				     a->step, t->node);
		else if (hwloc_bitmap_list_asprintf(&list, firsts) < 0)
			rc = err_set(e, "out of memory");
		else if (t->n)
			buf_printf(words, "%s%s=%s", words->len ? ";" : "", t->node, list);
		free(list);
	}
	hwloc_bitmap_free(firsts);
	return rc || words->failed ? rc ? rc : err_set(e, "out of memory") : 0;
}

/* place[rank], or NULL with an error. */
static unsigned *places_now(const struct mapping_check *a, const struct places *p, unsigned ranks, struct err *e)
{
	unsigned *place = calloc(ranks, sizeof(*place));

	if (!place)
		err_set(e, "out of memory");
	for (unsigned i = 0; place && i < a->n; i++)
		for (unsigned k = 0; place && k < a->nodes[i]->n; k++) {
			const struct trace_task *t = &a->nodes[i]->list[k];
			unsigned at = 0, core = hwloc_bitmap_first(t->cores);

			while (at < p->nplaces && (p->core[p->leaf[p->place[at].leaf]] != core ||
						   strcmp(p->hosts[p->place[at].host], a->nodes[i]->node)))
				at++;
			place[t->rank] = at;
			if (at < p->nplaces)
				continue;
			err_set(e, "%s: core %d of rank %u is not in the snapshot's shape of %s", a->step,
				(int) core, t->rank, a->nodes[i]->node);
			free(place);
			place = NULL;
		}
	return place;
}

static int compare(const struct mapping_check *a, const char *name, const struct matrix *m, const struct places *p,
		   struct advice *out, struct err *e)
{
	unsigned *place = places_now(a, p, m->ranks, e);
	const char *slash = strrchr(name, '/');
	struct mapping best;
	int rc = place ? mapping_solve(m, p, EFFORT_NORMAL, SEED, &best, e) : -1;

	if (rc == 0) {
		double now = mapping_cost(m, p, place);

		if (now > 0 && best.cost <= (1 - GAIN) * now) {
			out->result = ADVICE_FOUND;
			snprintf(out->evidence, sizeof(out->evidence), "the messages of the %u ranks in %.80s cost "
				 "%.4g where the ranks are, %.4g as topiary map places them: %.0f %% less", m->ranks,
				 slash ? slash + 1 : name, now, best.cost, 100 * (now - best.cost) / now);
		}
		mapping_free(&best);
	}
	free(place);
	return rc;
}

static int places_load(const struct cmd *c, const struct mapping_check *a, struct hierarchy *network,
		       struct place_job *job, struct err *e)
{
	struct err without = {""};
	struct snapshot *s = published_snapshot(c, a->snapshot, e);
	struct costs costs = {0};
	struct place_site site = { .snapshot = s, .network = network, .without = &without, .costs = &costs };
	struct buf words = {0};
	int rc = s && !costs_load(c, a->snapshot ? "default" : NULL, &costs, e) && !words_make(a, &words, e) ?
		 job_from_words(words.data ? words.data : "", &site, job, e) : -1;

	buf_free(&words);
	costs_free(&costs);
	snapshot_free(s);
	return rc;
}

static int map_check(const struct cmd *c, const struct mapping_check *a, const char *name, struct advice *out,
		     struct err *e)
{
	unsigned ranks = 0;
	struct place_job job = {0};
	struct hierarchy *network = NULL;
	struct matrix *whole, *m = NULL;
	int rc = -1;

	for (unsigned i = 0; i < a->n; i++)
		ranks += a->nodes[i]->n;
	if (!ranks)
		return err_set(e, "%s: no ranks in its files NODE.tasks, which --topo-monitor writes", a->step);
	if (a->n < a->nodes[0]->nodes)
		return err_set(e, "%s: NODE.tasks of %u of its %u nodes is missing", a->step, a->nodes[0]->nodes - a->n,
			       a->nodes[0]->nodes);
	for (unsigned i = 0; i < a->n; i++)
		for (unsigned t = 0; t < a->nodes[i]->n; t++)
			if (a->nodes[i]->list[t].rank >= ranks)
				return err_set(e, "%s: %s.tasks has rank %u, and all nodes have %u ranks together",
					       a->step, a->nodes[i]->node, a->nodes[i]->list[t].rank, ranks);
	if (!(whole = matrix_read(name, e)))
		return -1;
	if (ranks > whole->ranks)
		err_set(e, "%s: the matrix has %u ranks, the step %u", name, whole->ranks, ranks);
	else if (!(m = ranks == whole->ranks ? whole : matrix_range(whole, 0, ranks)))
		err_set(e, "out of memory");
	network = m && !a->snapshot ? published_network(c) : NULL;
	if (m && !places_load(c, a, network, &job, e))
		rc = compare(a, name, m, job.places, out, e);
	places_free(job.places);
	hierarchy_free(network);
	if (m != whole)
		matrix_free(m);
	matrix_free(whole);
	return rc;
}

/*
 * ADVICE_UNKNOWN with the reason where ranks, matrix or shapes are not known. 0, or -1 with an error: --matrix was
 * named and cannot be used.
 */
static int advise_map(const struct cmd *c, const struct mapping_check *a, struct advice *out, struct err *e)
{
	const char *name = a->matrix ? a->matrix : a->n ? a->nodes[0]->capture : "";
	struct err why;

	*out = (struct advice){ .kind = "mapping", .remedy = "map the ranks by it: sbatch --topo-matrix=FILE" };
	if (!*name || (!a->matrix && access(name, R_OK)))
		err_set(&why, "--matrix");
	else if (!map_check(c, a, name, out, &why))
		return 0;
	if (a->matrix)
		return err_set(e, "%s", why.text);
	out->result = ADVICE_UNKNOWN;
	snprintf(out->evidence, sizeof(out->evidence), "%.250s", why.text);
	return 0;
}

/* --- `topiary advise` --- */

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
		       struct advice_sums *sums, struct err *e)
{
	struct trace *t = node->trace ? trace_open(node->trace, e) : NULL;
	const char *name = node->trace;
	struct advice_node only = { .tasks = tasks, .lack = node->trace ? "a trace that can be judged" : NULL };
	struct advice_node whole = { .traces = &t, .names = &name, .n = 1, .tasks = tasks, .sums = sums };
	int rc = t ? found_add(a, &whole, node->name, e) : -1;
	double seconds = t ? t->end * 1e-9 : 0;

	trace_close(t);
	if (!rc || !tasks)
		return rc;
	if (node->trace)
		log_warning("%s", e->text);
	a->seconds = fmax(a->seconds, seconds);
	return found_add(a, &only, node->name, e);
}

struct step {
	const struct step_files *files;
	struct trace_tasks **tasks;	/* of each node, or NULL */
	struct advice_sums *sums;	/* of each node */
	struct trace_advised found;
};

static int step_check_mapping(const struct cmd *c, const struct args *a, struct step *s, struct err *e)
{
	struct trace_tasks **known = calloc(s->files->n, sizeof(*known));
	struct mapping_check how = { .step = s->files->name, .matrix = a->matrix, .snapshot = a->snapshot,
				  .nodes = known };
	struct advice advice;
	int rc;

	if (!known)
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < s->files->n; i++)
		if (s->tasks[i])
			known[how.n++] = s->tasks[i];
	rc = advise_map(c, &how, &advice, e) || found_add_step(&s->found, &advice, e) ? -1 : 0;
	free(known);
	return rc;
}

ORDER(by_number, double, COMPARE(*x, *y))

/* A node that has less than the median of all, of two: than the other. */
static int step_compare_nodes(struct step *s, struct err *e)
{
	static const struct {
		struct advice advice;
		size_t offset;			/* in struct advice_sums */
		unsigned nodes;			/* at least */
		double part, median;		/* less than this part of a median of at least so much is a finding */
		const char *missing;
	} checks[] = {
		{ { .kind = "uneven nodes", .remedy = "give each node as much work, or request fewer nodes: -N" },
		  offsetof(struct advice_sums, busy), 2, 0.7, 0.5, "busy on two nodes" },
		{ { .kind = "slow node", .remedy = "have the administrator check the node; --exclude it meanwhile" },
		  offsetof(struct advice_sums, clock), 3, 0.85, 0, "cycles on three nodes" },
	};
	double *all = calloc(s->files->n, sizeof(*all));
	int rc = all ? 0 : err_set(e, "out of memory");

	for (size_t k = 0; rc == 0 && k < sizeof(checks) / sizeof(checks[0]); k++) {
		struct advice found = checks[k].advice;
		const char *lowest = NULL;
		double least = INFINITY;
		unsigned n = 0;

		for (unsigned i = 0; i < s->files->n; i++) {
			double x = *(const double *) ((const char *) &s->sums[i] + checks[k].offset);

			if (isnan(x))
				continue;
			all[n++] = x;
			if (x < least) {
				least = x;
				lowest = s->files->nodes[i].name;
			}
		}
		qsort(all, n, sizeof(*all), by_number);
		if (n < checks[k].nodes) {
			found.result = ADVICE_UNKNOWN;
			snprintf(found.evidence, sizeof(found.evidence), "%s", checks[k].missing);
		} else if (all[n / 2] >= checks[k].median && least < checks[k].part * all[n / 2]) {
			found.result = ADVICE_FOUND;
			if (k == 0)
				snprintf(found.evidence, sizeof(found.evidence),
					 "the cores of %.64s were busy for %.0f %% of the time, those of the median "
					 "node for %.0f %%", lowest, 100 * least, 100 * all[n / 2]);
			else
				snprintf(found.evidence, sizeof(found.evidence),
					 "%.64s ran at %.2f GHz, the median node at %.2f GHz", lowest, least,
					 all[n / 2]);
		}
		rc = found_add_step(&s->found, &found, e);
	}
	free(all);
	return rc;
}

static int step_advise(const struct cmd *c, const struct args *a, struct step *s, struct err *e)
{
	struct err why = {"its list of tasks cannot be read"};
	unsigned judged = 0;

	s->tasks = calloc(s->files->n, sizeof(*s->tasks));
	s->sums = calloc(s->files->n, sizeof(*s->sums));
	if (!s->tasks || !s->sums)
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < s->files->n; i++) {
		const struct step_node *node = &s->files->nodes[i];

		s->tasks[i] = node->tasks ? advise_tasks(node->tasks) : NULL;
		s->sums[i] = (struct advice_sums){ NAN, NAN };
		if (!node_advise(&s->found, node, s->tasks[i], &s->sums[i], &why))
			judged++;
		else if (s->files->n > 1)
			log_warning("%s", why.text);
	}
	if (!judged && s->files->n == 1)
		return err_set(e, "%s", why.text);
	if (!judged)
		return err_set(e, "%s: nothing in it can be judged", s->files->name);
	if (s->files->n > 1 && step_compare_nodes(s, e))
		return -1;
	/* At a step's end neither a registry nor the time of a mapping is worth waiting for. */
	return a->brief && !a->matrix ? 0 : step_check_mapping(c, a, s, e);
}

/* --- output --- */

static void print_brief(const struct step *s)
{
	unsigned found = results_count(&s->found, ADVICE_FOUND);

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
	snprintf(what, sizeof(what), "%s%u node%s", judged, all, PLURAL(all));
	if (number)
		putchar('\n');
	return found_print(&s->found, name, what, e);
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
			json_array_append_new(rows, json_pack("{s:s, s:i, s:f, s:o}", "step", s.files->name, "nodes",
							      (int) s.found.nodes, "seconds", s.found.seconds, "checks",
							      found_json(&s.found)));
		else if (a->brief)
			print_brief(&s);
		else if (print_step(&s, judged, &why))
			rc = -1;
		judged += !rc;
		for (unsigned task = 0; s.tasks && task < s.files->n; task++)
			trace_tasks_free(s.tasks[task]);
		free(s.tasks);
		free(s.sums);
		found_free(&s.found);
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
