/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "fabric/write/export.h"
#include "shape/hostlist.h"

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

static void hosts_count(struct slurm_writer *t, const struct fabric_hosts *c)
{
	const struct hierarchy *h = t->h;

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
}

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
	int rc = 0;

	hosts_count(t, c);
	for (unsigned level = t->h->nlevels; level-- > 0;)
		for (unsigned g = 0; g < t->h->ngroups && rc == 0; g++)
			if (t->h->groups[g].level == level && t->inside[g] && skip_lone(t, g) == g)
				rc = switch_write(t, g);
	return rc;
}

static int hierarchy_levels_write(struct slurm_writer *t, const struct hierarchy *h, const struct fabric_hosts *c)
{
	int rc = -1;

	t->h = h;
	t->mine = calloc(h->nhosts + 1, sizeof(*t->mine));
	t->inside = calloc(h->ngroups + 1, sizeof(*t->inside));
	t->branches = calloc(h->ngroups + 1, sizeof(*t->branches));
	if (t->mine && t->inside && t->branches)
		rc = plane_write(t, c);
	else
		err_set(t->err, "out of memory");
	free(t->mine);
	free(t->inside);
	free(t->branches);
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
		if (f->planes[i].levels)
			rc = hierarchy_levels_write(&t, f->planes[i].levels, c);
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
