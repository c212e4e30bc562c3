/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "comment.h"

#include "occupancy.h"
#include "score/score_tree.h"

/*
 * The verdict of the job that slurmctld is about to start. Kept until then, because the record of an array task is
 * split off only after job_test.
 */
static struct {
	const job_record_t *job;
	struct verdict verdict;
} decided;

static bool in_admin = true, in_system;

void comment_begin(const char *place)
{
	in_admin = !strcasecmp(place, "admin");
	in_system = !strcasecmp(place, "system");
}

/* Replaces the previous line in a comment with a new one, or with none (""). */
static void comment_write(char **comment, const char *line)
{
	const char *old = *comment ? *comment : "";
	size_t start = strlen(old), len = 0;
	struct buf b = {0};

	if (verdict_find(old, &start, &len)) {
		start = strlen(old);
		len = 0;
	}
	if (!len && !*line)
		return;
	buf_add(&b, old, start - (!*line && start && old[start - 1] == ' '));
	if (start && old[start - 1] != ' ' && !len)
		buf_puts(&b, " ");
	buf_puts(&b, line);
	buf_puts(&b, old + start + len);
	if (!b.failed) {
		xfree(*comment);
		*comment = b.len ? xstrdup(b.data) : NULL;
	}
	buf_free(&b);
}

/* In one place only, although TopoVerdicts may have changed since the last. */
static void verdict_put(job_record_t *job, const char *line)
{
	comment_write(&job->admin_comment, in_admin ? line : "");
	comment_write(&job->system_comment, in_system ? line : "");
}

static void verdict_put_new(job_record_t *job, const struct verdict *v)
{
	struct buf line = {0};

	verdict_write(v, &line);
	verdict_put(job, line.failed ? "" : line.data);
	buf_free(&line);
}

/* Reads the job's verdict. Returns 0, or 1 or -1 as verdict_read. */
static int verdict_get(const job_record_t *job, struct verdict *out)
{
	int rc = verdict_read(job->admin_comment, out, NULL);

	return rc > 0 ? verdict_read(job->system_comment, out, NULL) : rc;
}

static void comment_set(job_record_t *job, const struct verdict *v)
{
	if (v->outcome == VERDICT_WAITS) {
		verdict_put_new(job, v);
		return;
	}
	decided.job = job;
	decided.verdict = *v;
}

void comment_end(void)
{
	decided.job = NULL;
}

bool comment_clear(job_record_t *job, bool waits)
{
	struct verdict v;

	if (decided.job == job)
		comment_end();
	if (verdict_get(job, &v) || (!waits && v.outcome == VERDICT_WAITS))
		return false;
	verdict_put(job, "");
	return v.own_cores;
}

static struct verdict verdict_begin(const job_record_t *job, const struct job_request *req,
				    const struct candidate_set *s, enum verdict_outcome outcome)
{
	const bitstr_t *got = outcome != VERDICT_WAITS && job->job_resrcs ? job->job_resrcs->node_bitmap : NULL;
	/* A task's cores depend on the node's threads: a verdict has them for its first node or the first candidate. */
	int node = got ? glue_next(got, 0) : s && s->count ? s->list[0].node : s ? glue_next(s->nodes, 0) : -1;
	struct score_need need = {0};
	struct verdict v = { .outcome = outcome, .request = req->request, .nodes = req->min_nodes,
			     .more_nodes = req->max_nodes > req->min_nodes, .all_tasks = req->tasks,
			     .decided_row = -1, .decided_level = -1 };

	if (req->unspread && outcome == VERDICT_WAITS) {
		v.request.fit = FIT_SPREAD;
		v.request.level = req->spread_level;
	} else if (req->unspread) {
		v.unspread = 1 + req->spread_level;
		snprintf(v.reason, sizeof(v.reason), "fit spread became prefer: its tasks could not be spread on cores"
			 " near the memory that it requires");
	}
	if (node >= 0)
		job_request_need(req, 1, node, &need);
	v.task_cores = device_cpus(job) ? 0 : need.task_cores;
	/* If the search was cut short, it is not known how many have room. */
	if (s && !s->budget.refused && !candidates_cache.refused) {
		v.candidates = s->candidates;
		v.room = s->room;
		v.unknown = s->unknown;
	}
	return v;
}

