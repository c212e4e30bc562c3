/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/model/net.h"

#include <stdlib.h>

static void join_switches(const struct fabric *f, unsigned *parent)
{
	for (unsigned i = 0; i < f->nswitches; i++)
		parent[i] = i;
	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *l = &f->links[i];

		if (l->b < f->nswitches)
			net_sets_join(parent, l->a, l->b);
	}
}

static void number_switches(struct fabric *f, unsigned *parent)
{
	for (unsigned i = 0; i < f->nswitches; i++) {
		unsigned root = net_sets_root(parent, i);

		f->nodes[i].plane = root == i ? f->nplanes++ : f->nodes[root].plane;
	}
}

/* One link from a host to a plane. */
struct host_link {
	unsigned plane, host;
};

static int touch_compare(const void *a, const void *b)
{
	const struct host_link *x = a, *y = b;

	if (x->plane != y->plane)
		return x->plane < y->plane ? -1 : 1;
	return (x->host > y->host) - (x->host < y->host);
}

static void count_hosts(struct fabric *f, struct host_link *touches, unsigned n)
{
	qsort(touches, n, sizeof(*touches), touch_compare);
	for (unsigned i = 0; i < n; i++)
		if (!i || touch_compare(&touches[i - 1], &touches[i]))
			f->planes[touches[i].plane].hosts++;
}

static int count_all(struct fabric *f)
{
	struct host_link *touches = calloc(f->nlinks + 1, sizeof(*touches));
	unsigned n = 0;

	if (!touches)
		return -1;
	for (unsigned i = 0; i < f->nswitches; i++)
		f->planes[f->nodes[i].plane].switches++;
	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *l = &f->links[i];

		if (l->a >= f->nswitches)
			continue;
		f->planes[f->nodes[l->a].plane].links++;
		f->planes[f->nodes[l->a].plane].cables += l->count;
		if (l->b >= f->nswitches)
			touches[n++] = (struct host_link){ f->nodes[l->a].plane, l->b };
	}
	count_hosts(f, touches, n);
	free(touches);
	return 0;
}

struct order {
	unsigned hosts, plane;
};

static int order_compare(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->hosts != y->hosts)
		return x->hosts > y->hosts ? -1 : 1;
	return (x->plane > y->plane) - (x->plane < y->plane);
}

static int sort_planes(struct fabric *f)
{
	struct order *order = calloc(f->nplanes + 1, sizeof(*order));
	struct fabric_plane *sorted = calloc(f->nplanes + 1, sizeof(*sorted));
	unsigned *now = calloc(f->nplanes + 1, sizeof(*now));
	int rc = -1;

	if (order && sorted && now) {
		for (unsigned i = 0; i < f->nplanes; i++)
			order[i] = (struct order){ f->planes[i].hosts, i };
		qsort(order, f->nplanes, sizeof(*order), order_compare);
		for (unsigned i = 0; i < f->nplanes; i++) {
			sorted[i] = f->planes[order[i].plane];
			now[order[i].plane] = i;
		}
		for (unsigned i = 0; i < f->nswitches; i++)
			f->nodes[i].plane = now[f->nodes[i].plane];
		free(f->planes);
		f->planes = sorted;
		sorted = NULL;
		rc = 0;
	}
	free(order);
	free(sorted);
	free(now);
	return rc;
}

/* A host belongs to the first plane that it has a link to. */
static void place_hosts(struct fabric *f)
{
	for (unsigned i = f->nswitches; i < f->nnodes; i++)
		f->nodes[i].plane = FABRIC_NO_PLANE;
	for (unsigned i = 0; i < f->nlinks; i++) {
		const struct fabric_link *l = &f->links[i];

		if (l->a < f->nswitches && l->b >= f->nswitches && f->nodes[l->a].plane < f->nodes[l->b].plane)
			f->nodes[l->b].plane = f->nodes[l->a].plane;
	}
}

int planes_find(struct fabric *f)
{
	unsigned *parent = calloc(f->nswitches + 1, sizeof(*parent));

	if (!parent)
		return -1;
	join_switches(f, parent);
	number_switches(f, parent);
	free(parent);
	if (!(f->planes = calloc(f->nplanes + 1, sizeof(*f->planes))) || count_all(f) || sort_planes(f))
		return -1;
	place_hosts(f);
	return 0;
}
