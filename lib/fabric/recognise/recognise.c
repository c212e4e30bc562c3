/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/recognise/draft.h"

#include "base/std.h"
#include "fabric/model/net.h"

/* --- trees --- */

/*
 * A fat tree is recognised by its distances: climbing k tiers and back takes 2k hops, or one less to a switch that
 * lacks a tier, and for every k "at most k tiers apart" partitions the leaf switches into classes. Spines that reach
 * the same leaf switches act as one and need not be distinguished. Hosts on a spine are placed beside the leaf switches
 * below it.
 */
enum { MAX_LEAVES = 8192, MAX_TIERS = HIERARCHY_LEVELS - 1 };

struct tree {
	const struct net *net;
	unsigned *of;			/* each member's switch: leaf switches first, then spines */
	unsigned n, nleaves;
	unsigned char *tiers;		/* tiers[i * nleaves + j]: from leaf switch i to j */
	unsigned *rep, *reach;		/* each member's leaf switch; the tier whose class has all at that distance */
	unsigned *class[MAX_TIERS + 1];	/* class[k][i]: the first leaf switch within k tiers of leaf switch i */
	unsigned ntiers;
};

/* Whether the class of that tier equals that of the tier below. */
static bool joins_nothing(const struct tree *t, unsigned k, unsigned leaf)
{
	for (unsigned j = 0; j < t->nleaves; j++)
		if (t->class[k][j] == t->class[k][leaf] && t->class[k - 1][j] != t->class[k - 1][leaf])
			return false;
	return true;
}

/* Measures distances. Returns 1: a tree; 0: too many tiers, or "within k tiers" is no partition; -1: memory. */
static int tree_measure(struct tree *t)
{
	unsigned *hops = calloc(t->net->n + 1, sizeof(*hops)), *queue = calloc(t->net->n + 1, sizeof(*queue)), kept = 0;
	size_t n = t->nleaves;
	int rc = hops && queue ? 1 : -1;

	for (unsigned i = 0; i < n && rc > 0; i++) {
		net_hops(t->net, t->of[i], hops, queue);
		for (unsigned j = 0; j < n; j++) {
			unsigned tiers = (hops[t->of[j]] + 1) / 2;

			if (tiers > MAX_TIERS)
				rc = 0;
			t->tiers[i * n + j] = tiers;
			if (t->ntiers < tiers)
				t->ntiers = tiers;
		}
	}
	for (unsigned k = 0; rc > 0 && k <= t->ntiers; k++) {	/* the classes by distance */
		for (unsigned i = 0; i < n; i++)
			while (t->tiers[i * n + t->class[k][i]] > k)
				t->class[k][i]++;
		for (unsigned i = 0; i < n; i++)
			for (unsigned j = 0; j < i; j++)
				if ((t->tiers[i * n + j] <= k) != (t->class[k][i] == t->class[k][j]))
					rc = 0;
	}
	if (rc <= 0)
		goto out;
	/* Drops tiers that join nothing, because no two leaf switches are at that distance. */
	for (unsigned k = 1; k <= t->ntiers; k++)
		if (memcmp(t->class[k], t->class[kept], n * sizeof(**t->class)))
			memmove(t->class[++kept], t->class[k], n * sizeof(**t->class));
	t->ntiers = kept;
	/* One leaf switch, but hosts on others: a tier for those. */
	for (unsigned i = n; i < t->n; i++)
		if (t->ntiers == 0 && t->net->hosts[t->of[i]])
			t->ntiers = 1;
	for (unsigned i = 0; i < n; i++)
		t->rep[i] = i;
	for (unsigned i = n; i < t->n; i++) {
		unsigned nearest = 0, k;

		net_hops(t->net, t->of[i], hops, queue);
		for (unsigned j = 1; j < t->nleaves; j++)
			if (hops[t->of[j]] < hops[t->of[nearest]])
				nearest = j;
		k = t->ntiers ? 1 : 0;
		for (unsigned j = 0; j < t->nleaves; j++)
			while (hops[t->of[j]] == hops[t->of[nearest]] && k < t->ntiers &&
			       t->class[k][j] != t->class[k][nearest])
				k++;
		while (k && k < t->ntiers && joins_nothing(t, k, nearest))
			k++;
		t->rep[i] = nearest;
		t->reach[i] = k;
	}
out:
	free(hops);
	free(queue);
	return rc;
}