static unsigned cores_on(const job_record_t *job, int node)
{
	const job_resources_t *r = job->job_resrcs;
	unsigned at = 0;

	if (!r || !r->core_bitmap)
		return 0;
	for (int i = glue_next(r->node_bitmap, 0); i >= 0; i = glue_next(r->node_bitmap, i + 1)) {
		if (i == node)
			return bit_set_count_range(r->core_bitmap, at, at + glue_cores(i));
		at += glue_cores(i);
	}
	return 0;
}

/* For one node, as most jobs have, without a look at all of them. */
static void nodes_write(bitstr_t *nodes, int last, const char *cores, struct buf *out)
{
	char *names = bit_ffs(nodes) == last ? NULL : bitmap2node_name(nodes);

	buf_printf(out, "%s:%s", names ? names : node_record_table_ptr[last]->name, cores);
	xfree(names);
}

/* The job's core bitmap has its nodes one after another; nodes with the same cores are written together. */
static void cores_write(const job_record_t *job, size_t most, struct buf *out)
{
	const job_resources_t *r = job->job_resrcs;
	bitstr_t *nodes = bit_alloc(node_record_count);
	char last[128] = "", cores[128];
	unsigned at = 0;
	int before = -1;

	/* Each name is searched among all nodes: stop when the verdict is full. */
	for (int i = glue_next(r->node_bitmap, 0); i >= 0 && out->len < most; i = glue_next(r->node_bitmap, i + 1)) {
		unsigned n = glue_cores(i);
		bitstr_t *own = bit_alloc(n);

		for (unsigned c = 0; c < n && at + c < bit_size(r->core_bitmap); c++)
			if (bit_test(r->core_bitmap, at + c))
				bit_set(own, c);
		at += n;
		bit_fmt(cores, sizeof(cores), own);
		FREE_NULL_BITMAP(own);
		if (*last && strcmp(cores, last)) {
			nodes_write(nodes, before, last, out);
			buf_puts(out, " ");
			bit_clear_all(nodes);
		}
		bit_set(nodes, i);
		before = i;
		snprintf(last, sizeof(last), "%s", cores);
	}
	if (before >= 0)
		nodes_write(nodes, before, last, out);
	FREE_NULL_BITMAP(nodes);
}

/*
 * Where the last core of the tasks has a thread to spare, the score takes it for a part of one more task: then the
 * splits are known of a single task only.
 */
static void splits_set(struct verdict *v, const struct job_request *req, const struct candidate_node *worst)
{
	struct score_need need;

	job_request_need(req, worst->tasks, worst->node, &need);
	if ((uint64_t) need.cores * need.task.core_cpus == (uint64_t) worst->tasks * need.task.cpus)
		return;
	for (enum level level = LEVEL_NUMA; level <= LEVEL_L3; level++)
		cost_set(&v->cost, SCORE_CUTS, level, worst->tasks > 1 || need.task_cores < 2 ? 0 :
			 score_count(&v->cost, SCORE_TOUCHED, level) - 1);
}

/* The levels that a node has, as bits. */
static unsigned levels_on(int node)
{
	const struct shape *shape = node_shape(node);
	unsigned has = 0;

	for (size_t i = 0; shape && i < shape->ndomains; i++)
		has |= 1u << shape->domains[i].level;
	return has;
}

/*
 * Records why its nodes are better than the best other one, by the first difference in the order of the choice. Where
 * the other is better, because Slurm chose the nodes, nothing is recorded, nor where either node lacks the level that
 * decided, or what else is free is not known. in_order: they were chosen by that comparison.
 */
