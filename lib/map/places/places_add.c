/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "map/places/places_room.h"
#include "hwview/restrict.h"

/* A Slurm node while its places are added. */
struct node {
	const struct shape *shape;
	const unsigned *above;		/* its path through the network, or NULL */
	unsigned levels;		/* of the network */
	unsigned host, kind;
	unsigned cpus;			/* of a task */
	unsigned threads;		/* CPUs of each core; 0: as many as it has PUs */
	unsigned *left;			/* cores not in a place yet, by domain at its first core */
	unsigned *nleft;		/* by domain */
	unsigned *leaf_of;		/* by core; cores not in the list have NO_LEAF */
	unsigned *domain_of;		/* by core */
	const struct numa_tree *numas;
	unsigned *numa_of;		/* by core, if there are groups of NUMA nodes */
};

#define NO_LEAF (~0u)

/* The levels of a node's path: the node, groups of NUMA nodes, then all from the package to the core. */
enum { NODE_PATH = NUMA_TREE_LEVELS + LEVEL_COUNT };
_Static_assert((int) NODE_PATH <= (int) HIERARCHY_INNER, "a path has room for them");

static unsigned path_level(enum level level)
{
	return level == LEVEL_NODE ? 0 : NUMA_TREE_LEVELS + level;
}

static unsigned domain_at(const struct shape *s, int d, enum level level)
{
	/* Domains are in preorder, so of two nested domains the inner one has the higher index and comes first here. */
	for (; d > 0; d = s->domains[d].parent)
		if (s->domains[d].level == level)
			return d;
	return 0;
}

/*
 * Where a core has no domain at a level, or one wider than the level above (memory around packages), the domain above
 * counts.
 */
static void core_path(const struct node *n, unsigned core, unsigned *path)
{
	unsigned around = 0;

	path[0] = 0;
	for (unsigned g = 0; g < NUMA_TREE_LEVELS; g++)
		path[1 + g] = g < n->numas->levels ? n->numas->group[g * n->numas->numas + n->numa_of[core]] : 0;
	for (int l = LEVEL_NODE + 1; l < LEVEL_COUNT; l++) {
		unsigned own = domain_at(n->shape, n->domain_of[core], l);

		around = own < around ? around : own;
		path[path_level(l)] = around;
	}
}

/* Below the domains that hold all its cores a place has numbers of its own. */
static void path_fill(const struct node *n, struct place *place, const unsigned *core, unsigned cores)
{
	unsigned *path = place->path + n->levels, other[NODE_PATH];

	if (n->above)
		memcpy(place->path, n->above, n->levels * sizeof(*path));
	core_path(n, core[0], path);
	for (unsigned i = 1; i < cores; i++) {
		unsigned l = 0;

		core_path(n, core[i], other);
		while (l < NODE_PATH && path[l] == other[l])
			l++;
		for (; l < NODE_PATH; l++)
			path[l] = n->shape->ndomains + place->id;
	}
	path[0] = n->host;
}

static unsigned core_cpus(const struct node *n, unsigned core)
{
	return n->threads ? n->threads : n->shape->threads[core];
}

/* Tasks share a core only if each has all its CPUs there. */
static void place_make(const struct node *n, struct places *p, const unsigned *core, unsigned cores)
{
	struct place *place = places_append(p, n->kind, cores > 1 ? 1 : core_cpus(n, core[0]) / n->cpus);

	for (unsigned i = 0; i < cores; i++, p->nleaves++) {
		p->leaf[p->nleaves] = n->leaf_of[core[i]];
		p->core[p->nleaves] = core[i];
	}
	place->leaves = cores;
	path_fill(n, place, core, cores);
}

/*
 * Makes as many places as possible of the cores left over by the domain's parts, each of as many cores as have the CPUs
 * of a task; the rest is passed to the domain around it.
 */
