/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "node_shape.h"

#include <stdlib.h>

/* The levels that slurmd may report as sockets: packages, or by SlurmdParameters NUMA nodes or L3 caches. */
static const enum level socket_levels[] = { LEVEL_PACKAGE, LEVEL_NUMA, LEVEL_L3 };

bool node_shape_agrees(const struct shape *shape, const node_record_t *node)
{
	unsigned count[LEVEL_COUNT] = {0};

	if (shape->cores != node->tot_cores ||
	    (node->tpc > 1 && shape->pus != (unsigned) node->tot_cores * node->threads))
		return false;
	/* An uneven machine is one socket in slurm.conf; a line of CPUs= alone makes each core one. */
	if (node->tot_sockets == 1 || node->tot_sockets == node->tot_cores)
		return true;
	for (size_t i = 0; i < shape->ndomains; i++)
		count[shape->domains[i].level]++;
	for (size_t i = 0; i < sizeof(socket_levels) / sizeof(socket_levels[0]); i++)
		if (count[socket_levels[i]] == node->tot_sockets)
			return true;
	return false;
}

/* A node's shape, valid until the snapshot or the node changes: each decision needs it for each node. */
struct shape_entry {
	unsigned long serial;		/* of the view; 0: unknown */
	uint32_t cores, sockets, threads;
	const struct shape *shape;	/* NULL: no shape, or one that disagrees */
};

static struct shape_entry *entries;
static int entry_count;
static struct snapshot_view *view;
static unsigned long serial;

void node_shapes_clear(void)
{
	free(entries);
	entries = NULL;
	entry_count = 0;
}

int node_shapes_begin(struct snapshot_view *v)
{
	view = v;
	serial = snapshot_view_serial(v);
	if (entries && entry_count == node_record_count)
		return 0;
	node_shapes_clear();
	entry_count = node_record_count;
	return (entries = calloc(entry_count + 1, sizeof(*entries))) ? 0 : -1;
}

static const struct shape *read_shape(const node_record_t *node)
{
	const struct shape *shape = node->name ? snapshot_view_shape(view, node->name) : NULL;

	if (!shape || node_shape_agrees(shape, node))
		return shape;
	if (snapshot_view_first(view, node->name))
		error("topiary: node %s: the snapshot has %u cores and %u threads, but Slurm has %u sockets, %u cores"
		      " and %u threads a core: jobs are placed on it as without Topiary, and those that require a"
		      " placement do not start on it", node->name, shape->cores,
		      shape->pus, node->tot_sockets, node->tot_cores, node->threads);
	return NULL;
}

const struct shape *node_shape(int node)
{
	const node_record_t *n = node_record_table_ptr[node];
	struct shape_entry now = { serial, n->tot_cores, n->tot_sockets, n->threads, NULL }, *was = &entries[node];

	if (was->serial != now.serial || was->cores != now.cores || was->sockets != now.sockets ||
	    was->threads != now.threads) {
		now.shape = read_shape(n);
		*was = now;
	}
	return was->shape;
}