static void runner_up_set(struct verdict *v, const struct candidate_node *own, const struct candidate_node *other,
			  bool in_order)
{
	static const enum verdict_better by[] = {
		[CHOOSER_DEVICES] = BETTER_DEVICES, [CHOOSER_UNSERVED] = BETTER_DEVICES,
		[CHOOSER_MEMORY] = BETTER_MEMORY, [CHOOSER_KINDS] = BETTER_KINDS,
		[CHOOSER_SHARING] = BETTER_SHARING, [CHOOSER_SPARE] = BETTER_SPARE,
		[CHOOSER_WORTH] = BETTER_WORTH, [CHOOSER_FREE] = BETTER_FREE, [CHOOSER_INDEX] = BETTER_BY_COST,
	};
	enum chooser_row by_row;
	enum score_row row;
	enum level level;
	int differ;

	if (candidate_node_compare(own, other, &by_row) > 0 && by_row != CHOOSER_INDEX)
		return;
	snprintf(v->beside, sizeof(v->beside), "%s", node_record_table_ptr[other->node]->name);
	v->better = by_row == CHOOSER_INDEX && in_order ? BETTER_ORDER : by[by_row];
	if (v->better || !(differ = score_differ(own->cost, other->cost, &row, &level)))
		return;
	v->decided_row = row;
	v->decided_level = level;
	if (row == SCORE_BEYOND)
		level = v->request.fit == FIT_SPREAD && v->request.level == LEVEL_NODE ? LEVEL_L3 : v->request.level;
	/* The other node may be dominated by another of the job's nodes, and not by this one. */
	if (differ > 0 || !(levels_on(own->node) & levels_on(other->node) & 1u << level) ||
	    (v->free_unknown && row >= SCORE_OPEN))
		*v->beside = '\0';
}

/* The candidates of a plan and the others that it was chosen from: NULL for one that occurs twice. */
static const struct candidate_node *candidate_at(const struct plan *p, const struct candidate_set *s, unsigned i)
{
	const struct candidate_node *c = i < p->choice.count ? &p->choice.list[i] : &s->list[i - p->choice.count];

	return i >= p->choice.count && p->choice.chosen[c->node] ? NULL : c;
}

/*
 * Slurm may divide the tasks among the nodes otherwise than planned, and give some of the planned cores: writes the
 * cost of those of the worst node, with no other core known to be free there. Returns that node; -1: it is as planned.
 */
static int given_worst(const job_record_t *job, unsigned planned, enum level level, struct score_cost *out)
{
	const job_resources_t *r = job->job_resrcs;
	unsigned at = 0;
	int worst = -1;

	if (!r->core_bitmap || (unsigned) bit_set_count(r->core_bitmap) >= planned)
		return -1;
	for (int i = glue_next(r->node_bitmap, 0); i >= 0; at += glue_cores(i), i = glue_next(r->node_bitmap, i + 1)) {
		uint64_t *own = calloc(core_set_words(glue_cores(i)) + 1, sizeof(*own));
		const struct shape *shape = node_shape(i);
		struct score_need need = { .task_cores = 1, .fit = FIT_PREFER, .level = level };
		struct score_cost cost;

		for (unsigned c = 0; own && c < glue_cores(i); c++)
			if (bit_test(r->core_bitmap, at + c)) {
				core_set_add(own, c);
				need.cores++;
			}
		if (own && shape && !score_pick(shape, own, &need, NULL, &cost) &&
		    (worst < 0 || score_compare(&cost, out) > 0)) {
			*out = cost;
			worst = i;
		}
		free(own);
	}
	return worst;
}

