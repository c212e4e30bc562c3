/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/order.h"
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

ORDER(counts_compare, unsigned, COMPARE(*x, *y))

/* Trunks with fewer cables than most, or hosts with a slower link. */
static void list_fewer(const struct fabric *f, struct buf *out, bool trunks)
{
	struct listing l = { .out = out, .lead = trunks ? "trunks with fewer cables than most" :
							  "hosts with a slower link than most" };
	unsigned *value = calloc(2 * (size_t) f->nlinks + 1, sizeof(*value)), *sorted = value + f->nlinks;
	unsigned n = 0, usual = 0, most = 0, run = 0;

	if (!value) {
		out->failed = true;
		return;
	}
	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *link = &f->links[i];

		if (trunks ? link->b < f->nswitches : link->a < f->nswitches && link->b >= f->nswitches && link->mbps)
			sorted[n++] = value[i] = trunks ? link->count : link->mbps / link->count;
	}
	qsort(sorted, n, sizeof(*sorted), counts_compare);
	for (unsigned i = 0; i < n; i++) {
		run = i && sorted[i] == sorted[i - 1] ? run + 1 : 1;
		if (run > most) {
			most = run;
			usual = sorted[i];
		}
	}
	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *link = &f->links[i];
		struct buf name = {0};

		if (!value[i] || value[i] >= usual)
			continue;
		if (trunks)
			buf_printf(&name, "%s--", f->nodes[link->a].name);
		buf_puts(&name, f->nodes[link->b].name);
		if (!name.failed)
			list_name(&l, name.data);
		buf_free(&name);
	}
	free(value);
	list_end(&l);
}

void fabric_list_anomalies(const struct fabric *f, struct buf *out)
{
	struct listing unnamed = { out, "adapters of unknown hosts", 0 };
	struct listing alike = { out, "hosts named by GUID, for adapters of several have one description", 0 };
	struct listing alone = { out, "hosts without a switch", 0 };
	struct listing idle = { out, "switches in a plane without hosts", 0 };

	for (unsigned i = f->nswitches; i < f->nnodes; i++)
		if (!f->nodes[i].named)
			list_name(&unnamed, f->nodes[i].name);
	list_end(&unnamed);
	/*
	 * Descriptions that name one device of one host several times, or one host without a device on several
	 * switches.
	 */
	for (unsigned i = f->nswitches; i < f->nnodes; i++) {
		struct buf name = {0};

		buf_printf(&name, "%s (", f->nodes[i].name);
		if (!f->nodes[i].named && f->nodes[i].description && names_host(f->nodes[i].description, &name)) {
			buf_puts(&name, ")");
			list_name(&alike, name.failed ? f->nodes[i].name : name.data);
		}
		buf_free(&name);
	}
	list_end(&alike);
	for (unsigned i = f->nswitches; i < f->nnodes; i++)
		if (f->nodes[i].plane == FABRIC_NO_PLANE)
			list_name(&alone, f->nodes[i].name);
	list_end(&alone);
	for (unsigned i = 0; i < f->nswitches; i++)
		if (!f->planes[f->nodes[i].plane].hosts)
			list_name(&idle, f->nodes[i].name);
	list_end(&idle);
	list_several(f, out, false);
	list_several(f, out, true);
	list_spines(f, out);
	list_fewer(f, out, true);
	list_fewer(f, out, false);
}
