/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/write/export.h"

#include "base/std.h"
#include "shape/hostlist.h"

/* --- Slurm --- */

/* The syntax by which a file states the children of a switch. */
struct dialect {
	const char *start, *nodes, *switches;
};

static const struct dialect conf = { "", "SwitchName=%s Nodes=", "SwitchName=%s Switches=" };
static const struct dialect yaml = {
	"---\n- topology: fabric\n  cluster_default: true\n  tree:\n    switches:\n",
	"      - switch: %s\n        nodes: ", "      - switch: %s\n        children: ",
};

/* The hosts to write: named, not in an earlier plane, and wanted by the caller. */
struct slurm_writer {
	const struct fabric *f;
	const struct hierarchy *h;
	bool *written;			/* by node of the fabric, over all planes */
	bool *mine;			/* by host of h */
	unsigned *inside;		/* by group: hosts below it; and its groups that have hosts */
	unsigned *branches;
	const struct dialect *dialect;
	struct buf *out;
	struct err *err;
};

static bool is_bottom(const struct hierarchy *h, unsigned g)
{
	return h->groups[g].level + 1 == h->nlevels;
}

/* A group whose only child is a group joins nothing: the child is written instead. */
static unsigned skip_lone(const struct slurm_writer *t, unsigned g)
{
	while (!is_bottom(t->h, g) && t->branches[g] == 1)
		for (unsigned i = g + 1; i < t->h->ngroups; i++)
			if (t->h->groups[i].above == g && t->inside[i]) {
				g = i;
				break;
			}
	return g;
}

/* lead has a %s for the name. */
static int list_write(struct slurm_writer *t, const char *lead, const char *name, struct buf *list)
{
	const char *at = strstr(lead, "%s");
	int rc = -1;

	buf_printf(t->out, "%.*s%s%s", (int) (at - lead), lead, name, at + 2);
	if (!list->failed)
		rc = hostlist_fold(list->data, t->out, t->err);
	else
		err_set(t->err, "out of memory");
	buf_puts(t->out, "\n");
	buf_free(list);
	return rc;
}

static int switch_write(struct slurm_writer *t, unsigned g)
{
	const struct hierarchy *h = t->h;
	struct buf list = {0};

	if (is_bottom(h, g)) {
		for (unsigned i = 0; i < h->nhosts; i++)
			if (h->hosts[i].group == g && t->mine[i])
				buf_printf(&list, "%s%s", list.len ? "," : "", h->hosts[i].name);
		return list_write(t, t->dialect->nodes, h->groups[g].name, &list);
	}
	for (unsigned i = 1; i < h->ngroups; i++)
		if (h->groups[i].above == g && t->inside[i])
			buf_printf(&list, "%s%s", list.len ? "," : "", h->groups[skip_lone(t, i)].name);
	return list_write(t, t->dialect->switches, h->groups[g].name, &list);
}

static int plane_write(struct slurm_writer *t, const struct fabric_hosts *c)
{
	const struct hierarchy *h = t->h;
	int rc = 0;

	for (unsigned i = 0; i < h->nhosts; i++) {
		unsigned node = fabric_node(t->f, h->hosts[i].name, false);

		t->mine[i] = node < t->f->nnodes && t->f->nodes[node].named && !t->written[node] &&
			(!c || c->has(h->hosts[i].name, c->user));
		if (t->mine[i])
			t->written[node] = true;
		t->inside[h->hosts[i].group] += t->mine[i];
	}
	for (unsigned g = h->ngroups; g-- > 1;) {
		t->inside[h->groups[g].above] += t->inside[g];
		t->branches[h->groups[g].above] += t->inside[g] > 0;
	}
	for (unsigned level = t->h->nlevels; level-- > 0;)
		for (unsigned g = 0; g < t->h->ngroups && rc == 0; g++)
			if (t->h->groups[g].level == level && t->inside[g] && skip_lone(t, g) == g)
				rc = switch_write(t, g);
	return rc;
}