void comment_placed(job_record_t *job, const struct job_request *req, const struct candidate_set *s,
		    const struct plan *p)
{
	const struct candidate_node *c, *first = NULL, *worst = NULL, *own = NULL, *other = NULL,
				    *last = &p->choice.list[p->choice.count - 1];
	unsigned count = p->choice.count + (p->given ? 0 : s->count), others = p->leaf ? p->leaf : s->count, room = 0,
		 planned = 0;
	struct verdict v = verdict_begin(job, req, s, VERDICT_PLACED);
	const bitstr_t *got = job->job_resrcs ? job->job_resrcs->node_bitmap : NULL;
	bool as_planned = true;
	struct score_need need;
	int given = -1;

	v.nodes = v.more_nodes = 0;
	for (unsigned i = 0; got && i < count; i++) {
		if (!(c = candidate_at(p, s, i)))
			continue;
		room++;
		if (!bit_test((bitstr_t *) got, c->node)) {
			as_planned &= i >= p->choice.count;
			if (i >= p->choice.count && i - p->choice.count < others && !c->required &&
			    c->tasks == last->tasks && (!other || candidate_node_compare(c, other, NULL) < 0))
				other = c;
			continue;
		}
		v.nodes++;
		v.memory_far += c->memory_far;
		planned += c->need_cores;
		if (!first || c->tasks > first->tasks)
			first = c;
		if (!worst || score_compare(c->cost, worst->cost) > 0)
			worst = c;
		/* Named nodes are not compared with others. */
		if (!c->required && c->tasks == last->tasks && (!own || candidate_node_compare(c, own, NULL) > 0))
			own = c;
	}
	if (!first)
		return;
	job_request_need(req, first->tasks, first->node, &need);
	/* Of the cores that Slurm gave, it is known how many tasks they hold. */
	v.tasks = p->given ? MIN(first->tasks, req->tasks - MIN(req->tasks, v.nodes) + 1) : first->tasks;
	v.task_cores = v.task_cores ? need.task_cores : 0;
	/* With --overcommit Slurm decides how many are where, on whatever cores. */
	if ((uint64_t) first->tasks * v.nodes < req->tasks)
		v.tasks = v.task_cores = 0;
	v.cores_per_node = cores_on(job, first->node);
	v.cost = *worst->cost;
	if (!req->whole_nodes)
		given = given_worst(job, planned, req->request.level, &v.cost);
	if (given >= 0)
		v.tasks = v.task_cores = 0;
	else if (!p->given && !req->whole_nodes)
		splits_set(&v, req, worst);
	/* Of cores chosen among those near its devices, or of a kind, the cost does not know what else is free. */
	v.free_unknown = given >= 0 || s->devices.name || node_shape(worst->node)->nkinds > 1;
	for (enum level level = LEVEL_NODE; v.free_unknown && level < LEVEL_CORE; level++)
		for (enum score_row row = level ? SCORE_OPEN : SCORE_LEFT; row <= SCORE_LEFT; row++)
			cost_set(&v.cost, row, level, 0);
	for (enum level level = LEVEL_PACKAGE; level < LEVEL_CORE; level++)
		if (!(levels_on(given < 0 ? worst->node : given) & 1u << level))
			snprintf(v.lacks + strlen(v.lacks), sizeof(v.lacks) - strlen(v.lacks), "%s%s",
				 *v.lacks ? "," : "", level_name(level));
	v.own_cores = req->own_cores;
	v.whole_nodes = req->whole_nodes;
	v.whole_tasks = given < 0 && !p->given && !req->whole_nodes && need.task_cores > 1 &&
			first->tasks * need.task_cores == v.cores_per_node &&
			(worst->tasks == 1 || need.task.cpus % need.task.core_cpus == 0);
	if (!p->given && !s->taken && v.candidates)
		v.room = p->choice.uneven ? p->choice.uneven : room;
	if (own && other && own->weight == other->weight)
		runner_up_set(&v, own, other, as_planned && own->node < other->node);
	comment_set(job, &v);
}

bool comment_started(job_record_t *job, const struct device_distance *d)
{
	struct verdict *v = &decided.verdict;
	struct buf cores = {0};

	if (decided.job != job) {
		comment_end();
		return false;
	}
	if (v->outcome == VERDICT_PLACED && job->job_resrcs && job->job_resrcs->core_bitmap)
		cores_write(job, sizeof(v->cores), &cores);
	if (cores.data)
		snprintf(v->cores, sizeof(v->cores), "%s", cores.data);
	buf_free(&cores);
	if (v->outcome == VERDICT_LEFT && job->job_resrcs) {
		v->nodes = job->job_resrcs->nhosts;
		v->more_nodes = 0;
	}
	v->gpus = d->gpus;
	v->gpus_far = d->gpus_far;
	v->gpus_unknown = d->gpus_unknown;
	v->cores_far = d->cores_far;
	verdict_put_new(job, v);
	comment_end();
	return v->own_cores;
}

void comment_reason(job_record_t *job, const struct job_request *req, const struct candidate_set *s,
		    enum verdict_outcome outcome, const char *reason)
{
	struct verdict v = verdict_begin(job, req, s, outcome), old;

	snprintf(v.reason, sizeof(v.reason), "%.*s%s", (int) (sizeof(v.reason) - sizeof("...")), reason,
		 strlen(reason) > sizeof(v.reason) - sizeof("...") ? "..." : "");
	if (verdict_get(job, &old) || old.outcome != outcome || strcmp(old.reason, v.reason))
		comment_set(job, &v);
}
