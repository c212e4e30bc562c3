/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "steer.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/settings.h"
#include "comment.h"
#include "exclusion.h"
#include "fits.h"
#include "known.h"
#include "later.h"
#include "occupancy.h"
#include "submitted.h"

static struct settings settings;
static struct request site;
static bool started;

static void say_snapshot(bool trouble, const char *line)
{
	if (trouble)
		error("topiary: %s", line);
	else
		info("topiary: %s", line);
}

static int load(struct err *e)
{
	char *path = get_extra_conf_path("topiary.conf");
	int rc = settings_load(path, &settings, e);

	if (rc == 0 && ask_defaults(settings.topo_fit, settings.topo_level, &site, e)) {
		rc = err_within(e, "%s", path);
		settings_free(&settings);
	}
	xfree(path);
	return rc;
}

void steer_start(void)
{
	struct err e;

	steer_stop();
	if (load(&e)) {
		error("topiary: %s; jobs are placed as without Topiary", e.text);
		snapshot_watch_drop();
	} else if (snapshot_watch_start(settings.snapshot_file, settings.snapshot_poll, say_snapshot, &e)) {
		error("topiary: %s", e.text);
		settings_free(&settings);
	} else {
		started = true;
	}
}

void steer_stop(void)
{
	snapshot_watch_stop();
	if (started)
		settings_free(&settings);
	started = false;
	occupancy_end();
	fits_forget();
	known_forget();
}

/* One call of job_test, as it came. */
struct call {
	job_test_t inner;
	job_record_t *job;
	bitstr_t *nodes;
	uint32_t min_nodes, max_nodes, req_nodes;
	uint16_t mode;
	slurm_list_t preemptees, *preempted;
	slurm_exclusion_t *excluded;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
	will_run_data_t *will_run;
#endif
};

static int call_inner(const struct call *c, bitstr_t *nodes, slurm_list_t preemptees, slurm_exclusion_t *excluded)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
	will_run_data_t *will_run = c->will_run;
#endif
	return c->inner(c->job, nodes, c->min_nodes, c->max_nodes, c->req_nodes, c->mode, preemptees, c->preempted, excluded
			WILL_RUN_ARG);
}

/* --- trying --- */

struct attempt {
	const struct call *call;
	slurm_list_t preemptees;	/* offered to it; NULL: none */
	bool later;			/* a later start is good too */
};

static bool has_required(const job_record_t *job, const bitstr_t *in)
{
	bitstr_t *required = job->details->req_node_bitmap;

	return !required || bit_super_set(required, (bitstr_t *) in);
}

/*
 * Try just these seats, with just their cores, for so many nodes. When the job cannot have them, all that the call changed is put
 * back.
 */
static bool try_seats(const struct attempt *a, struct seats *s, const struct seat *seats, unsigned count, unsigned nodes)
{
	struct call narrow = *a->call, *c = &narrow;
	bitstr_t *in = bit_alloc(bit_size(c->nodes));
	time_t start = c->job->start_time;
	bool switches = c->job->best_switch, good = false;
	slurm_exclusion_t *excluded = NULL;

	c->max_nodes = c->req_nodes = MAX(nodes, c->min_nodes);
	for (unsigned i = 0; i < count; i++)
		bit_set(in, seats[i].node);
	if (has_required(c->job, in))
		excluded = s->ask->whole_nodes ? exclusion_copy(s->excluded) : plan_exclusion(s, seats, count);
	if (excluded) {
		good = call_inner(c, in, a->preemptees, excluded) == SLURM_SUCCESS &&
		       (a->later || !SELECT_IS_MODE_WILL_RUN(c->mode) || c->job->start_time <= time(NULL));
		exclusion_free(excluded);
	}
	if (good) {
		bit_copybits(c->nodes, in);
	} else {
		c->job->start_time = start;
		c->job->best_switch = switches;
	}
	FREE_NULL_BITMAP(in);
	return good;
}

static bool try_plan(void *user, struct seats *s, const struct plan *p)
{
	return try_seats(user, s, p->seats, p->count, p->count);
}

