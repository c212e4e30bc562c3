/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "steer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/settings.h"
#include "snapshot_watch.h"

/* Tries with ever more nodes before the job is left to Slurm: each costs as much as Slurm's own. */
#define TRIES 3

/* A node on which the job fits, and how well. */
struct seat {
	int node;
	uint64_t weight;	/* the administrator's; the lighter node comes first whatever its shape */
	size_t cost;		/* index into costs */
};

struct plan {
	struct seat *seats;
	size_t nseats;
	struct score_cost *costs;
	size_t ncosts;
	struct core_map busy;	/* cores that jobs hold */
	struct core_map barred;	/* cores that this job must leave alone on its seats */
};

/* What was worked out for the last node; in a cluster bought at once the next one is mostly the same. */
struct memo {
	const struct shape *shape;
	unsigned need;
	bool *free_cores, *chosen;
	bool fits;
};

static struct settings settings;
static bool started;

void steer_start(void)
{
	char *path = get_extra_conf_path("topiary.conf");
	struct err e;

	steer_stop();
	if (settings_load(path, &settings, &e)) {
		error("topiary: %s; jobs are placed as without Topiary", e.text);
		snapshot_watch_drop();
	} else if (snapshot_watch_start(settings.snapshot_file, settings.snapshot_poll, &e)) {
		error("topiary: %s", e.text);
		settings_free(&settings);
	} else {
		started = true;
	}
	xfree(path);
}

void steer_stop(void)
{
	snapshot_watch_stop();
	if (started)
		settings_free(&settings);
	started = false;
}

/* The level to keep within, or -1 for "off" and "node", which ask for nothing. A word that is no level asks for nothing more. */
static int level_wanted(const job_record_t *job)
{
	const char *word = glue_job_level(job);
	int level;

	if (!word)
		word = settings.topo_level;
	if (!strcasecmp(word, "off"))
		return -1;
	level = level_parse(word);
	if (level == LEVEL_NODE)
		return -1;
	return level < 0 ? LEVEL_CORE : level;
}

static const struct shape *node_shape(struct snapshot_view *v, const node_record_t *node)
{
	const struct shape *shape = node->name ? snapshot_view_shape(v, node->name) : NULL;

	if (!shape || glue_shape_agrees(shape, node))
		return shape;
	if (snapshot_view_first(v, node->name))
		error("topiary: node %s: the snapshot has %u cores and %u threads, Slurm %u sockets, %u cores and %u threads a core: "
		      "it is placed as without Topiary", node->name, shape->cores, shape->pus, node->tot_sockets,
		      node->tot_cores, node->threads);
	return NULL;
}

static void *more(void *array, size_t count, size_t size)
{
	/* Grow at powers of two. */
	return count & (count - 1) ? array : xrealloc(array, (count ? 2 * count : 1) * size);
}

static void plan_seat(struct plan *p, int node, const struct memo *m)
{
	unsigned at = p->barred.offset[node];

	p->seats = more(p->seats, p->nseats, sizeof(*p->seats));
	p->seats[p->nseats++] = (struct seat){
		.node = node,
		.weight = node_record_table_ptr[node]->sched_weight,
		.cost = p->ncosts - 1,
	};
	for (unsigned c = 0; c < m->shape->cores; c++)
		if (!m->chosen[c])
			bit_set(p->barred.bits, at + c);
}

static bool memo_same(const struct memo *m, const struct shape *shape, unsigned need, const bool *free_cores)
{
	return m->shape == shape && m->need == need && !memcmp(m->free_cores, free_cores, shape->cores * sizeof(*free_cores));
}

static void plan_node(struct plan *p, struct memo *m, int node, const struct shape *shape, const struct score_need *need,
		      bool *free_cores)
{
	struct score_cost cost;

	if (!memo_same(m, shape, need->cores, free_cores)) {
		m->shape = shape;
		m->need = need->cores;
		memcpy(m->free_cores, free_cores, shape->cores * sizeof(*free_cores));
		if ((m->fits = !score_pick(shape, free_cores, need, m->chosen, &cost))) {
			p->costs = more(p->costs, p->ncosts, sizeof(*p->costs));
			p->costs[p->ncosts++] = cost;
		}
	}
	if (m->fits)
		plan_seat(p, node, m);
}

