/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <math.h>
#include <stdlib.h>

#include "fabric/model/net.h"
#include "fabric/write/draw_parts.h"

enum {
	PAGE_WIDTH = 1000,	/* a block gets more columns of hosts as long as all blocks fit side by side in this */
	FEW_LINES = 4,		/* a block with no more lines than this gets no more columns */
};

/* One switch of the picture: a box, and below it a block of its hosts, if any. */
struct box {
	double x, y, width;		/* left, top */
	double block_x, block_y, block_width;
	unsigned filled;		/* hosts drawn */
};

struct picture {
	const struct net *net;
	const struct fabric *f;
	const struct fabric_hosts *chosen;
	struct box *boxes;
	unsigned host_letters, columns, rows;	/* rows: ranks */
	double width, top, first, bottom;	/* first: of the highest row */
	struct buf *out;
};

static unsigned rank_of(const struct picture *p, unsigned s)
{
	return p->f->nodes[p->net->node[s]].rank;
}

static double host_width(const struct picture *p)
{
	return draw_width(p->host_letters);
}

static double hosts_width(const struct picture *p, unsigned columns)
{
	return columns * (host_width(p) + HOST_GAP) - HOST_GAP;
}

static unsigned lines_of(const struct picture *p, unsigned s)
{
	return (p->net->hosts[s] + p->columns - 1) / p->columns;
}

static double name_width(const struct picture *p, unsigned s)
{
	return draw_width(draw_letters(net_name(p->net, s)) + 1);
}

static void boxes_measure(struct picture *p)
{
	const struct net *n = p->net;
	unsigned blocks = 0, most = 0;
	double name = 0;

	for (unsigned i = p->f->nswitches; i < p->f->nnodes; i++)
		if (n->home[i - p->f->nswitches] != NET_NONE && p->host_letters < draw_letters(p->f->nodes[i].name))
			p->host_letters = draw_letters(p->f->nodes[i].name);
	for (unsigned s = 0; s < n->n; s++) {
		blocks += n->hosts[s] > 0;
		if (n->hosts[s])
			name = fmax(name, name_width(p, s));
		if (most < n->hosts[s])
			most = n->hosts[s];
		if (p->rows < rank_of(p, s) + 1)
			p->rows = rank_of(p, s) + 1;
	}
	p->columns = 1;
	while (most > FEW_LINES * p->columns &&
	       (hosts_width(p, p->columns + 1) <= name ||
		blocks * (hosts_width(p, p->columns + 1) + BLOCK_GAP) <= PAGE_WIDTH))
		p->columns++;
}

/* Places blocks and leaf switches from left to right, the blocks of spines among them. */
static void place_blocks(struct picture *p)
{
	double at = MARGIN, y = p->first + (p->rows - 1) * (ROW_GAP + SWITCH_HEIGHT);

	for (unsigned s = 0; s < p->net->n; s++) {
		struct box *box = &p->boxes[s];
		double hosts = p->net->hosts[s] ? hosts_width(p, p->columns) : 0;
		double name = rank_of(p, s) && !p->net->hosts[s] ? 0 : name_width(p, s);

		if (!hosts && !name)
			continue;
		box->block_width = hosts > name ? hosts : name;
		box->block_x = at;
		box->block_y = y;
		if (!rank_of(p, s)) {
			box->x = at;
			box->y = y;
			box->width = box->block_width;
		}
		if (p->bottom < y + SWITCH_HEIGHT + (lines_of(p, s) + 1) * (HOST_HEIGHT + HOST_GAP))
			p->bottom = y + SWITCH_HEIGHT + (lines_of(p, s) + 1) * (HOST_HEIGHT + HOST_GAP);
		at += box->block_width + BLOCK_GAP;
	}
	p->width = at - BLOCK_GAP + MARGIN;
}

/* The total width of the switches of a rank, and their number. */
static double row_width(const struct picture *p, unsigned rank, unsigned *count)
{
	double sum = 0;

	*count = 0;
	for (unsigned s = 0; s < p->net->n; s++)
		if (rank_of(p, s) == rank) {
			sum += name_width(p, s) + BLOCK_GAP;
			++*count;
		}
	return sum + 2 * MARGIN;
}

