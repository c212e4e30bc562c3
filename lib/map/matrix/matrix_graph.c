/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdint.h>

#include "map/matrix/matrix_parts.h"

static const char no_such_flags[] = "the flags must be 000, 001, 010 or 011 (no vertex labels)";

/* Source: Scotch user's guide, "Graph format": version, vertices and arcs, base and flags. */
struct graph {
	unsigned arcs, base;
	bool vertex_loads, edge_loads;
};

/* A graph's numbers may be on any line. */
static int graph_count(struct matrix_scan *s, double min, double max, const char *what, unsigned *out)
{
	matrix_line_seek(s);
	return matrix_count_read(s, min, max, what, out);
}

static int graph_header(struct matrix_scan *s, struct graph *g)
{
	unsigned version, flags;

	if (graph_count(s, 0, 0, "the version must be 0", &version))
		return -1;
	matrix_line_seek(s);
	if (matrix_ranks_read(s, &s->ranks) ||
	    graph_count(s, 0, UINT32_MAX, "the number of arcs is out of range", &g->arcs) ||
	    graph_count(s, 0, 1, "the base must be 0 or 1", &g->base) || graph_count(s, 0, 11, no_such_flags, &flags))
		return -1;
	if (flags % 10 > 1)
		return matrix_scan_wrong(s, no_such_flags);
	g->vertex_loads = flags % 10;
	g->edge_loads = flags / 10;
	return 0;
}

static int graph_arc(struct matrix_scan *s, const struct graph *g, unsigned from)
{
	double weight = 1;
	unsigned to = 0;

	if (g->edge_loads) {
		matrix_line_seek(s);
		if (matrix_weight_read(s, &weight))
			return -1;
	}
	if (graph_count(s, g->base, s->ranks - 1 + g->base, "vertex out of range", &to))
		return -1;
	/* An edge is written at both of its ends. */
	return matrix_pair_add(s, from, to - g->base, weight / 2);
}

static int graph_vertex(struct matrix_scan *s, struct graph *g, unsigned vertex)
{
	unsigned load, degree = 0;

	if (g->vertex_loads && graph_count(s, 0, UINT32_MAX, "load out of range", &load))
		return -1;
	if (graph_count(s, 0, g->arcs, "degree exceeds the remaining arcs", &degree))
		return -1;
	for (g->arcs -= degree; degree; degree--)
		if (graph_arc(s, g, vertex))
			return -1;
	return 0;
}

int matrix_graph_read(struct matrix_scan *s)
{
	struct graph g = {0};

	if (graph_header(s, &g))
		return -1;
	for (unsigned v = 0; v < s->ranks; v++)
		if (graph_vertex(s, &g, v))
			return -1;
	if (g.arcs)
		return matrix_scan_wrong(s, "fewer arcs than the header says");
	return matrix_line_seek(s) ? matrix_scan_wrong(s, "text after the last vertex") : 0;
}