/* The groups, from the top: classes; at the bottom one for each leaf switch, and for each spine with hosts. */
struct group_builder {
	const struct tree *tree;
	struct hierarchy *h;
	unsigned *group[MAX_TIERS + 1];	/* group[k][class] */
	unsigned *inside;		/* by group: elements so far */
	unsigned *bottom, *at;		/* by switch, for net_add_hosts */
};

static int add_group(struct group_builder *g, const char *name, unsigned level, unsigned above)
{
	unsigned at = level ? g->inside[above]++ : 0;
	struct hierarchy_level *l = level ? &g->h->level[level - 1] : NULL;

	if (l && l->size <= at)
		l->size = l->dim[0] = at + 1;
	return hierarchy_add_group(g->h, name, level, above, at);
}

static int grow_classes(struct group_builder *g, unsigned k)
{
	const struct tree *t = g->tree;

	for (unsigned i = 0; i < t->nleaves; i++) {
		unsigned above = k < t->ntiers ? g->group[k + 1][t->class[k + 1][i]] : 0;
		char name[300];
		int group;

		if (t->class[k][i] != i)
			continue;
		/* The name of a class of tier k: that of its only switch, else one derived from its position. */
		unsigned joints = 0, nth = 0, last = 0, plane = t->net->fabric->nodes[t->net->node[0]].plane;

		for (unsigned j = t->nleaves; j < t->n; j++)
			if (t->reach[j] == k && t->class[k][t->rep[j]] == i) {
				joints++;
				last = t->of[j];
			}
		for (unsigned j = 0; j < i; j++)
			nth += t->class[k][j] == j;
		if (joints == 1 && !t->net->hosts[last])
			snprintf(name, sizeof(name), "%s", net_name(t->net, last));
		else if (plane)
			snprintf(name, sizeof(name), "plane%u-tier%u-%u", plane, k, nth);
		else
			snprintf(name, sizeof(name), "tier%u-%u", k, nth);
		if ((group = add_group(g, name, t->ntiers - k, above)) < 0)
			return -1;
		g->group[k][i] = group;
	}
	return 0;
}

/*
 * Adds a switch with hosts, below the class of the first tier that contains it; for a spine adds the tiers between,
 * too.
 */
static int grow_bottom(struct group_builder *g, unsigned i)
{
	const struct tree *t = g->tree;
	unsigned s = t->of[i], from = i < t->nleaves ? 1 : t->reach[i], above = 0,
		 *at = &g->at[(size_t) s * HIERARCHY_LEVELS];
	int group;

	if (t->ntiers)
		above = g->group[from][t->class[from][t->rep[i]]];
	for (unsigned k = t->ntiers ? from : 1; k-- > 0;) {
		char name[300];

		if (k)
			snprintf(name, sizeof(name), "%s-tier%u", net_name(t->net, s), k);
		else
			snprintf(name, sizeof(name), "%s", net_name(t->net, s));
		if ((group = add_group(g, name, t->ntiers - k, above)) < 0)
			return -1;
		above = group;
	}
	g->bottom[s] = above;
	for (unsigned x = above; g->h->groups[x].level; x = g->h->groups[x].above)
		at[g->h->groups[x].level - 1] = g->h->groups[x].at;
	return 0;
}

/*
 * Pruning: bandwidth of the hosts below the classes of tier k over that of their uplinks, in percent; at least 100,
 * also when unknown.
 */
