/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/recognise/draft.h"

#include <stdlib.h>

#include "fabric/model/net.h"

/*
 * In this order: the first that accepts the plane. Trees are tried twice, the second time with fewer leaf switches:
 * spines may have hosts.
 */
static const struct {
	enum fabric_kind kind;
	bool fewer;
	int (*recognise)(const struct net *n, struct hierarchy **out);
} recognisers[] = {
	{ FABRIC_FAT_TREE, false, net_tree }, { FABRIC_FAT_TREE, true, net_tree }, { FABRIC_GRAPH, false, net_graph },
};

const char *fabric_kind_name(enum fabric_kind kind)
{
	static const char *const names[] = { "no hosts", "one switch", "fat tree", "torus", "graph" };

	return names[kind];
}

/* From all leaf switches upwards at once. */
static int set_ranks(struct fabric *f, const struct net *n)
{
	unsigned *queue = calloc(n->n + 1, sizeof(*queue)), head = 0, tail = 0;

	if (!queue)
		return -1;
	for (unsigned s = 0; s < n->n; s++) {
		f->nodes[n->node[s]].rank = n->leaf[s] ? 0 : NET_NONE;
		if (n->leaf[s])
			queue[tail++] = s;
	}
	for (; head < tail; head++)
		for (unsigned i = n->row[queue[head]]; i < n->row[queue[head] + 1]; i++) {
			struct fabric_node *other = &f->nodes[n->node[n->adj[i]]];

			if (other->rank != NET_NONE)
				continue;
			other->rank = f->nodes[n->node[queue[head]]].rank + 1;
			queue[tail++] = n->adj[i];
		}
	for (unsigned s = 0; s < n->n; s++)
		if (f->nodes[n->node[s]].rank == NET_NONE)
			f->nodes[n->node[s]].rank = 0;
	for (unsigned i = 0; i < f->nswitches; i++)
		if (n->of[i] != NET_NONE)
			f->nodes[i].rank = f->nodes[n->node[n->of[i]]].rank;
	free(queue);
	return 0;
}

static int recognise_net(struct fabric_plane *p, struct net *n)
{
	p->kind = FABRIC_GRAPH;
	for (size_t i = 0; i < sizeof(recognisers) / sizeof(recognisers[0]); i++) {
		net_find_leaves(n, recognisers[i].fewer);
		if (recognisers[i].recognise(n, &p->levels))
			return -1;
		if (!p->levels)
			continue;
		p->kind = recognisers[i].kind;
		if (p->kind == FABRIC_FAT_TREE && p->levels->nlevels == 1)
			p->kind = FABRIC_ONE_SWITCH;
		return 0;
	}
	return 0;
}

int fabric_recognise(struct fabric *f)
{
	for (unsigned i = 0; i < f->nplanes && f->planes[i].hosts; i++) {
		struct net n = {0};
		int rc = net_make(f, i, &n);

		if (rc)
			return -1;
		rc = recognise_net(&f->planes[i], &n);
		if (rc == 0)
			rc = set_ranks(f, &n);
		net_free(&n);
		if (rc)
			return -1;
	}
	return 0;
}