static void domain_fill(struct node *n, struct places *p, int domain)
{
	const struct shape_domain *d = &n->shape->domains[domain];
	unsigned *core = &n->left[d->first], from = 0, count = n->nleft[domain];

	if (d->level == LEVEL_CORE && n->leaf_of[d->first] != NO_LEAF)
		core[count++] = d->first;
	for (unsigned i = 0, cpus = 0; i < count; i++) {
		if ((cpus += core_cpus(n, core[i])) < n->cpus)
			continue;
		place_make(n, p, core + from, i + 1 - from);
		from = i + 1;
		cpus = 0;
	}
	if (d->parent < 0)
		return;
	/* Moves towards the front, never past what is read: the parts of a domain are stored one after another. */
	memmove(&n->left[n->shape->domains[d->parent].first + n->nleft[d->parent]], core + from,
		(count - from) * sizeof(*core));
	n->nleft[d->parent] += count - from;
}

/* A domain after all domains in it, which in preorder is when the first one outside it comes. */
static void node_fill(struct node *n, struct places *p)
{
	const struct shape_domain *all = n->shape->domains;
	int around = -1;

	for (size_t d = 0; d < n->shape->ndomains; d++) {
		for (; around != all[d].parent; around = all[around].parent)
			domain_fill(n, p, around);
		around = d;
	}
	for (; around >= 0; around = all[around].parent)
		domain_fill(n, p, around);
}

