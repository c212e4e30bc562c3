/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/write/draw_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>


enum { DIMS = 3, CELL_GAP = 30, SLICE_GAP = 46, STUB = 11, LANE = 7, TWO_COLUMNS = 8, CELLS = 1 << 16 };

/* A place of the torus: a switch with hosts, or a single host. */
struct cell {
	bool there;
	unsigned node;			/* index in the fabric: the switch, or the host; nnodes: unknown */
	unsigned hosts, filled;
};

struct grid_drawing {
	const struct fabric *f;
	const struct hierarchy *h;
	const struct fabric_hosts *chosen;
	struct cell *cells;
	unsigned dim[DIMS];
	bool switches;			/* a level of hosts below the torus */
	unsigned columns, lines, host_letters, name_letters;
	double top, width, height;	/* of a cell */
	struct buf *out;
};

bool draw_is_grid(const struct fabric_plane *p)
{
	return p->levels && p->levels->level[0].form == HIERARCHY_TORUS && p->levels->level[0].dims <= DIMS &&
	       p->levels->level[0].size <= CELLS;
}

static void cell_set(struct grid_drawing *g, unsigned at, const char *name, bool is_switch)
{
	g->cells[at] = (struct cell){ .there = true, .node = fabric_node(g->f, name, is_switch),
				       .hosts = g->cells[at].hosts };
	if (is_switch && g->name_letters < draw_letters(name))
		g->name_letters = draw_letters(name);
}

static void cells_measure(struct grid_drawing *g)
{
	const struct hierarchy *h = g->h;
	unsigned most = 0;

	for (unsigned i = 0; i < h->nhosts; i++) {
		struct cell *c = &g->cells[h->hosts[i].at[0]];

		if (most < ++c->hosts)
			most = c->hosts;
		if (g->host_letters < draw_letters(h->hosts[i].name))
			g->host_letters = draw_letters(h->hosts[i].name);
		if (!g->switches)
			cell_set(g, h->hosts[i].at[0], h->hosts[i].name, false);
	}
	for (unsigned i = 0; g->switches && i < h->ngroups; i++)
		if (h->groups[i].level == 1)
			cell_set(g, h->groups[i].at, h->groups[i].name, true);
	g->columns = most > TWO_COLUMNS ? 2 : 1;
	g->lines = (most + g->columns - 1) / g->columns;
	g->width = g->columns * draw_width(g->host_letters) + (g->columns - 1) * HOST_GAP;
	if (g->switches && g->width < draw_width(g->name_letters))
		g->width = draw_width(g->name_letters);
	g->height = (g->switches ? SWITCH_HEIGHT : -HOST_GAP) + g->lines * (HOST_HEIGHT + HOST_GAP);
}

static unsigned place_in(const struct grid_drawing *g, unsigned at, unsigned d)
{
	return d == 0 ? at % g->dim[0] : d == 1 ? at / g->dim[0] % g->dim[1] : at / g->dim[0] / g->dim[1];
}

/* Space above each row for links between slices: a lane for each column. */
static double lanes_height(const struct grid_drawing *g)
{
	return g->dim[2] > 1 ? g->dim[0] * LANE : 0;
}

static double left_of(const struct grid_drawing *g, unsigned at)
{
	double slice = g->dim[0] * (g->width + CELL_GAP) - CELL_GAP + SLICE_GAP;

	return MARGIN + STUB + place_in(g, at, 2) * slice + place_in(g, at, 0) * (g->width + CELL_GAP);
}

static double top_of(const struct grid_drawing *g, unsigned at)
{
	return g->top + lanes_height(g) + 2 * STUB + place_in(g, at, 1) * (g->height + CELL_GAP + lanes_height(g));
}

static double head_height(const struct grid_drawing *g)
{
	return g->switches ? SWITCH_HEIGHT : HOST_HEIGHT;
}

/* Cables between two cells; 1 if the file stated levels only. */
static unsigned cables_between(const struct grid_drawing *g, unsigned a, unsigned b)
{
	unsigned x = g->cells[a].node, y = g->cells[b].node, low = 0, high = g->f->nlinks;
	const struct fabric_link wanted = { x < y ? x : y, x < y ? y : x, 0, 0 };

	while (low < high) {
		unsigned middle = low + (high - low) / 2;
		const struct fabric_link *l = &g->f->links[middle];

		if (l->a < wanted.a || (l->a == wanted.a && l->b < wanted.b))
			low = middle + 1;
		else
			high = middle;
	}
	if (low < g->f->nlinks && g->f->links[low].a == wanted.a && g->f->links[low].b == wanted.b)
		return g->f->links[low].count;
	return g->f->given ? 1 : 0;
}

static void line_draw(const struct grid_drawing *g, bool stub, unsigned cables, double x1, double y1, double x2,
		      double y2)
{
	buf_printf(g->out, "<line%s x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke-width=\"%.1f\"/>\n",
		   stub ? " class=\"r\"" : "", x1, y1, x2, y2, draw_stroke(cables));
}

static void cables_draw(const struct grid_drawing *g, unsigned cables, double x, double y)
{
	if (cables > 1)
		buf_printf(g->out, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\">%u</text>\n", x, y, cables);
}

