/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/places/places.h"

#include <math.h>

#include "base/array.h"
#include "hwview/restrict.h"
#include "hwxml/tree.h"

#define MAX_COST 1000000

struct places *places_new(void)
{
	struct places *p = calloc(1, sizeof(*p));

	if (p)
		memcpy(p->cost, level_default_cost, sizeof(p->cost));
	return p;
}

void places_free(struct places *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->nhosts; i++) {
		free(p->hosts[i]);
		numbers_free(p->numbers ? p->numbers[i] : NULL);
	}
	free(p->hosts);
	free(p->numbers);
	free(p->place);
	free(p->leaf);
	free(p->core);
	free(p->kinds);
	free(p->distance);
	numa_tree_free(&p->numas);
	free(p);
}

/* Costs as they are read: those that were not named are the former ones, or NAN. */
struct cost_words {
	double level[LEVEL_COUNT];
	double pair[NUMA_TREE_MAX * NUMA_TREE_MAX];
	unsigned numas;
};

static bool is_number(const char *text)
{
	size_t digits = strspn(text, "0123456789"), all = strspn(text, "0123456789.");

	return digits && !text[all] && all <= digits + 1 + strspn(text + digits + (text[digits] == '.'), "0123456789");
}

/* "A-B", two NUMA nodes: 0, 1 when it is none, -1. */
static int pair_set(struct cost_words *c, const char *word, double cost, struct err *e)
{
	unsigned a, b;
	int used = 0;

	if (sscanf(word, "%2u-%2u%n", &a, &b, &used) != 2 || word[used])
		return 1;
	if (a >= NUMA_TREE_MAX || b >= NUMA_TREE_MAX || a == b)
		return err_set(e, "costs: '%s': expected two NUMA nodes, 0 to %u", word, NUMA_TREE_MAX - 1);
	c->pair[a * NUMA_TREE_MAX + b] = c->pair[b * NUMA_TREE_MAX + a] = cost;
	c->numas = fmax(c->numas, fmax(a, b) + 1);
	return 0;
}

static int cost_set(struct cost_words *c, char *word, struct err *e)
{
	char *value = strchr(word, '=');
	int level, rc;

	if (!value)
		return err_set(e, "costs: '%s': expected LEVEL=COST", word);
	*value++ = '\0';
	if (!is_number(value) || strtod(value, NULL) > MAX_COST)
		return err_set(e, "costs: %s=%s: expected a number up to %u", word, value, MAX_COST);
	if ((rc = pair_set(c, word, strtod(value, NULL), e)) <= 0)
		return rc;
	if ((level = level_parse(word)) < 0)
		return err_set(e, "costs: '%s': unknown level, expected " LEVEL_NAMES, word);
	c->level[level] = strtod(value, NULL);
	return 0;
}

/* Of all pairs, in rows without gaps. */
static int pairs_close(struct cost_words *c, struct err *e)
{
	for (unsigned a = 0; a < c->numas; a++)
		for (unsigned b = 0; b < c->numas; b++) {
			double cost = a == b ? 0 : c->pair[a * NUMA_TREE_MAX + b];

			if (isnan(cost))
				return err_set(e, "costs: between the NUMA nodes %u and %u: missing", a, b);
			c->pair[a * c->numas + b] = cost;
		}
	return 0;
}

int places_costs(struct places *p, const char *words, struct err *e)
{
	char *copy = strdup(words), *save = NULL;
	struct cost_words *c = calloc(1, sizeof(*c));
	struct numa_tree numas = {0};
	int rc = copy && c ? 0 : err_set(e, "out of memory");

	for (unsigned i = 0; rc == 0 && i < NUMA_TREE_MAX * NUMA_TREE_MAX; i++)
		c->pair[i] = NAN;
	if (rc == 0)
		memcpy(c->level, p->cost, sizeof(c->level));
	for (char *word = rc ? NULL : strtok_r(copy, ",", &save); word && rc == 0; word = strtok_r(NULL, ",", &save))
		rc = cost_set(c, word, e);
	if (rc == 0 && (rc = pairs_close(c, e)) == 0)
		rc = numa_tree_make(c->pair, c->numas, &numas, e);
	if (rc == 0) {
		memcpy(p->cost, c->level, sizeof(c->level));
		numa_tree_free(&p->numas);
		p->numas = numas;
	}
	free(copy);
	free(c);
	return rc;
}