static unsigned pruning_of(const struct tree *t, unsigned k, const unsigned *member)
{
	const struct net *n = t->net;
	const struct fabric *f = n->fabric;
	unsigned long long down = 0, up = 0;

	for (unsigned i = 0; i < t->n; i++)
		for (unsigned j = n->row[t->of[i]]; j < n->row[t->of[i] + 1]; j++) {
			unsigned other = member[n->adj[j]];

			if (t->reach[i] <= k &&
			    (t->reach[other] > k || t->class[k][t->rep[other]] != t->class[k][t->rep[i]]))
				up += f->links[n->link[j]].mbps;
		}
	for (unsigned i = 0; i < f->nlinks; i++) {
		unsigned home = f->links[i].b < f->nswitches ? NET_NONE : n->home[f->links[i].b - f->nswitches];

		if (home != NET_NONE && f->links[i].a < f->nswitches && n->of[f->links[i].a] == home &&
		    t->reach[member[home]] <= k)
			down += f->links[i].mbps;
	}
	return up && down > up ? down * 100 / up : 100;
}

static int set_costs(const struct tree *t, struct hierarchy *h)
{
	unsigned *member = calloc(t->net->n + 1, sizeof(*member)), cost = COST_HOST;

	if (!member)
		return -1;
	for (unsigned i = 0; i < t->n; i++)
		member[t->of[i]] = i;
	for (unsigned k = 0; k < t->ntiers; k++) {
		struct hierarchy_level *level = &h->level[t->ntiers - 1 - k];

		level->dims = 1;
		level->pruned = pruning_of(t, k, member);
		cost += COST_CLIMB * level->pruned / 100;
		level->cost[0] = cost;
	}
	free(member);
	return 0;
}

static struct hierarchy *tree_grow(const struct tree *t)
{
	struct group_builder g = { .tree = t, .h = hierarchy_new() };
	bool ok = g.h;

	for (unsigned k = 0; k <= t->ntiers; k++)
		ok &= (g.group[k] = calloc(t->nleaves + 1, sizeof(**g.group))) != NULL;
	ok &= (g.inside = calloc((size_t) t->n * (MAX_TIERS + 1) + 1, sizeof(*g.inside))) != NULL;
	ok &= (g.bottom = malloc((t->net->n + 1) * sizeof(*g.bottom))) != NULL;
	ok &= (g.at = calloc((size_t) t->net->n * HIERARCHY_LEVELS + 1, sizeof(*g.at))) != NULL;
	if (ok) {
		memset(g.bottom, 0xff, (t->net->n + 1) * sizeof(*g.bottom));
		g.h->nlevels = t->ntiers + 1;
		for (unsigned k = t->ntiers; ok && k > 0; k--)
			ok = grow_classes(&g, k) == 0;
		for (unsigned i = 0; ok && i < t->n; i++)
			ok = !t->net->hosts[t->of[i]] || grow_bottom(&g, i) == 0;
		ok = ok && net_add_hosts(t->net, g.h, g.bottom, g.at) == 0 && set_costs(t, g.h) == 0;
	}
	for (unsigned k = 0; k <= MAX_TIERS; k++)
		free(g.group[k]);
	free(g.inside);
	free(g.bottom);
	free(g.at);
	if (ok)
		return g.h;
	hierarchy_free(g.h);
	return NULL;
}

/*
 * 0 with *out set, or NULL when the plane is no tree; -1 when memory is short. Adjacent switches with hosts are none,
 * unless there are only two. A single switch is one.
 */
