/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "submitted.h"

#include <stdio.h>
#include <stdlib.h>

#include "known.h"

/* The nodes of one shape answer alike. */
struct answer {
	const struct shape *shape;
	struct score_need need;
	bool fits;
};

static unsigned largest(const struct shape *shape, enum level level)
{
	unsigned most = 0;

	for (size_t i = 0; i < shape->ndomains; i++)
		if (shape->domains[i].level == level)
			most = MAX(most, shape->domains[i].cores);
	return most;
}

static bool fits(const struct shape *shape, const struct score_need *need)
{
	unsigned words = score_words(shape->cores);
	uint64_t *all = malloc((words + 1) * sizeof(*all));
	struct score_cost cost;
	int rc = 0;

	if (all) {
		memset(all, 0xff, words * sizeof(*all));
		if (shape->cores % 64)
			all[words - 1] = (1ull << shape->cores % 64) - 1;
		rc = score_pick(shape, all, need, NULL, &cost);
	}
	free(all);
	return rc <= 0;
}

/* The partitions that the job names, or the default one. NULL when there is none that we know. */
static bitstr_t *nodes_of(const job_desc_msg_t *job)
{
	bitstr_t *nodes = bit_alloc(node_record_count);
	char *names = xstrdup(job->partition), *rest = names, *name;
	part_record_t *part;

	if (!names && default_part_loc && default_part_loc->node_bitmap)
		bit_or(nodes, default_part_loc->node_bitmap);
	while (rest && (name = strsep(&rest, ",")))
		if ((part = find_part_record(name)) && part->node_bitmap)
			bit_or(nodes, part->node_bitmap);
	xfree(names);
	return nodes;
}

/*
 * What came of looking at all nodes for one number of them. A node that the snapshot does not tell of may fit, if it is large
 * enough.
 */
struct finding {
	unsigned known, fitting;
	unsigned cores, most;	/* of the node that comes nearest: what it is asked for, and its largest domain of the level */
};

static struct finding look(const struct ask *ask, struct snapshot_view *v, const bitstr_t *nodes)
{
	struct finding f = {0};
	struct answer last = {0};

	for (int i = glue_next(nodes, 0); i >= 0; i = glue_next(nodes, i + 1)) {
		const node_record_t *node = node_record_table_ptr[i];
		const struct shape *shape = node && node->name ? snapshot_view_shape(v, node->name) : NULL;
		struct answer now = { .shape = shape };
		unsigned most;

		if (!node)
			continue;
		ask_need(ask, ask->share[0].tasks, i, &now.need);
		if (!shape || !known_agrees(shape, node)) {
			f.fitting += now.need.cores <= node->tot_cores;
			continue;
		}
		now.fits = last.shape == shape && last.need.cores == now.need.cores ? last.fits : fits(shape, &now.need);
		last = now;
		f.known++;
		f.fitting += now.fits;
		most = largest(shape, ask->request.level);
		if (f.known > 1 && (uint64_t) most * f.cores <= (uint64_t) f.most * now.need.cores)
			continue;
		f.cores = now.need.cores;
		f.most = most;
	}
	return f;
}

static int refuse(const struct ask *ask, const struct finding *f, struct err *e)
{
	const char *level = level_name(ask->request.level);
	unsigned wanted = request_path_cores(&ask->request.path);
	char path[128];

	if (!ask->request.path.steps && f->most < f->cores)
		return err_set(e, "--topo-fit=require --topo-level=%s: the job needs %u cores in one %s, and the largest has %u", level,
			       f->cores, level, f->most);
	if (!ask->request.path.steps)
		return err_set(e, "--topo-fit=require --topo-level=%s: the job needs %u nodes with %u cores in one %s, and %u have"
			       " that", level, ask->min_nodes, f->cores, level, f->fitting);
	request_path_text(&ask->request.path, path, sizeof(path));
	if (f->cores != wanted)
		return err_set(e, "--topo-request=%s: that is %u cores on each node, and the job's tasks and CPUs are %u", path, wanted,
			       f->cores);
	return err_set(e, "--topo-request=%s: the job needs %u nodes that have that, and there are %u", path, ask->min_nodes,
		       f->fitting);
}

/* Any number of nodes in question will do; the first is told of when none does. */
static int check_nodes(struct ask *ask, struct snapshot_view *v, const bitstr_t *nodes, struct err *e)
{
	struct finding first = {0};

	for (uint32_t n = ask->first; n <= ask->last && ask_share(ask, n); n++) {
		struct finding f = look(ask, v, nodes);

		if (!f.known || f.fitting >= n)
			return 0;
		if (n == ask->first)
			first = f;
	}
	return first.known ? refuse(ask, &first, e) : 0;
}

int submitted_check(const job_desc_msg_t *job, const struct request *site, struct snapshot_view *v, struct err *e)
{
	const char *why;
	struct ask ask;
	bitstr_t *nodes;
	int rc;

	if (ask_read_submitted(job, site, &ask, &why, e))
		return -1;
	if (ask.request.fit != FIT_REQUIRE || ask.whole_nodes || !v)
		return 0;
	if (why)
		return err_set(e, "%s cannot be kept: %s", ask.request.path.steps ? "--topo-request" : "--topo-fit=require", why);
	nodes = nodes_of(job);
	rc = check_nodes(&ask, v, nodes, e);
	FREE_NULL_BITMAP(nodes);
	return rc;
}