/* Several nodes in a network that Slurm knows: it is to choose them among all, near to each other. */
static bool network_first(const struct ask *ask)
{
	static const char *const flat[] = { "topology/none", "topology/default", "topology/flat" };
	const char *plugin = slurm_conf.topology_plugin;

	for (size_t i = 0; plugin && i < sizeof(flat) / sizeof(flat[0]); i++)
		if (!strcmp(plugin, flat[i]))
			plugin = NULL;
	return plugin && ask->share[0].nodes + ask->share[1].nodes > 1;
}

/* The best nodes; where Slurm cannot take these, it may choose among all that fit, each with its best cores. */
static bool try_all(struct attempt *a, struct seats *s, struct plan *p)
{
	bool even = !s->ask->share[1].nodes && p->count == s->ask->share[0].nodes;

	if (!(network_first(s->ask) && even) && try_plan(a, s, p))
		return true;
	return even && s->count > (network_first(s->ask) ? p->count - 1 : p->count) &&
	       try_seats(a, s, s->list, s->count, p->count);
}

/* What is required may take the place of jobs that are to be preempted for it; for a wish, no job is stopped. */
static bool try_preempting(struct attempt *a, struct seats *s)
{
	uint64_t *taken = a->call->preemptees ? occupancy_copy() : NULL;
	slurm_iterator_t it;
	job_record_t *job;
	struct plan p;
	bool good;

	if (!taken)
		return false;
	it = list_iterator_create(a->call->preemptees);
	while ((job = list_next(it)))
		occupancy_without(job, taken);
	list_iterator_destroy(it);
	s->taken = taken;
	a->preemptees = a->call->preemptees;
	good = plan_make(&p, s) && try_plan(a, s, &p);
	plan_end(&p);
	a->preemptees = NULL;
	s->taken = NULL;
	free(taken);
	return good;
}

/* --- deciding --- */

/* Where the job names as many nodes as it may have, no other comes in question. */
static const bitstr_t *candidates(const job_record_t *job, const struct ask *ask, const bitstr_t *nodes)
{
	bitstr_t *required = job->details->req_node_bitmap;
	uint32_t most = ask->any_nodes ? ask->max_nodes : MAX(ask->first, ask->last);

	return required && (uint32_t) bit_set_count(required) >= most ? required : nodes;
}

/* "2 nodes with 8 cores in one l3": what is required. The number of cores is that of the first node in question. */
static const char *needed(const struct seats *s, char text[static 128])
{
	const struct ask *ask = s->ask;
	uint32_t nodes = ask->share[0].nodes + ask->share[1].nodes;
	struct score_need need = {0};
	char path[64] = "";
	int first = glue_next(s->nodes, 0);

	if (first >= 0)
		ask_need(ask, ask->share[0].tasks, first, &need);
	request_path_text(&ask->request.path, path, sizeof(path));
	snprintf(text, 128, "%u node%s with %u cores %s%s", nodes, nodes > 1 ? "s" : "", need.cores, *path ? "at " : "in one ",
		 *path ? path : level_name(ask->request.level));
	return text;
}

static void say(const job_record_t *job, const char *what)
{
	debug("topiary: JobId=%u: %s", job->job_id, what);
}

static int leave(const struct call *c, const struct ask *ask, const struct seats *s, const char *why)
{
	int rc = call_inner(c, c->nodes, c->preemptees, c->excluded);

	if (rc == SLURM_SUCCESS && SELECT_IS_MODE_RUN_NOW(c->mode) && ask->request.fit != FIT_OFF)
		comment_reason(c->job, ask, s, VERDICT_LEFT, why);
	say(c->job, why);
	return rc;
}

static bool required(const struct ask *ask)
{
	return ask->request.fit == FIT_REQUIRE && !ask->whole_nodes;
}