int places_distances(struct places *p, const struct matrix *m, struct err *e)
{
	double *distance;

	if (m->ranks != p->added)
		return err_set(e, "the matrix of distances has %u places, but the job has %u", m->ranks, p->added);
	if (m->ranks > PLACES_MAX_DISTANCES)
		return err_set(e, "distances between %u places: at most %u are allowed", m->ranks,
			       PLACES_MAX_DISTANCES);
	if (!(distance = calloc((size_t) m->ranks * m->ranks, sizeof(*distance))))
		return err_set(e, "out of memory");
	for (unsigned a = 0; a < m->ranks; a++)
		for (size_t i = m->row[a]; i < m->row[a + 1]; i++)
			distance[(size_t) a * m->ranks + m->adj[i]] = m->weight[i] / 2;
	free(p->distance);
	p->distance = distance;
	return 0;
}

static int places_host_new(struct places *p, const char *name, struct err *e)
{
	for (unsigned i = 0; i < p->nhosts; i++)
		if (!strcmp(p->hosts[i], name))
			return err_set(e, "%s: node given twice", name);
	if (array_reserve(p->hosts, p->nhosts, 1) || !(p->hosts[p->nhosts] = strdup(name)))
		return err_set(e, "%s: out of memory", name);
	p->nhosts++;
	return 0;
}

static void places_host_drop(struct places *p, unsigned nplaces, unsigned nleaves)
{
	free(p->hosts[--p->nhosts]);
	p->nplaces = p->added = nplaces;
	p->nleaves = nleaves;
}

static int places_room(struct places *p, unsigned nplaces, unsigned nleaves)
{
	return array_reserve(p->place, p->nplaces, nplaces) || array_reserve(p->leaf, p->nleaves, nleaves) ||
	       array_reserve(p->core, p->nleaves, nleaves) ? -1 : 0;
}

static struct place *places_append(struct places *p, unsigned kind, unsigned takes)
{
	struct place *place = &p->place[p->nplaces];

	*place = (struct place){ .id = p->nplaces, .host = p->nhosts - 1, .leaf = p->nleaves,
				  .takes = takes, .kind = kind };
	p->added = ++p->nplaces;
	return place;
}

static int places_kind_find(struct places *p, const struct places_kind *kind)
{
	for (unsigned i = 0; i < p->nkinds; i++)
		if (!memcmp(&p->kinds[i], kind, sizeof(*kind)))
			return i;
	if (array_reserve(p->kinds, p->nkinds, 1))
		return -1;
	p->kinds[p->nkinds] = *kind;
	return p->nkinds++;
}

static unsigned places_above(const struct places *p, struct places_kind *kind)
{
	*kind = (struct places_kind){0};
	if (!p->network)
		return 0;
	for (unsigned l = 0; l < p->network->nlevels; l++)
		kind->cost[l] = p->network->level[l].cost[0];
	return p->network->nlevels;
}

/* In a tree the cost is the same for all of a kind, whose levels go on within the node. */
static double level_distance(const struct places *p, const struct place *a, const struct place *b, unsigned l)
{
	const struct hierarchy_level *level = p->network && l < p->network->nlevels ? &p->network->level[l] : NULL;

	return level && level->form != HIERARCHY_TREE ? hierarchy_level_cost(level, a->path[l], b->path[l])
						      : p->kinds[a->kind].cost[l];
}

double places_distance(const struct places *p, unsigned a, unsigned b)
{
	const struct place *from = &p->place[a], *to = &p->place[b];

	if (p->distance)
		return p->distance[(size_t) from->id * p->added + to->id];
	for (unsigned l = 0; l < PLACES_LEVELS; l++)
		if (from->path[l] != to->path[l])
			return level_distance(p, from, to, l);
	return 0;
}

/* --- added --- */

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