/* A link to the right; round: a wrap-around link, drawn as stubs at both ends. */
static void link_right(const struct grid_drawing *g, unsigned a, unsigned b, unsigned cables, bool round)
{
	double y = top_of(g, a) + head_height(g) / 2, x = left_of(g, a) + g->width;

	cables_draw(g, cables, x + CELL_GAP / (round ? 4.0 : 2.0), y - 3);
	if (!round) {
		line_draw(g, false, cables, x, y, left_of(g, b), y);
		return;
	}
	line_draw(g, true, cables, x, y, x + STUB, y);
	line_draw(g, true, cables, left_of(g, b) - STUB, y, left_of(g, b), y);
}

/* A link downwards, behind the hosts. */
static void link_down(const struct grid_drawing *g, unsigned a, unsigned b, unsigned cables, bool round)
{
	double x = left_of(g, a) + g->width / 2, y = top_of(g, a) + head_height(g);

	if (!round) {
		line_draw(g, false, cables, x, y, x, top_of(g, b));
		cables_draw(g, cables, x + 7, top_of(g, b) - 4);
		return;
	}
	line_draw(g, true, cables, x, y, x, top_of(g, a) + g->height + STUB);
	line_draw(g, true, cables, x, top_of(g, b) - STUB, x, top_of(g, b));
	cables_draw(g, cables, x + 7, top_of(g, b) - 4);
}

/* A link to the same place of another slice, in the lane of its column. */
static void link_slice(const struct grid_drawing *g, unsigned a, unsigned b, unsigned cables, bool round)
{
	double in = g->width * 5 / 6, top = top_of(g, a), y = top - STUB - (place_in(g, a, 0) + 1) * LANE + LANE / 2.0;
	double x1 = left_of(g, a) + in, x2 = left_of(g, b) + in;

	line_draw(g, false, cables, x1, top, x1, y);
	if (!round) {
		line_draw(g, false, cables, x1, y, x2, y);
		cables_draw(g, cables, x1 + 6, top - 4);
		return;
	}
	line_draw(g, true, cables, x1, y, x1 + STUB, y);
	line_draw(g, true, cables, x2 - STUB, y, x2, y);
	cables_draw(g, cables, x1 + 6, top - 4);
}

static void draw_links(const struct grid_drawing *g, unsigned at)
{
	static void (*const draw[])(const struct grid_drawing *g, unsigned a, unsigned b, unsigned cables,
				    bool round) = {
		link_right, link_down, link_slice,
	};
	unsigned step = 1;

	for (unsigned d = 0; d < DIMS; step *= g->dim[d++]) {
		unsigned place = place_in(g, at, d);
		bool round = place + 1 == g->dim[d];
		unsigned next = round ? at - place * step : at + step, cables;

		/* In a dimension of two, the wrap-around link is the same link. */
		if (g->dim[d] < 2 || (round && g->dim[d] == 2) || !g->cells[next].there)
			continue;
		if ((cables = cables_between(g, at, next)))
			draw[d](g, at, next, cables, round);
	}
}

static void draw_hosts(struct grid_drawing *g)
{
	const struct hierarchy *h = g->h;
	double width = draw_width(g->host_letters), inside = g->columns * width + (g->columns - 1) * HOST_GAP;
	double head = g->switches ? SWITCH_HEIGHT + HOST_GAP : 0;

	for (unsigned i = 0; i < h->nhosts; i++) {
		unsigned at = h->hosts[i].at[0], n = g->cells[at].filled++;
		unsigned lines = (g->cells[at].hosts + g->columns - 1) / g->columns;
		const char *name = h->hosts[i].name;

		draw_box(g->out, g->chosen && g->chosen->has(name, g->chosen->user) ? "h c" : "h",
			 left_of(g, at) + (g->width - inside) / 2 + n / lines * (width + HOST_GAP),
			 top_of(g, at) + head + n % lines * (HOST_HEIGHT + HOST_GAP), width, HOST_HEIGHT, name);
	}
}

static void draw_cells(struct grid_drawing *g)
{
	unsigned n = g->h->level[0].size;

	buf_puts(g->out, "<g class=\"l\">\n");
	for (unsigned at = 0; at < n; at++)
		if (g->cells[at].there)
			draw_links(g, at);
	buf_puts(g->out, "</g>\n");
	for (unsigned at = 0; at < n && g->switches; at++)
		if (g->cells[at].there && g->cells[at].node < g->f->nnodes)
			draw_box(g->out, "s", left_of(g, at), top_of(g, at), g->width, SWITCH_HEIGHT,
				 g->f->nodes[g->cells[at].node].name);
	draw_hosts(g);
}

int draw_grid(const struct fabric *f, unsigned plane, const struct fabric_hosts *c, struct buf *out, double *top,
	      double *right)
{
	const struct hierarchy_level *torus = &f->planes[plane].levels->level[0];
	struct grid_drawing g = { .f = f, .h = f->planes[plane].levels, .chosen = c,
				  .switches = f->planes[plane].levels->nlevels > 1, .dim = { 1, 1, 1 }, .out = out };
	double end;

	if (!(g.cells = calloc(torus->size, sizeof(*g.cells))))
		return -1;
	memcpy(g.dim, torus->dim, torus->dims * sizeof(*g.dim));
	cells_measure(&g);
	end = draw_title(f, plane, *top + MARGIN, out);
	g.top = *top + MARGIN + TITLE;
	draw_cells(&g);
	*top = top_of(&g, torus->size - 1) + g.height + 2 * STUB;
	*right = fmax(*right, fmax(end, left_of(&g, torus->size - 1) + g.width + STUB + MARGIN));
	free(g.cells);
	return 0;
}
