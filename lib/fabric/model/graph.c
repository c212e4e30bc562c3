/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>

#include "fabric/model/net.h"

#define MAX_SWITCHES 8192u	/* with hosts: memory grows with its square */

/* The switches with hosts, in order. */
static unsigned find_places(const struct net *n, unsigned *place)
{
	unsigned count = 0;

	for (unsigned s = 0; s < n->n; s++)
		place[s] = n->hosts[s] ? count++ : NET_NONE;
	return count;
}

static int add_switches(const struct net *n, struct hierarchy *h, const unsigned *place, unsigned *group, unsigned *at)
{
	int rc = hierarchy_add_group(h, "fabric", 0, 0, 0);

	for (unsigned s = 0; rc >= 0 && s < n->n; s++) {
		group[s] = NET_NONE;
		at[(size_t) s * HIERARCHY_LEVELS] = place[s];
		if (place[s] != NET_NONE)
			group[s] = rc = hierarchy_add_group(h, net_name(n, s), 1, 0, place[s]);
	}
	return rc < 0 ? -1 : 0;
}

static void hops_measure(const struct net *n, const unsigned *place, unsigned count, unsigned *out, unsigned *hops,
			 unsigned *queue)
{
	for (unsigned s = 0; s < n->n; s++) {
		if (place[s] == NET_NONE)
			continue;
		net_hops(n, s, hops, queue);
		for (unsigned t = 0; t < n->n; t++)
			if (place[t] != NET_NONE)
				out[(size_t) place[s] * count + place[t]] = hops[t];
	}
}

int net_graph(const struct net *n, struct hierarchy **out)
{
	unsigned *place = calloc(n->n + 1, sizeof(*place)), *group = calloc(n->n + 1, sizeof(*group));
	unsigned *at = calloc((size_t) n->n * HIERARCHY_LEVELS + 1, sizeof(*at)),
		 *hops = calloc(n->n + 1, sizeof(*hops));
	unsigned *queue = calloc(n->n + 1, sizeof(*queue)), *all = NULL, count = place ? find_places(n, place) : 0;
	struct hierarchy *h = NULL;
	int rc = -1;

	*out = NULL;
	if (place && group && at && hops && queue)
		rc = 0;
	if (rc || !count || count > MAX_SWITCHES)
		goto end;
	all = calloc((size_t) count * count, sizeof(*all));
	h = hierarchy_new();
	rc = -1;
	if (!all || !h || add_switches(n, h, place, group, at))
		goto end;
	hops_measure(n, place, count, all, hops, queue);
	h->nlevels = 2;
	h->level[0] = (struct hierarchy_level){ .form = HIERARCHY_GRAPH, .size = count, .dims = 1, .dim = { count },
						.cost = { COST_HOP }, .pruned = 100, .hops = all };
	all = NULL;
	rc = net_add_hosts(n, h, group, at);
	if (rc == 0) {
		*out = h;
		h = NULL;
	}
end:
	hierarchy_free(h);
	free(place);
	free(group);
	free(at);
	free(hops);
	free(queue);
	free(all);
	return rc;
}