static void plan_make(struct plan *p, const job_record_t *job, const struct job_ask *ask, enum level within,
		      struct snapshot_view *v, const bitstr_t *nodes, const slurm_exclusion_t *excluded)
{
	struct memo m = { .free_cores = xcalloc(SHAPE_MAX_CORES, sizeof(bool)), .chosen = xcalloc(SHAPE_MAX_CORES, sizeof(bool)) };
	bool *free_cores = xcalloc(SHAPE_MAX_CORES, sizeof(bool));

	core_map_init(&p->busy);
	core_map_init(&p->barred);
	glue_busy_cores(&p->busy, nodes);
	for (int i = 0; i < node_record_count; i++) {
		const struct shape *shape = bit_test((bitstr_t *) nodes, i) ? node_shape(v, node_record_table_ptr[i]) : NULL;
		struct score_need need = { .within = within };

		if (!shape)
			continue;
		need.cores = glue_cores_needed(job, ask, i);
		glue_free_cores(i, &p->busy, excluded, free_cores);
		plan_node(p, &m, i, shape, &need, free_cores);
	}
	xfree(free_cores);
	xfree(m.free_cores);
	xfree(m.chosen);
}

static void plan_free(struct plan *p)
{
	core_map_fini(&p->busy);
	core_map_fini(&p->barred);
	xfree(p->seats);
	xfree(p->costs);
}

static int seat_compare(const struct plan *p, const struct seat *a, const struct seat *b)
{
	if (a->weight != b->weight)
		return a->weight < b->weight ? -1 : 1;
	return a->cost == b->cost ? 0 : score_compare(&p->costs[a->cost], &p->costs[b->cost]);
}

/* Add to `in` the nodes that come next: the best of those worse than *last, and all as good. *last is then the class added. */
static bool add_class(const struct plan *p, const struct seat **last, bitstr_t *in)
{
	const struct seat *best = NULL;

	for (size_t i = 0; i < p->nseats; i++)
		if ((!*last || seat_compare(p, &p->seats[i], *last) > 0) && (!best || seat_compare(p, &p->seats[i], best) < 0))
			best = &p->seats[i];
	for (size_t i = 0; best && i < p->nseats; i++)
		if (seat_compare(p, &p->seats[i], best) == 0)
			bit_set(in, p->seats[i].node);
	if (best)
		*last = best;
	return best;
}

static void add_all(const struct plan *p, bitstr_t *in)
{
	for (size_t i = 0; i < p->nseats; i++)
		bit_set(in, p->seats[i].node);
}

/* Several nodes in a network that Slurm knows: it is to choose them among all, near to each other. */
static bool network_first(const struct job_ask *ask)
{
	return ask->nodes > 1 && slurm_conf.topology_plugin && strcmp(slurm_conf.topology_plugin, "topology/none");
}

/* The nodes of the next try, more than in the one before; false when there are none. */
static bool widen(const struct plan *p, const struct job_ask *ask, int try, const struct seat **last, bitstr_t *in)
{
	int had = bit_set_count(in);

	if (try == TRIES - 1 || network_first(ask))
		add_all(p, in);
	else
		while (add_class(p, last, in) && (uint32_t) bit_set_count(in) < ask->nodes)
			;
	return bit_set_count(in) > had;
}

/* Where the job names as many nodes as it wants, no other comes in question. */
static const bitstr_t *candidates(const job_record_t *job, const struct job_ask *ask, const bitstr_t *nodes)
{
	bitstr_t *required = job->details->req_node_bitmap;

	return required && (uint32_t) bit_set_count(required) >= ask->nodes ? required : nodes;
}

static bool has_required(const job_record_t *job, const bitstr_t *in)
{
	bitstr_t *required = job->details->req_node_bitmap;

	return !required || bit_super_set(required, (bitstr_t *) in);
}

static void say(const job_record_t *job, const bitstr_t *nodes, const char *what, const char *why)
{
	char *names;

	if (get_log_level() < LOG_LEVEL_DEBUG)
		return;
	names = bitmap2node_name((bitstr_t *) nodes);
	debug("topiary: JobId=%u nodes %s cores %s: %s", job->job_id, names, what, why);
	xfree(names);
}