/* A job that requires what it cannot have now: planned for later, or made to wait. */
static int wait_for(struct attempt *a, struct seats *s)
{
	const struct call *c = a->call;
	char text[128], reason[160];

	a->later = true;
	if (SELECT_IS_MODE_WILL_RUN(c->mode) && later_find(s, try_plan, a))
		return SLURM_SUCCESS;
	snprintf(reason, sizeof(reason), "there are not yet %s", needed(s, text));
	comment_reason(c->job, s->ask, s, VERDICT_WAITS, reason);
	say(c->job, reason);
	return SLURM_ERROR;
}

static int decide(const struct call *c, struct seats *s)
{
	struct attempt a = { .call = c };
	struct plan p;
	bool good = plan_make(&p, s) && try_all(&a, s, &p);

	if (good && SELECT_IS_MODE_RUN_NOW(c->mode))
		comment_placed(c->job, s->ask, s, &p);
	plan_end(&p);
	if (good)
		return SLURM_SUCCESS;
	if (required(s->ask))
		return try_preempting(&a, s) ? SLURM_SUCCESS : wait_for(&a, s);
	return leave(c, s->ask, s, "no choice of ours can start now");
}

/* What is required, and can never be: told in the log; to the user, by submitted.h. */
static int refuse(const struct call *c, const char *why)
{
	info("topiary: JobId=%u: what it requires cannot be had: %s", c->job->job_id, why);
	return SLURM_ERROR;
}

/* Whether the job can ever run: Slurm looks at counts alone, so what is required is looked at first. */
static int test_only(const struct call *c, struct seats *s)
{
	char text[128];

	if (required(s->ask) && !later_possible(s) && !seats_unknown(s))
		return refuse(c, needed(s, text));
	return call_inner(c, c->nodes, c->preemptees, c->excluded);
}

static int steer(const struct call *c, struct ask *ask, struct snapshot_view *v)
{
	bool test = SELECT_IS_MODE_TEST_ONLY(c->mode);
	struct seats s = { .job = c->job, .ask = ask, .nodes = candidates(c->job, ask, c->nodes),
			   .excluded = test ? NULL : c->excluded };
	int rc;

	fits_begin(snapshot_view_serial(v));
	if (occupancy_sync() || known_begin(v) || seats_begin(&s))
		rc = call_inner(c, c->nodes, c->preemptees, c->excluded);
	else
		rc = test ? test_only(c, &s) : decide(c, &s);
	seats_end(&s);
	return rc;
}

static bool steered_mode(uint16_t mode)
{
	return !SELECT_IS_MODE_RESV(mode) && !SELECT_IS_PREEMPT_ON_FULL_TEST(mode);
}

int steer_job_test(job_test_t inner, job_record_t *job, bitstr_t *nodes, uint32_t min_nodes, uint32_t max_nodes, uint32_t req_nodes,
		   uint16_t mode, slurm_list_t preemptees, slurm_list_t *preempted, slurm_exclusion_t *excluded WILL_RUN_PARM)
{
	struct call call = {
		.inner = inner, .job = job, .nodes = nodes, .mode = mode, .preemptees = preemptees, .preempted = preempted,
		.excluded = excluded, .min_nodes = min_nodes, .max_nodes = max_nodes, .req_nodes = req_nodes,
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
		.will_run = will_run,
#endif
	};
	struct snapshot_view *v;
	const char *why;
	struct ask ask;
	int rc;

	if (!started || !steered_mode(mode))
		return inner JOB_TEST_ARGS;
	if ((why = ask_read(job, &site, min_nodes, max_nodes, req_nodes, &ask)))
		return SELECT_IS_MODE_TEST_ONLY(mode) && required(&ask) ? refuse(&call, why) : leave(&call, &ask, NULL, why);
	if (!(v = snapshot_view_get()))
		return leave(&call, &ask, NULL, "no snapshot");
	rc = steer(&call, &ask, v);
	snapshot_view_put(v);
	return rc;
}

__attribute__((visibility("default"))) int topiary_submitted(const job_desc_msg_t *job, struct err *e)
{
	struct snapshot_view *v = snapshot_view_get();
	int rc = started ? submitted_check(job, &site, v, e) : 0;

	snapshot_view_put(v);
	return rc;
}