static void width_fit_rows(struct picture *p)
{
	unsigned count;

	for (unsigned rank = 1; rank < p->rows; rank++)
		if (p->width < row_width(p, rank, &count))
			p->width = row_width(p, rank, &count);
}

/* Places the spines of a rank in a row, evenly spaced. */
static void place_row(struct picture *p, unsigned rank)
{
	unsigned count;
	double gap = p->width - row_width(p, rank, &count), at = MARGIN;

	for (unsigned s = 0; s < p->net->n; s++) {
		struct box *box = &p->boxes[s];

		if (rank_of(p, s) != rank)
			continue;
		at += (gap / count + BLOCK_GAP) / 2;
		box->x = at;
		box->y = p->first + (p->rows - 1 - rank) * (ROW_GAP + SWITCH_HEIGHT);
		box->width = name_width(p, s);
		at += box->width + (gap / count + BLOCK_GAP) / 2;
	}
}

static double box_middle(const struct box *b)
{
	return b->x + b->width / 2;
}

/*
 * The end on a switch of the link to another of a higher or lower rank: in the order of the others, so that links do
 * not cross there.
 */
static double port_of(const struct picture *p, unsigned s, unsigned other)
{
	const struct net *n = p->net;
	bool up = rank_of(p, other) > rank_of(p, s);
	unsigned before = 0, all = 0;

	for (unsigned i = n->row[s]; i < n->row[s + 1]; i++) {
		unsigned t = n->adj[i];
		double left = box_middle(&p->boxes[t]), right = box_middle(&p->boxes[other]);

		if (rank_of(p, t) == rank_of(p, s) || (rank_of(p, t) > rank_of(p, s)) != up)
			continue;
		all++;
		before += left < right || (left <= right && t < other);
	}
	return p->boxes[s].x + p->boxes[s].width * (before + 1) / (all + 1);
}

/* The number of cables of a trunk, near its lower end, where the ends are side by side. */
static void draw_count(struct picture *p, const struct fabric_link *l, double x1, double y1, double x2, double y2)
{
	if (l->count > 1)
		buf_printf(p->out, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\">%u</text>\n", x1 + (x2 - x1) * 0.1,
			   y1 + (y2 - y1) * 0.1 - 2, l->count);
}

static void draw_link(struct picture *p, unsigned low, unsigned high, const struct fabric_link *l)
{
	double x1 = port_of(p, low, high), y1 = p->boxes[low].y;
	double x2 = port_of(p, high, low), y2 = p->boxes[high].y + SWITCH_HEIGHT;

	buf_printf(p->out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke-width=\"%.1f\"/>\n", x1, y1,
		   x2, y2, draw_stroke(l->count));
	draw_count(p, l, x1, y1, x2, y2);
}

/* A link between switches of one rank: an arc above them. */
static void draw_arc(struct picture *p, unsigned a, unsigned b, const struct fabric_link *l)
{
	double x1 = box_middle(&p->boxes[a]), x2 = box_middle(&p->boxes[b]), y = p->boxes[a].y;
	double height = 30 + fabs(x2 - x1) / 6;

	if (height > ROW_GAP)
		height = ROW_GAP;
	buf_printf(p->out, "<path d=\"M%.1f,%.1f Q%.1f,%.1f %.1f,%.1f\" stroke-width=\"%.1f\"/>\n", x1, y,
		   (x1 + x2) / 2, y - 2 * height, x2, y, draw_stroke(l->count));
	if (l->count > 1)
		buf_printf(p->out, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\">%u</text>\n", (x1 + x2) / 2, y - height - 2,
			   l->count);
}

static void draw_links(struct picture *p)
{
	const struct net *n = p->net;

	buf_puts(p->out, "<g class=\"l\">\n");
	for (unsigned s = 0; s < n->n; s++)
		for (unsigned i = n->row[s]; i < n->row[s + 1]; i++) {
			const struct fabric_link *l = &p->f->links[n->link[i]];
			unsigned t = n->adj[i];

			if (rank_of(p, s) < rank_of(p, t))
				draw_link(p, s, t, l);
			else if (rank_of(p, s) == rank_of(p, t) && s < t)
				draw_arc(p, s, t, l);
		}
	buf_puts(p->out, "</g>\n");
}