/* The levels of the network, and the costs of all levels of a node by p->cost. */
static unsigned places_levels(const struct places *p, struct places_kind *kind)
{
	unsigned levels = places_above(p, kind);

	for (int l = 0; l < LEVEL_COUNT; l++)
		kind->cost[levels + path_level(l)] = p->cost[l];
	return levels;
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
	/* Below the domains that hold all its cores a place has numbers of its own. */
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

static int path_order(const void *x, const void *y)
{
	const struct place *a = x, *b = y;
	int order = 0;

	for (int l = 0; !order && l < PLACES_LEVELS; l++)
		order = COMPARE(a->path[l], b->path[l]);
	return order ?: COMPARE(a->id, b->id);
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

int places_add(struct places *p, const char *host, const struct shape *shape, const char *cores, unsigned cpus,
	       struct err *e)
{
	struct node n = { .shape = shape, .host = p->nhosts, .cpus = cpus, .threads = p->threads,
			  .numas = &p->numas };
	unsigned nplaces = p->nplaces, nleaves = p->nleaves;
	struct places_kind kind;
	int found, rc = -1;

	n.levels = places_levels(p, &kind);
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
	/* A domain after all domains in it, which in preorder is when the first one outside it comes. */
	const struct shape_domain *all = n.shape->domains;
	int around = -1;

	for (size_t d = 0; d < n.shape->ndomains; d++) {
		for (; around != all[d].parent; around = all[around].parent)
			domain_fill(&n, p, around);
		around = d;
	}
	for (; around >= 0; around = all[around].parent)
		domain_fill(&n, p, around);
	/* Places across a boundary come after the others, so that the places of one domain are contiguous. */
	qsort(p->place + nplaces, p->nplaces - nplaces, sizeof(*p->place), path_order);
	for (unsigned i = nplaces; i < p->nplaces; i++)
		p->place[i].id = i;
	if (p->nplaces > nplaces)
		rc = 0;
	else
		err_set(e, "%s: the job's cores on this node have fewer than the %u CPUs of a task", host, cpus);
out:
	free(n.left);
	free(n.nleft);
	free(n.leaf_of);
	free(n.domain_of);
	free(n.numa_of);
	if (rc)
		places_host_drop(p, nplaces, nleaves);
	return rc;
}

int places_add_process(struct places *p, const char *host, const unsigned *above, const unsigned domain[LEVEL_COUNT],
		       struct err *e)
{
	struct places_kind kind;
	unsigned levels = places_levels(p, &kind);
	struct place *place;
	int found;

	if ((!p->nhosts || strcmp(p->hosts[p->nhosts - 1], host)) && places_host_new(p, host, e))
		return -1;
	if (places_room(p, 1, 1) || (found = places_kind_find(p, &kind)) < 0)
		return err_set(e, "%s: out of memory", host);
	place = places_append(p, found, 1);
	place->leaves = 1;
	p->leaf[p->nleaves] = p->core[p->nleaves] = place->id;
	p->nleaves++;
	if (above)
		memcpy(place->path, above, levels * sizeof(*above));
	place->path[levels] = place->host;
	for (int l = LEVEL_NODE + 1; l < LEVEL_COUNT; l++)
		place->path[levels + path_level(l)] = domain[l];
	return 0;
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
		/* The number of a leaf, digit by digit from the last level. */
		unsigned leaf = p->leaf[place->leaf];

		for (unsigned l = inner->levels; l--; leaf /= inner->size[l])
			place->path[levels + l] = leaf % inner->size[l];
	}
	return 0;
}

/* --- fitted to tasks --- */

int places_fill_parse(const char *name)
{
	static const char *const names[] = {
		[FILL_AUTO] = "auto", [FILL_COMPACT] = "compact", [FILL_SPREAD] = "spread",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

/* The number of places of each host, followed by as many zeros. */
static unsigned *rooms_new(const struct places *p)
{
	unsigned *room = calloc(2 * (size_t) p->nhosts + 1, sizeof(*room));

	for (unsigned i = 0; room && i < p->nplaces; i++)
		room[p->place[i].host]++;
	return room;
}

unsigned *places_share(const struct places *p, unsigned ranks)
{
	unsigned *room = rooms_new(p), *share = room ? room + p->nhosts : NULL;

	while (room && ranks)
		for (unsigned h = 0; h < p->nhosts && ranks; h++)
			if (share[h] < room[h]) {
				share[h]++;
				ranks--;
			}
	if (room)
		memcpy(room, share, p->nhosts * sizeof(*room));
	return room;
}

/* The fewest hosts: repeatedly the one with most places, of equal ones the first. */
static unsigned *compact_new(const struct places *p, unsigned ranks)
{
	unsigned *room = rooms_new(p), *tasks = room ? room + p->nhosts : NULL;

	while (room && ranks) {
		unsigned best = 0;

		for (unsigned h = 1; h < p->nhosts; h++)
			if (room[h] > room[best])
				best = h;
		tasks[best] = room[best] < ranks ? room[best] : ranks;
		ranks -= tasks[best];
		room[best] = 0;
	}
	if (room)
		memcpy(room, tasks, p->nhosts * sizeof(*room));
	return room;
}

/* Fits the places of a host that begins at `from` (places_fit). Returns the first of the next host. */
static unsigned host_fit(const struct places *p, unsigned from, unsigned tasks, enum places_fill fill, struct place *to,
			 unsigned *n)
{
	unsigned end = from, room;

	while (end < p->nplaces && p->place[end].host == p->place[from].host)
		end++;
	room = end - from;
	if (tasks <= room && fill == FILL_SPREAD) {
		for (unsigned long long i = 0; i < tasks; i++)
			to[(*n)++] = p->place[from + i * room / tasks];
		return end;
	}
	for (unsigned i = from, kept = 0; i < end; i++) {
		unsigned times = tasks > room ? p->place[i].takes : 1;

		for (; times && kept < tasks; times--, kept++)
			to[(*n)++] = p->place[i];
	}
	return end;
}

int places_fit(struct places *p, const unsigned *tasks, enum places_fill fill, struct err *e)
{
	struct place *fit;
	unsigned n = 0;
	size_t most = 0;

	for (unsigned i = 0; i < p->nplaces; i++)
		most += p->place[i].takes;
	if (!(fit = malloc((most + 1) * sizeof(*fit))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < p->nplaces;)
		i = host_fit(p, i, tasks[p->place[i].host], fill, fit, &n);
	free(p->place);
	p->place = fit;
	p->nplaces = n;
	return 0;
}

int places_fill(struct places *p, unsigned ranks, enum places_fill fill, struct err *e)
{
	unsigned *tasks;
	int rc;

	if (fill == FILL_AUTO || ranks >= p->nplaces)
		return 0;
	tasks = fill == FILL_COMPACT ? compact_new(p, ranks) : places_share(p, ranks);
	rc = tasks ? places_fit(p, tasks, fill, e) : err_set(e, "out of memory");
	free(tasks);
	return rc;
}

/* --- OS numbers --- */

static struct numbers *numbers_new(const struct tree_extent *root)
{
	struct numbers *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->first = calloc(root->cores + 1, sizeof(*n->first));
	n->pu = calloc(root->pus + 1, sizeof(*n->pu));
	if (n->first && n->pu)
		return n;
	numbers_free(n);
	return NULL;
}

/* PUs are in logical order, and so are their cores. */
static int numbers_fill(struct numbers *n, const struct tree *t, const struct tree_extent *extents, struct err *e)
{
	unsigned pus = 0;
	long core = -1;

	for (size_t i = 0; i < t->n; i++) {
		if (!tree_object_is(t, i, "PU"))
			continue;
		if (t->objects[i].os_index < 0)
			return err_set(e, "PU %u has no number", pus);
		if (extents[i].core != core)
			n->first[n->cores++] = pus;
		core = extents[i].core;
		n->pu[pus++] = t->objects[i].os_index;
	}
	n->first[n->cores] = pus;
	return 0;
}

struct numbers *numbers_of(const struct tree *t, struct err *e)
{
	struct tree_extent *extents = tree_extents(t);
	struct numbers *n = extents ? numbers_new(&extents[0]) : NULL;

	if (!n) {
		err_set(e, "out of memory");
	} else if (numbers_fill(n, t, extents, e)) {
		numbers_free(n);
		n = NULL;
	}
	free(extents);
	return n;
}

void numbers_free(struct numbers *n)
{
	if (!n)
		return;
	free(n->first);
	free(n->pu);
	free(n);
}
