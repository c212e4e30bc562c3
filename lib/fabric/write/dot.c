/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/write/export.h"

/* A name in a quoted string, or in the text of a table. Most have nothing to escape. */
static void put_name(struct buf *out, const char *name, bool in_table)
{
	for (const char *c = name; *c; c++)
		if (!in_table)
			buf_printf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
		else if (*c == '&' || *c == '<' || *c == '>' || *c == '"')
			buf_printf(out, "&#%d;", *c);
		else
			buf_add(out, c, 1);
}

static void put_host(struct buf *out, const char *name, const struct fabric_hosts *c)
{
	buf_puts(out, c && c->has(name, c->user) ? "<tr><td bgcolor=\"#f6a04d\">" : "<tr><td>");
	put_name(out, name, true);
	buf_puts(out, "</td></tr>\n");
}

/* A table: the switch, and each of its hosts in a line of its own, so that diff(1) shows which. */
static void put_switch(const struct fabric *f, unsigned s, unsigned *link, const struct fabric_hosts *c,
		       struct buf *out)
{
	buf_puts(out, "\"");
	put_name(out, f->nodes[s].name, false);
	buf_puts(out, "\" [label=<<table cellspacing=\"0\">\n<tr><td port=\"s\" bgcolor=\"#c4c4c4\">");
	put_name(out, f->nodes[s].name, true);
	buf_puts(out, "</td></tr>\n");
	for (; *link < f->nlinks && f->links[*link].a == s; ++*link)
		if (f->links[*link].b >= f->nswitches)
			put_host(out, f->nodes[f->links[*link].b].name, c);
	buf_puts(out, "</table>>]\n");
}

/* Without this, dot(1) orders the switches of a rank so that as few lines as possible cross. */
static void put_rank(const struct fabric *f, unsigned plane, unsigned rank, struct buf *out)
{
	unsigned n = 0;

	for (unsigned s = 0; s < f->nswitches; s++) {
		if (f->nodes[s].plane != plane || f->nodes[s].rank != rank)
			continue;
		buf_puts(out, n++ ? " -- \"" : "{ rank=same; edge [style=invis]; \"");
		put_name(out, f->nodes[s].name, false);
		buf_puts(out, "\"");
	}
	if (n)
		buf_puts(out, " }\n");
}

int fabric_write_dot(const struct fabric *f, const struct fabric_hosts *c, struct buf *out, struct err *e)
{
	unsigned link = 0, ranks = 0;
	bool graph = false;

	for (unsigned i = 0; i < f->nplanes; i++)
		graph |= f->planes[i].kind == FABRIC_GRAPH || f->planes[i].kind == FABRIC_TORUS;
	for (unsigned s = 0; s < f->nswitches; s++)
		if (ranks <= f->nodes[s].rank)
			ranks = f->nodes[s].rank + 1;
	buf_printf(out, "graph fabric {\ngraph [%s]\nnode [shape=plain]\nedge [%s]\n",
		   graph ? "layout=sfdp, overlap=prism" : "layout=dot, ranksep=3, splines=line",
		   graph ? "labeldistance=4" : "tailport=\"s:s\", headport=\"s:n\", labeldistance=4");
	for (unsigned s = 0; s < f->nswitches; s++)
		put_switch(f, s, &link, c, out);
	for (unsigned i = f->nswitches; i < f->nnodes; i++)
		if (f->nodes[i].plane == FABRIC_NO_PLANE) {
			buf_puts(out, "\"");
			put_name(out, f->nodes[i].name, false);
			buf_puts(out, "\" [shape=box, style=dashed]\n");
		}
	for (unsigned i = 0; i < f->nplanes && !graph; i++)
		for (unsigned rank = 0; rank < ranks; rank++)
			put_rank(f, i, rank, out);
	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *l = &f->links[i];
		bool down = f->nodes[l->a].rank >= f->nodes[l->b].rank;

		if (l->b >= f->nswitches)
			continue;
		buf_puts(out, "\"");	/* dot draws the first above the second */
		put_name(out, f->nodes[down ? l->a : l->b].name, false);
		buf_puts(out, "\" -- \"");
		put_name(out, f->nodes[down ? l->b : l->a].name, false);
		buf_puts(out, "\"");
		if (l->count > 1)
			buf_printf(out, " [headlabel=\"%u\"]", l->count);
		buf_puts(out, "\n");
	}
	buf_puts(out, "}\n");
	return out->failed ? err_set(e, "out of memory") : 0;
}