/* The cores chosen on the first of these nodes, for the log. */
static void say_chosen(const job_record_t *job, const struct plan *p, const bitstr_t *nodes)
{
	int node = bit_ffs((bitstr_t *) nodes);
	unsigned cores = node_record_table_ptr[node]->tot_cores, at = p->barred.offset[node];
	bitstr_t *mine;
	char text[128];

	if (get_log_level() < LOG_LEVEL_DEBUG)
		return;
	mine = bit_alloc(cores);
	for (unsigned c = 0; c < cores; c++)
		if (!bit_test(p->barred.bits, at + c))
			bit_set(mine, c);
	bit_fmt(text, sizeof(text), mine);
	say(job, nodes, text, "the least hardware cut");
	FREE_NULL_BITMAP(mine);
}

/* One call of job_test, as it came. */
struct call {
	job_test_t inner;
	job_record_t *job;
	bitstr_t *nodes;
	uint32_t min_nodes, max_nodes, req_nodes;
	uint16_t mode;
	slurm_list_t *preempted;
	slurm_exclusion_t *excluded;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
	will_run_data_t *will_run;
#endif
};

/*
 * Try these nodes with the plan's cores. Jobs to preempt are not offered: none is stopped for the sake of a shape. True when the
 * job can start there now; else all that the call changed is put back.
 */
static bool try_nodes(const struct call *c, const struct plan *p, const bitstr_t *in)
{
	slurm_exclusion_t *excluded = glue_exclusion_new(c->excluded, &p->barred, in);
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
	will_run_data_t *will_run = c->will_run;
#endif
	bitstr_t *nodes = bit_copy((bitstr_t *) in);
	time_t start = c->job->start_time;
	bool switches = c->job->best_switch;
	int rc = c->inner(c->job, nodes, c->min_nodes, c->max_nodes, c->req_nodes, c->mode, NULL, c->preempted, excluded
			  WILL_RUN_ARG);
	bool good = rc == SLURM_SUCCESS && (!SELECT_IS_MODE_WILL_RUN(c->mode) || c->job->start_time <= time(NULL));

	if (good) {
		bit_copybits(c->nodes, nodes);
	} else {
		c->job->start_time = start;
		c->job->best_switch = switches;
	}
	FREE_NULL_BITMAP(nodes);
	glue_exclusion_free(excluded);
	return good;
}

static bool try_plan(const struct call *c, const struct plan *p, const struct job_ask *ask)
{
	bitstr_t *in = bit_alloc(bit_size(c->nodes));
	const struct seat *last = NULL;
	bool good = false;

	for (int try = 0; !good && try < TRIES && widen(p, ask, try, &last, in); try++)
		if (has_required(c->job, in))
			good = try_nodes(c, p, in);
	FREE_NULL_BITMAP(in);
	return good;
}

static bool steered_mode(uint16_t mode)
{
	return !SELECT_IS_MODE_TEST_ONLY(mode) && !SELECT_IS_MODE_RESV(mode) && !SELECT_IS_PREEMPT_ON_FULL_TEST(mode);
}

/* Why the job is left to Slurm, or NULL when it was placed. */
static const char *steer(const struct call *c)
{
	struct plan plan = {0};
	struct snapshot_view *v;
	struct job_ask ask;
	const char *why;
	int level;

	if ((why = glue_job_ask(c->job, c->min_nodes, c->max_nodes, c->req_nodes, &ask)))
		return why;
	if ((level = level_wanted(c->job)) < 0)
		return "no level wanted";
	if (!(v = snapshot_view_get()))
		return "no snapshot";
	plan_make(&plan, c->job, &ask, level, v, candidates(c->job, &ask, c->nodes), c->excluded);
	if (!try_plan(c, &plan, &ask))
		why = "no choice of ours can start now";
	else
		say_chosen(c->job, &plan, c->nodes);
	plan_free(&plan);
	snapshot_view_put(v);
	return why;
}

int steer_job_test(job_test_t inner, job_record_t *job, bitstr_t *nodes, uint32_t min_nodes, uint32_t max_nodes, uint32_t req_nodes,
		   uint16_t mode, slurm_list_t preemptees, slurm_list_t *preempted, slurm_exclusion_t *excluded WILL_RUN_PARM)
{
	struct call call = {
		.inner = inner, .job = job, .nodes = nodes, .mode = mode, .preempted = preempted, .excluded = excluded,
		.min_nodes = min_nodes, .max_nodes = max_nodes, .req_nodes = req_nodes,
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
		.will_run = will_run,
#endif
	};
	const char *why;

	if (started && steered_mode(mode)) {
		if (!(why = steer(&call)))
			return SLURM_SUCCESS;
		say(job, nodes, "any", why);
	}
	return inner JOB_TEST_ARGS;
}