static int path_order(const void *x, const void *y)
{
	const struct place *a = x, *b = y;

	for (int l = 0; l < PLACES_LEVELS; l++)
		if (a->path[l] != b->path[l])
			return a->path[l] < b->path[l] ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

/* Places across a boundary come after the others, so that the places of one domain are contiguous. */
static void places_order(struct places *p, unsigned first)
{
	qsort(p->place + first, p->nplaces - first, sizeof(*p->place), path_order);
	for (unsigned i = first; i < p->nplaces; i++)
		p->place[i].id = i;
}

static int not_there(const struct places *p, const char *host, struct err *e)
{
	for (unsigned i = 0; p->planes && i < p->planes->nplanes; i++)
		if (p->planes->planes[i].levels && hierarchy_find(p->planes->planes[i].levels, host))
			return err_set(
				e,
				"%s: this node is in plane %u of the network, not in the selected one",
				host, i);
	if (p->planes && fabric_node(p->planes, host, false) < p->planes->nnodes)
		return err_set(e, "%s: this node has no link to a switch of the network", host);
	return err_set(e, "%s: this node is not in the network", host);
}

/* NUMA nodes are numbered by their first cores; a core without one counts as one, too. Returns their number. */
static unsigned numas_number(const struct node *n, unsigned *numa_of)
{
	unsigned numas = 0, last = 0;

	for (unsigned core = 0; core < n->shape->cores; core++) {
		unsigned own = domain_at(n->shape, n->domain_of[core], LEVEL_NUMA);

		numas += !core || own != last;
		last = own;
		numa_of[core] = numas - 1;
	}
	return numas;
}

/* With costs between NUMA nodes there must be as many. */
static int numas_fill(struct node *n, struct err *e)
{
	unsigned numas = n->numas->levels ? numas_number(n, n->numa_of) : 0;

	return !numas || numas == n->numas->numas ? 0 :
	       err_set(e, "costs between %u NUMA nodes, but cores of the node are in %u", n->numas->numas, numas);
}

static int node_init(struct node *n, const struct places *p, const char *host, const char *cores, struct err *e)
{
	unsigned char *wanted = calloc(n->shape->cores, 1);
	unsigned leaf = 0;
	int rc;

	n->left = calloc(n->shape->cores + 1, sizeof(*n->left));
	n->nleft = calloc(n->shape->ndomains + 1, sizeof(*n->nleft));
	n->leaf_of = calloc(n->shape->cores + 1, sizeof(*n->leaf_of));
	n->domain_of = calloc(n->shape->cores + 1, sizeof(*n->domain_of));
	n->numa_of = calloc(n->shape->cores + 1, sizeof(*n->numa_of));
	if (!wanted || !n->left || !n->nleft || !n->leaf_of || !n->domain_of || !n->numa_of)
		rc = err_set(e, "%s: out of memory", host);
	else if ((rc = cores_parse(cores, wanted, n->shape->cores, e)))
		err_within(e, "%s", host);
	for (unsigned i = 0; rc == 0 && i < n->shape->cores; i++)
		n->leaf_of[i] = wanted[i] ? leaf++ : NO_LEAF;
	for (unsigned d = 0; rc == 0 && d < n->shape->ndomains; d++)
		if (n->shape->domains[d].level == LEVEL_CORE)
			n->domain_of[n->shape->domains[d].first] = d;
	if (rc == 0 && (rc = numas_fill(n, e)))
		err_within(e, "%s", host);
	free(wanted);
	if (rc == 0 && p->network) {
		const struct hierarchy_host *at = hierarchy_find(p->network, host);

		n->above = at ? at->at : NULL;
		rc = at ? 0 : not_there(p, host, e);
	}
	return rc;
}

static void node_free(struct node *n)
{
	free(n->left);
	free(n->nleft);
	free(n->leaf_of);
	free(n->domain_of);
	free(n->numa_of);
}

int places_add(struct places *p, const char *host, const struct shape *shape, const char *cores, unsigned cpus,
	       struct err *e)
{
	struct node n = { .shape = shape, .host = p->nhosts, .cpus = cpus, .threads = p->threads,
			  .numas = &p->numas };
	unsigned nplaces = p->nplaces, nleaves = p->nleaves;
	struct places_kind kind;
	int found, rc = -1;

	n.levels = places_above(p, &kind);
	for (int l = 0; l < LEVEL_COUNT; l++)
		kind.cost[n.levels + path_level(l)] = p->cost[l];
	memcpy(&kind.cost[n.levels + 1], p->numas.cost, sizeof(p->numas.cost));
	if (places_host_new(p, host, e))
		return -1;
	if (node_init(&n, p, host, cores, e))
		goto out;
	if (places_room(p, shape->cores, shape->cores) || (found = places_kind_find(p, &kind)) < 0) {
		err_set(e, "%s: out of memory", host);
		goto out;
	}
	n.kind = found;
	node_fill(&n, p);
	places_order(p, nplaces);
	if (p->nplaces > nplaces)
		rc = 0;
	else
		err_set(e, "%s: the job's cores on this node have fewer than the %u CPUs of a task", host, cpus);
out:
	node_free(&n);
	if (rc)
		places_host_drop(p, nplaces, nleaves);
	return rc;
}

/* The number of a leaf, digit by digit from the last level. */
static void inner_path(const struct hierarchy_inner *inner, unsigned leaf, unsigned *path)
{
	for (unsigned l = inner->levels; l--; leaf /= inner->size[l])
		path[l] = leaf % inner->size[l];
}

int places_add_inner(struct places *p, const struct hierarchy_host *host, struct err *e)
{
	const struct hierarchy_inner *inner = &host->inner;
	unsigned n = inner->leaf ? inner->nleaves : 1, kind_at, levels;
	struct places_kind kind;
	int found;

	for (unsigned l = 0; !inner->leaf && l < inner->levels; l++)
		n *= inner->size[l];
	if (places_host_new(p, host->name, e))
		return -1;
	levels = places_above(p, &kind);
	for (unsigned l = 0; l < inner->levels; l++)
		kind.cost[levels + l] = inner->cost[l];
	if (places_room(p, n, n) || (found = places_kind_find(p, &kind)) < 0) {
		places_host_drop(p, p->nplaces, p->nleaves);
		return err_set(e, "%s: out of memory", host->name);
	}
	kind_at = found;
	for (unsigned i = 0; i < n; i++) {
		struct place *place = places_append(p, kind_at, 1);

		p->leaf[p->nleaves] = p->core[p->nleaves] = inner->leaf ? inner->leaf[i] : i;
		p->nleaves++;
		place->leaves = 1;
		memcpy(place->path, host->at, levels * sizeof(*place->path));
		inner_path(inner, p->leaf[place->leaf], place->path + levels);
	}
	return 0;
}
