/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>

#include "fabric/model/names.h"

enum { NAMES = 8 };	/* listed by name; beyond that, their number */

/* "LEAD: cn1 cn2 cn3 and 12 more", once something is listed. */
struct listing {
	struct buf *out;
	const char *lead;
	unsigned n;
};

static void list_name(struct listing *l, const char *name)
{
	if (!l->n)
		buf_printf(l->out, "%s:", l->lead);
	if (l->n++ < NAMES)
		buf_printf(l->out, " %s", name);
}

static void list_end(struct listing *l)
{
	if (l->n > NAMES)
		buf_printf(l->out, " and %u more", l->n - NAMES);
	if (l->n)
		buf_puts(l->out, "\n");
}

static void list_unnamed(const struct fabric *f, struct buf *out)
{
	struct listing l = { out, "adapters of unknown hosts", 0 };

	for (unsigned i = f->nswitches; i < f->nnodes; i++)
		if (!f->nodes[i].named)
			list_name(&l, f->nodes[i].name);
	list_end(&l);
}

/* Descriptions that name one device of one host several times. */
static void list_alike(const struct fabric *f, struct buf *out)
{
	struct listing l = { out, "adapters that have the host and device of others in their description", 0 };

	for (unsigned i = f->nswitches; i < f->nnodes; i++) {
		struct buf name = {0};

		buf_printf(&name, "%s (", f->nodes[i].name);
		if (!f->nodes[i].named && f->nodes[i].description && names_host(f->nodes[i].description, &name)) {
			buf_puts(&name, ")");
			list_name(&l, name.failed ? f->nodes[i].name : name.data);
		}
		buf_free(&name);
	}
	list_end(&l);
}

static void list_unconnected(const struct fabric *f, struct buf *out)
{
	struct listing l = { out, "hosts without a switch", 0 };

	for (unsigned i = f->nswitches; i < f->nnodes; i++)
		if (f->nodes[i].plane == FABRIC_NO_PLANE)
			list_name(&l, f->nodes[i].name);
	list_end(&l);
}

static void list_idle(const struct fabric *f, struct buf *out)
{
	struct listing l = { out, "switches in a plane without hosts", 0 };

	for (unsigned i = 0; i < f->nswitches; i++)
		if (!f->planes[f->nodes[i].plane].hosts)
			list_name(&l, f->nodes[i].name);
	list_end(&l);
}

/* Hosts with links to several switches of one plane, or of several planes. */
static void list_several(const struct fabric *f, struct buf *out, bool planes)
{
	struct listing l = { out, planes ? "hosts in several planes" : "hosts on several switches of a plane", 0 };
	unsigned *first = calloc(f->nnodes + 1, sizeof(*first));

	if (!first) {
		out->failed = true;
		return;
	}
	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *link = &f->links[i];
		bool other;

		if (link->a >= f->nswitches || link->b < f->nswitches || first[link->b] == ~0u)
			continue;
		other = first[link->b] && (f->nodes[first[link->b] - 1].plane != f->nodes[link->a].plane) == planes;
		if (other)
			list_name(&l, f->nodes[link->b].name);
		if (other || !first[link->b])
			first[link->b] = other ? ~0u : link->a + 1;
	}
	list_end(&l);
	free(first);
}

static void list_dual(const struct fabric *f, struct buf *out)
{
	list_several(f, out, false);
}

static void list_planes(const struct fabric *f, struct buf *out)
{
	list_several(f, out, true);
}

static void list_spines(const struct fabric *f, struct buf *out)
{
	struct listing l = { out, "hosts on a spine", 0 };
	bool *beside = calloc(f->nnodes + 1, sizeof(*beside));	/* those with a link to a leaf switch, too */

	if (!beside) {
		out->failed = true;
		return;
	}
	for (unsigned i = 0; i < f->nlinks; i++)
		if (f->links[i].a < f->nswitches && !f->nodes[f->links[i].a].rank)
			beside[f->links[i].b] = true;
	for (unsigned i = f->nswitches; i < f->nnodes; i++)
		if (f->nodes[i].plane != FABRIC_NO_PLANE && !beside[i])
			list_name(&l, f->nodes[i].name);
	list_end(&l);
	free(beside);
}

static int counts_compare(const void *a, const void *b)
{
	const unsigned *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The most frequent value of a nonempty list, which is sorted. */
static unsigned most_frequent(unsigned *values, unsigned n)
{
	unsigned best = 0, most = 0, run = 0;

	qsort(values, n, sizeof(*values), counts_compare);
	for (unsigned i = 0; i < n; i++) {
		run = i && values[i] == values[i - 1] ? run + 1 : 1;
		if (run > most) {
			most = run;
			best = values[i];
		}
	}
	return best;
}

static bool is_trunk(const struct fabric *f, const struct fabric_link *l)
{
	return l->b < f->nswitches;
}

static bool is_host_link(const struct fabric *f, const struct fabric_link *l)
{
	return l->a < f->nswitches && l->b >= f->nswitches && l->mbps;
}

static unsigned link_cables(const struct fabric_link *l)
{
	return l->count;
}

static unsigned link_speed(const struct fabric_link *l)
{
	return l->mbps / l->count;
}

/* Links of a kind with less of something than most have. */
static void list_fewer(const struct fabric *f, struct buf *out, const char *lead,
		       bool (*is)(const struct fabric *, const struct fabric_link *),
		       unsigned (*value)(const struct fabric_link *))
{
	struct listing l = { out, lead, 0 };
	unsigned *values = calloc(f->nlinks + 1, sizeof(*values)), n = 0, most;

	if (!values) {
		out->failed = true;
		return;
	}
	for (unsigned i = 0; i < f->nlinks; i++)
		if (is(f, &f->links[i]))
			values[n++] = value(&f->links[i]);
	most = most_frequent(values, n);
	free(values);
	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *link = &f->links[i];
		struct buf name = {0};

		if (!is(f, link) || value(link) >= most)
			continue;
		if (is == is_trunk)
			buf_printf(&name, "%s--%s", f->nodes[link->a].name, f->nodes[link->b].name);
		else
			buf_puts(&name, f->nodes[link->b].name);
		if (!name.failed)
			list_name(&l, name.data);
		buf_free(&name);
	}
	list_end(&l);
}

static void list_thin(const struct fabric *f, struct buf *out)
{
	list_fewer(f, out, "trunks with fewer cables than most", is_trunk, link_cables);
}

static void list_slow(const struct fabric *f, struct buf *out)
{
	list_fewer(f, out, "hosts with a slower link than most", is_host_link, link_speed);
}

void fabric_list_anomalies(const struct fabric *f, struct buf *out)
{
	static void (*const tell[])(const struct fabric *f, struct buf *out) = {
		list_unnamed, list_alike, list_unconnected, list_idle, list_dual, list_planes, list_spines, list_thin,
		list_slow,
	};

	for (size_t i = 0; i < sizeof(tell) / sizeof(tell[0]); i++)
		tell[i](f, out);
}
