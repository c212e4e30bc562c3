/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "comment.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * The verdict of the job that slurmctld is about to start. Kept until then, because the record of an array task is
 * split off only after job_test.
 */
static struct {
	const job_record_t *job;
	struct verdict verdict;
} decided;

/* Replaces the previous line with a new one, or with none (""). */
static void comment_write(job_record_t *job, const char *line)
{
	const char *old = job->system_comment ? job->system_comment : "";
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
		xfree(job->system_comment);
		job->system_comment = b.len ? xstrdup(b.data) : NULL;
	}
	buf_free(&b);
}

static void verdict_put(job_record_t *job, const struct verdict *v)
{
	struct buf line = {0};

	verdict_write(v, &line);
	comment_write(job, line.failed ? "" : line.data);
	buf_free(&line);
}

static void comment_set(job_record_t *job, const struct verdict *v)
{
	if (v->outcome == VERDICT_WAITS) {
		verdict_put(job, v);
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
	if (verdict_read(job->system_comment, &v, NULL) || (!waits && v.outcome == VERDICT_WAITS))
		return false;
	comment_write(job, "");
	return v.own_cores;
}

/* A task's cores depend on the node's threads: a verdict has them for the first candidate. */
static struct score_need need_of(const struct job_request *req, const struct candidate_set *s)
{
	int node = s && s->count ? s->list[0].node : s ? glue_next(s->nodes, 0) : -1;
	struct score_need need = { .task_cores = req->cpus_per_task };

	if (node >= 0)
		job_request_need(req, req->share[0].tasks, node, &need);
	return need;
}

static struct verdict verdict_begin(const struct job_request *req, const struct candidate_set *s,
				    enum verdict_outcome outcome)
{
	struct score_need need = need_of(req, s);
	struct verdict v = { .outcome = outcome, .request = req->request,
			     .nodes = req->share[0].nodes + req->share[1].nodes,
			     .tasks = req->share[0].tasks, .task_cores = need.task_cores, .cores_per_node = need.cores,
			     .decided_row = -1, .decided_level = -1 };

	if (s) {
		v.candidates = s->candidates;
		v.room = s->room;
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

/* Records what decided against the best node that was not chosen. */
static void runner_up_set(struct verdict *v, const struct candidate_node *worst, const struct candidate_node *beside)
{
	enum score_row row;
	enum level level;

	if (!beside)
		return;
	snprintf(v->beside, sizeof(v->beside), "%s", node_record_table_ptr[beside->node]->name);
	if (!score_differ(worst->cost, beside->cost, &row, &level))
		return;
	v->decided_row = row;
	v->decided_level = level;
}

void comment_placed(job_record_t *job, const struct job_request *req, const struct candidate_set *s,
		    const struct plan *p)
{
	struct verdict v = verdict_begin(req, s, VERDICT_PLACED);
	const struct candidate_node *worst = plan_worst(p);

	v.nodes = p->choice.count;
	v.tasks = p->choice.list[0].tasks;
	v.cost = *worst->cost;
	v.own_cores = req->own_cores;
	v.whole_nodes = req->whole_nodes;
	for (unsigned i = 0; i < p->choice.count; i++)
		v.memory_far += p->choice.list[i].memory_far;
	v.cores_per_node = cores_on(job, p->choice.list[0].node);
	runner_up_set(&v, worst, plan_beside(p, s));
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
	v->gpus = d->gpus;
	v->gpus_far = d->gpus_far;
	v->gpus_unknown = d->gpus_unknown;
	v->cores_far = d->cores_far;
	verdict_put(job, v);
	comment_end();
	return v->own_cores;
}

void comment_reason(job_record_t *job, const struct job_request *req, const struct candidate_set *s,
		    enum verdict_outcome outcome, const char *reason)
{
	struct verdict v = verdict_begin(req, s, outcome), old;

	snprintf(v.reason, sizeof(v.reason), "%s", reason);
	if (verdict_read(job->system_comment, &old, NULL) || old.outcome != outcome || strcmp(old.reason, v.reason))
		comment_set(job, &v);
}
