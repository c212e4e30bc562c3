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

static int refuse(const struct ask *ask, unsigned fitting, unsigned cores, unsigned most, struct err *e)
{
	const char *level = level_name(ask->request.level);
	char path[128];

	if (!ask->request.path.steps)
		return err_set(e, "--topo-fit=require --topo-level=%s: %u cores on each of %u nodes, and %u nodes have one %s of so"
			       " many (the largest has %u)", level, cores, ask->share[0].nodes, fitting, level, most);
	request_path_text(&ask->request.path, path, sizeof(path));
	if (cores != request_path_cores(&ask->request.path))
		return err_set(e, "--topo-request=%s: that is %u cores on each node, and the job's tasks and CPUs are %u", path,
			       request_path_cores(&ask->request.path), cores);
	return err_set(e, "--topo-request=%s: %u nodes, and %u have such cores", path, ask->share[0].nodes, fitting);
}

static int check_nodes(const struct ask *ask, struct snapshot_view *v, const bitstr_t *nodes, struct err *e)
{
	unsigned fitting = 0, known = 0, cores = 0, most = 0;
	struct answer last = {0};

	for (int i = glue_next(nodes, 0); i >= 0; i = glue_next(nodes, i + 1)) {
		const node_record_t *node = node_record_table_ptr[i];
		const struct shape *shape = node && node->name ? snapshot_view_shape(v, node->name) : NULL;
		struct answer now = { .shape = shape };

		if (!shape || !known_agrees(shape, node))
			continue;
		ask_need(ask, ask->share[0].tasks, i, &now.need);
		now.fits = last.shape == shape && last.need.cores == now.need.cores ? last.fits : fits(shape, &now.need);
		last = now;
		known++;
		fitting += now.fits;
		cores = now.need.cores;
		most = MAX(most, largest(shape, ask->request.level));
	}
	return known && fitting < ask->share[0].nodes ? refuse(ask, fitting, cores, most, e) : 0;
}

int submitted_check(const job_desc_msg_t *job, const struct request *site, struct snapshot_view *v, struct err *e)
{
	struct ask ask;
	bitstr_t *nodes;
	int rc;

	if (ask_read_submitted(job, site, &ask, e))
		return -1;
	if (ask.request.fit != FIT_REQUIRE || !v)
		return 0;
	nodes = nodes_of(job);
	rc = check_nodes(&ask, v, nodes, e);
	FREE_NULL_BITMAP(nodes);
	return rc;
}