static int tree_find(const struct net *n, struct hierarchy **out)
{
	struct tree t = { .net = n };
	int rc = 0;

	for (unsigned s = 0; s < n->n; s++)
		for (unsigned i = n->row[s]; i < n->row[s + 1]; i++)
			if (n->leaf[s] && n->leaf[n->adj[i]] && n->nleaves > 2)
				return 0;
	if (!n->nleaves || n->nleaves > MAX_LEAVES)
		return 0;
	t.of = calloc(n->n + 1, sizeof(*t.of));
	t.tiers = calloc((size_t) n->nleaves * n->nleaves + 1, 1);
	t.rep = calloc(n->n + 1, sizeof(*t.rep));
	t.reach = calloc(n->n + 1, sizeof(*t.reach));
	for (unsigned k = 0; k <= MAX_TIERS; k++)
		if (!(t.class[k] = calloc(n->nleaves + 1, sizeof(**t.class))))
			rc = -1;
	if (rc || !t.of || !t.tiers || !t.rep || !t.reach) {
		rc = -1;
		goto out;
	}
	for (unsigned s = 0; s < n->n; s++)
		if (n->leaf[s])
			t.of[t.n++] = s;
	t.nleaves = t.n;
	for (unsigned s = 0; s < n->n; s++)
		if (!n->leaf[s])
			t.of[t.n++] = s;
	rc = tree_measure(&t);
	if (rc > 0)
		rc = (*out = tree_grow(&t)) ? 0 : -1;
out:
	free(t.of);
	free(t.tiers);
	free(t.rep);
	free(t.reach);
	for (unsigned k = 0; k <= MAX_TIERS; k++)
		free(t.class[k]);
	return rc;
}

/* --- graphs --- */

#define MAX_SWITCHES 8192u	/* with hosts: memory grows with its square */

/* Of the switches with hosts, the hops between each two. As tree_find; all planes up to a size are graphs. */
static int graph_find(const struct net *n, struct hierarchy **out)
{
	unsigned *place = calloc(4 * (size_t) n->n + 1, sizeof(*place)), *group = place + n->n, *hops = group + n->n,
		 *queue = hops + n->n, *at = calloc((size_t) n->n * HIERARCHY_LEVELS + 1, sizeof(*at)), *all = NULL;
	struct hierarchy *h = NULL;
	unsigned count = 0;
	int rc = place && at ? 0 : -1;

	for (unsigned s = 0; rc == 0 && s < n->n; s++)
		place[s] = n->hosts[s] ? count++ : NET_NONE;
	if (rc || !count || count > MAX_SWITCHES)
		goto end;
	all = calloc((size_t) count * count, sizeof(*all));
	h = hierarchy_new();
	rc = all && h ? hierarchy_add_group(h, "fabric", 0, 0, 0) : -1;
	for (unsigned s = 0; rc >= 0 && s < n->n; s++) {
		group[s] = NET_NONE;
		at[(size_t) s * HIERARCHY_LEVELS] = place[s];
		if (place[s] == NET_NONE)
			continue;
		group[s] = rc = hierarchy_add_group(h, net_name(n, s), 1, 0, place[s]);
		net_hops(n, s, hops, queue);
		for (unsigned t = 0; t < n->n; t++)
			if (place[t] != NET_NONE)
				all[(size_t) place[s] * count + place[t]] = hops[t];
	}
	if (rc < 0)
		goto end;
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
	free(at);
	free(all);
	return rc;
}

/* --- any plane --- */

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

/* Trees are tried twice, the second time with fewer leaf switches, since spines may have hosts; then it is a graph. */
int fabric_recognise(struct fabric *f)
{
	for (unsigned i = 0; i < f->nplanes && f->planes[i].hosts; i++) {
		struct fabric_plane *p = &f->planes[i];
		struct net n = {0};
		int rc = net_make(f, i, &n);

		if (rc)
			return -1;
		for (unsigned fewer = 0; rc == 0 && !p->levels && fewer < 2; fewer++) {
			net_find_leaves(&n, fewer);
			rc = tree_find(&n, &p->levels);
		}
		p->kind = !p->levels ? FABRIC_GRAPH : p->levels->nlevels == 1 ? FABRIC_ONE_SWITCH : FABRIC_FAT_TREE;
		if (rc == 0 && !p->levels) {
			net_find_leaves(&n, false);
			rc = graph_find(&n, &p->levels);
		}
		if (rc == 0)
			rc = set_ranks(f, &n);
		net_free(&n);
		if (rc)
			return -1;
	}
	return 0;
}