static void draw_switches(struct picture *p)
{
	for (unsigned s = 0; s < p->net->n; s++) {
		const struct box *b = &p->boxes[s];

		draw_box(p->out, "s", b->x, b->y, b->width, SWITCH_HEIGHT, net_name(p->net, s));
		if (rank_of(p, s) && p->net->hosts[s])
			draw_box(p->out, "o", b->block_x, b->block_y, b->block_width, SWITCH_HEIGHT,
				 net_name(p->net, s));
	}
}

static void draw_hosts(struct picture *p)
{
	for (unsigned i = p->f->nswitches; i < p->f->nnodes; i++) {
		const char *name = p->f->nodes[i].name;
		unsigned s = p->net->home[i - p->f->nswitches], at;
		struct box *b = &p->boxes[s == NET_NONE ? 0 : s];

		if (s == NET_NONE)
			continue;
		at = b->filled++;
		draw_box(p->out, p->chosen && p->chosen->has(name, p->chosen->user) ? "h c" : "h",
			 b->block_x + (b->block_width - hosts_width(p, p->columns)) / 2 +
				at / lines_of(p, s) * (host_width(p) + HOST_GAP),
			 b->block_y + SWITCH_HEIGHT + HOST_GAP + at % lines_of(p, s) * (HOST_HEIGHT + HOST_GAP),
			 host_width(p), HOST_HEIGHT, name);
	}
}

/* Draws one plane below the previous one; sets bottom and right to its lower and right edge. */
static int draw_plane(const struct fabric *f, unsigned plane, const struct fabric_hosts *c, struct buf *out,
		      double *bottom, double *right)
{
	struct net n = {0};
	struct picture p = { .net = &n, .f = f, .chosen = c, .top = *bottom + MARGIN, .out = out };

	if (net_make(f, plane, &n))
		return -1;
	if (!(p.boxes = calloc(n.n + 1, sizeof(*p.boxes)))) {
		net_free(&n);
		return -1;
	}
	p.bottom = p.top;
	boxes_measure(&p);
	p.first = p.top + TITLE + (p.rows == 1 && n.row[n.n] ? ROW_GAP : 0);	/* for the arcs */
	place_blocks(&p);
	width_fit_rows(&p);
	for (unsigned rank = 1; rank < p.rows; rank++)
		place_row(&p, rank);
	*right = fmax(*right, fmax(p.width, draw_title(f, plane, p.top, out)));
	draw_links(&p);
	draw_switches(&p);
	draw_hosts(&p);
	*bottom = p.bottom;
	free(p.boxes);
	net_free(&n);
	return 0;
}

static const char style[] =
	"<style>text{font:10px \"DejaVu Sans Mono\",monospace;text-anchor:middle;fill:#222}"
	".t{font:bold 13px sans-serif;text-anchor:start}"
	".l line,.l path{stroke:#999;fill:none}.l .r{stroke-dasharray:3 2}"
	".l .n{font-size:9px;fill:#555;stroke:#fff;stroke-width:2px;paint-order:stroke}"
	".s rect{fill:#c4c4c4;stroke:#777}.o rect{fill:none;stroke:#777;stroke-dasharray:3 2}"
	".h rect{fill:#fff;stroke:#aaa}.c rect{fill:#f6a04d;stroke:#b65f0a}</style>\n";

int fabric_draw(const struct fabric *f, const struct fabric_hosts *c, struct buf *out, struct err *e)
{
	double bottom = 0, right = 0;
	struct buf body = {0};
	int rc = 0;

	for (unsigned i = 0; i < f->nplanes && f->planes[i].hosts && rc == 0; i++)
		rc = (draw_is_grid(&f->planes[i]) ? draw_grid : draw_plane)(f, i, c, &body, &bottom, &right);
	if (rc || body.failed) {
		buf_free(&body);
		return err_set(e, "out of memory");
	}
	if (!body.len)
		return err_set(e, "no switch with a host: nothing to draw");
	buf_printf(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n",
		right, bottom + MARGIN, right, bottom + MARGIN);
	buf_puts(out, style);
	buf_printf(out, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", right, bottom + MARGIN);
	buf_add(out, body.data, body.len);
	buf_puts(out, "</svg>\n");
	buf_free(&body);
	return out->failed ? err_set(e, "out of memory") : 0;
}
