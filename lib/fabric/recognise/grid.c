/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/recognise/grid.h"

#include <stdio.h>
#include <stdlib.h>

#include "shape/hostlist.h"

static unsigned cell_index(const struct grid *g, unsigned x, unsigned y, unsigned z)
{
	return x + g->dim[0] * (y + g->dim[1] * z);
}

static int add_switch(struct grid *g, unsigned at)
{
	char name[300];
	int end;

	snprintf(name, sizeof(name), "%.200s-%u-%u-%u", g->name, at % g->dim[0], at / g->dim[0] % g->dim[1],
		 at / g->dim[0] / g->dim[1]);
	if ((end = draft_end(g->draft, END_SWITCH, name)) < 0)
		return -1;
	g->switches[at] = end;
	return 0;
}

/* Cables to the next place in each dimension, from the last to the first; a dimension of two has one cable. */
static int add_cables(struct grid *g, unsigned at)
{
	unsigned step = 1;

	for (unsigned d = 0; d < GRID_DIMS; step *= g->dim[d++]) {
		unsigned place = at / step % g->dim[d], next = place + 1 < g->dim[d] ? at + step : at - place * step;

		if (next != at && (g->dim[d] > 2 || place == 0) &&
		    draft_cable(g->draft, g->switches[at], 0, g->switches[next], 0, 0))
			return -1;
	}
	return 0;
}

int grid_begin(struct grid *g, struct lines *l, struct fabric_draft *m, const char *name)
{
	unsigned long cells = (unsigned long) g->dim[0] * g->dim[1] * g->dim[2];
	int rc = 0;

	if (cells > GRID_CELLS)
		return lines_wrong(l, "%.100s: more than %d positions", name, GRID_CELLS);
	g->draft = m;
	g->name = name;
	if (!(g->switches = calloc(cells, sizeof(*g->switches))))
		return lines_wrong(l, "out of memory");
	for (unsigned i = 0; i < cells && rc == 0; i++)
		rc = add_switch(g, i);
	for (unsigned i = 0; i < cells && rc == 0; i++)
		rc = add_cables(g, i);
	if (rc == 0)
		return 0;
	free(g->switches);
	g->switches = NULL;
	return lines_wrong(l, "out of memory");
}

struct filling {
	struct grid *grid;
	struct lines *lines;
	const unsigned *anchor, *dims;
	unsigned n, places;
	bool wrong;			/* lines_wrong has set the error */
};

static int node_add(const char *host, void *user)
{
	struct filling *f = user;
	unsigned x = f->n % f->dims[0], y = f->n / f->dims[0] % f->dims[1], z = f->n / f->dims[0] / f->dims[1];
	unsigned cell = cell_index(f->grid, f->anchor[0] + x, f->anchor[1] + y, f->anchor[2] + z);
	int end;

	if (f->n++ >= f->places)
		return 0;
	end = draft_end(f->grid->draft, END_HOST, host);
	f->wrong = end < 0 || draft_cable(f->grid->draft, f->grid->switches[cell], 0, end, 0, 0);
	return f->wrong ? lines_wrong(f->lines, "out of memory") : 0;
}

int grid_place(struct grid *g, struct lines *l, const char *nodes, const unsigned *anchor, const unsigned *dims)
{
	struct filling f = { .grid = g, .lines = l, .anchor = anchor, .dims = dims,
			     .places = dims[0] * dims[1] * dims[2] };
	struct err own = {""};

	for (unsigned d = 0; d < GRID_DIMS; d++)
		if (anchor[d] + dims[d] > g->dim[d])
			return lines_wrong(l, "the region exceeds the torus");
	if (draft_each(g->draft, nodes, node_add, &f, &own))
		return f.wrong ? -1 : lines_wrong(l, "%s", own.text);
	return f.n == f.places ? 0 : lines_wrong(l, "%u nodes for %u positions", f.n, f.places);
}

static int name_count(const char *host, void *user)
{
	(void) host;
	++*(unsigned *) user;
	return 0;
}

int grid_ring(struct lines *l, struct fabric_draft *m, const char *name, const char *nodes)
{
	static const unsigned origin[GRID_DIMS];
	struct grid g = { .dim = { 0, 1, 1 } };
	struct err own = {""};
	int rc;

	if (hostlist_expand(nodes, name_count, &g.dim[0], &own))
		return lines_wrong(l, "%s", own.text);
	if (grid_begin(&g, l, m, name))
		return -1;
	rc = grid_place(&g, l, nodes, origin, g.dim);
	free(g.switches);
	return rc;
}