static int write_dialect(const struct dialect *d, const struct fabric *f, const struct fabric_hosts *c, struct buf *out,
			 struct err *e)
{
	struct slurm_writer t = { .f = f, .written = calloc(f->nnodes + 1, sizeof(bool)), .dialect = d, .out = out,
			     .err = e };
	int rc = t.written ? 0 : err_set(e, "out of memory");
	size_t before;

	buf_puts(out, d->start);
	before = out->len;
	for (unsigned i = 0; i < f->nplanes && rc == 0; i++)
		if (f->planes[i].levels) {
			rc = -1;
			t.h = f->planes[i].levels;
			t.mine = calloc(f->planes[i].levels->nhosts + 1, sizeof(*t.mine));
			t.inside = calloc(f->planes[i].levels->ngroups + 1, sizeof(*t.inside));
			t.branches = calloc(f->planes[i].levels->ngroups + 1, sizeof(*t.branches));
			if (t.mine && t.inside && t.branches)
				rc = plane_write(&t, c);
			else
				err_set(t.err, "out of memory");
			free(t.mine);
			free(t.inside);
			free(t.branches);
		}
	free(t.written);
	if (rc == 0 && out->failed)
		rc = err_set(e, "out of memory");
	if (rc == 0 && out->len == before)
		rc = err_set(e, "no switch has a host with a known name");
	return rc;
}

int fabric_write_slurm(const struct fabric *f, const struct fabric_hosts *c, struct buf *out, struct err *e)
{
	return write_dialect(&conf, f, c, out, e);
}

int fabric_write_slurm_yaml(const struct fabric *f, const struct fabric_hosts *c, struct buf *out, struct err *e)
{
	return write_dialect(&yaml, f, c, out, e);
}

/* --- Scotch --- */

int fabric_write_scotch(const struct hierarchy *h, struct buf *out, struct err *e)
{
	unsigned long long leaves = 1;

	for (unsigned l = 0; l < h->nlevels; l++) {
		if (h->level[l].form != HIERARCHY_TREE)
			return err_set(e,
				       "not a tree: a Scotch target file cannot describe this network with its hosts");
		leaves *= h->level[l].size;
		if (leaves > 1u << 30)
			return err_set(e, "more leaves than Scotch supports");
	}
	if (leaves != h->nhosts) {
		buf_printf(out, "sub\n%u", h->nhosts);
		for (unsigned i = 0; i < h->nhosts; i++) {
			/* The number of a host among the leaves of the padded tree. */
			unsigned long long leaf = 0;

			for (unsigned l = 0; l < h->nlevels; l++)
				leaf = leaf * h->level[l].size + h->hosts[i].at[l];
			buf_printf(out, " %llu", leaf);
		}
		buf_puts(out, "\n");
	}
	buf_printf(out, "tleaf\n%u", h->nlevels);
	/* Scotch adds the costs of all levels climbed. */
	for (unsigned l = 0; l < h->nlevels; l++) {
		unsigned below = l + 1 < h->nlevels ? h->level[l + 1].cost[0] : 0, cost = h->level[l].cost[0];

		buf_printf(out, " %u %u", h->level[l].size, cost > below ? cost - below : 1);
	}
	buf_puts(out, "\n");
	return out->failed ? err_set(e, "out of memory") : 0;
}

/* --- Graphviz --- */

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
		if (f->links[*link].b >= f->nswitches) {
			const char *name = f->nodes[f->links[*link].b].name;

			buf_puts(out, c && c->has(name, c->user) ? "<tr><td bgcolor=\"#f6a04d\">" : "<tr><td>");
			put_name(out, name, true);
			buf_puts(out, "</td></tr>\n");
		}
	buf_puts(out, "</table>>]\n");
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
		for (unsigned rank = 0; rank < ranks; rank++) {
			/* Without this, dot(1) orders the switches of a rank so that as few lines as possible cross. */
			unsigned n = 0;

			for (unsigned s = 0; s < f->nswitches; s++) {
				if (f->nodes[s].plane != i || f->nodes[s].rank != rank)
					continue;
				buf_puts(out, n++ ? " -- \"" : "{ rank=same; edge [style=invis]; \"");
				put_name(out, f->nodes[s].name, false);
				buf_puts(out, "\"");
			}
			if (n)
				buf_puts(out, " }\n");
		}
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
