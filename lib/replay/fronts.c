/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/fronts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/core_set.h"
#include "base/string_map.h"

#define CACHE_BYTES_MAX (96u << 20)

/* The levels of the lanes, and the substitute for a core that has no domain of the level. */
static const struct {
	enum level level, instead;
} lane_levels[] = {
	[LANE_PACKAGE] = { LEVEL_PACKAGE, LEVEL_NODE },
	[LANE_DIE] = { LEVEL_DIE, LEVEL_PACKAGE },
	[LANE_NUMA] = { LEVEL_NUMA, LEVEL_DIE },
	[LANE_L3] = { LEVEL_L3, LEVEL_L2 },
};

/* A shape in the form used for counting. The shape's domains are followed by one domain for each core. */
struct map {
	unsigned *around[LEVEL_CORE];	/* [level][core]: the domain that counts for the core at this level */
	uint64_t *counts;		/* by domain: 1 in the lanes where it counts */
	unsigned largest[LANES];	/* cores of the largest domain that counts in a lane */
	unsigned *seen;			/* by domain: when it was last counted */
	unsigned now;
};

struct fronts {
	const struct cluster *cluster;
	struct map *maps;		/* by kind */
	/* A cache: nodes of a kind with the same free cores, most nodes of a cluster bought at once, share a table. */
	struct string_map known;	/* by kind, cores of a task and free cores */
	struct table *tables;		/* by number in known */
	size_t ntables, bytes;
	uint64_t *key;			/* space for one */
};

uint64_t front_touch_least(uint64_t a, uint64_t b)
{
	uint64_t least = 0;

	for (int lane = 0; lane < LANES; lane++) {
		uint64_t x = front_touch_count(a, lane), y = front_touch_count(b, lane);

		least |= (x < y ? x : y) << 16 * lane;
	}
	return least;
}

/* --- maps --- */

static unsigned domain_cores(const struct shape *s, unsigned domain)
{
	return domain < s->ndomains ? s->domains[domain].cores : 1;
}

/*
 * The innermost domain of a level around each core; if there is none, its substitute: a domain of another level, or the
 * core.
 */
static int around_fill(struct map *m, const struct shape *s, enum level level, enum level instead)
{
	unsigned *around = malloc(s->cores * sizeof(*around));

	if (!(m->around[level] = around))
		return -1;
	for (unsigned c = 0; c < s->cores; c++)
		around[c] = instead == LEVEL_CORE ? s->ndomains + c : instead == LEVEL_NODE ? 0 : m->around[instead][c];
	for (size_t d = 0; d < s->ndomains; d++)
		for (unsigned c = 0; s->domains[d].level == level && c < s->domains[d].cores; c++)
			around[s->domains[d].first + c] = d;
	return 0;
}

static int map_init(struct map *m, const struct shape *s)
{
	size_t domains = s->ndomains + s->cores;

	if (around_fill(m, s, LEVEL_L2, LEVEL_CORE))
		return -1;
	for (int lane = 0; lane < LANES; lane++)
		if (around_fill(m, s, lane_levels[lane].level, lane_levels[lane].instead))
			return -1;
	m->counts = calloc(domains, sizeof(*m->counts));
	m->seen = calloc(domains, sizeof(*m->seen));
	if (!m->counts || !m->seen)
		return -1;
	for (int lane = 0; lane < LANES; lane++)
		for (unsigned c = 0; c < s->cores; c++) {
			unsigned d = m->around[lane_levels[lane].level][c];

			m->counts[d] |= front_touch_one(lane);
			if (m->largest[lane] < domain_cores(s, d))
				m->largest[lane] = domain_cores(s, d);
		}
	return 0;
}

static void map_free(struct map *m)
{
	for (size_t level = 0; level < LEVEL_CORE; level++)
		free(m->around[level]);
	free(m->counts);
	free(m->seen);
}

/* The number of domains of a level that contain cores of a set. */
static unsigned map_count(struct map *m, enum level level, const uint64_t *cores, unsigned words)
{
	unsigned n = 0;

	m->now++;
	core_set_each(core, cores, words) {
		unsigned *seen = &m->seen[m->around[level][core]];

		n += *seen != m->now;
		*seen = m->now;
	}
	return n;
}

uint64_t fronts_touch(struct fronts *f, const struct cluster_kind *kind, const uint64_t *cores)
{
	uint64_t touch = 0;

	for (int lane = 0; lane < LANES; lane++)
		touch += map_count(&f->maps[kind->index], lane_levels[lane].level, cores, kind->words) *
			 front_touch_one(lane);
	return touch;
}

unsigned fronts_touch_l2(struct fronts *f, const struct cluster_kind *kind, const uint64_t *cores)
{
	return map_count(&f->maps[kind->index], LEVEL_L2, cores, kind->words);
}

/* --- tables --- */

/* The fronts of 0 to `free` cores, one after another: that of k is list[at[k]] to list[at[k + 1]]. */
struct table {
	unsigned free;
	size_t *at;
	uint64_t *list;
	size_t n;
};

static void table_free(struct table *t)
{
	free(t->at);
	free(t->list);
	*t = (struct table){0};
}

static int table_init(struct table *t, unsigned cores)
{
	*t = (struct table){ .free = cores, .at = calloc(cores + 2, sizeof(*t->at)) };
	return t->at ? 0 : -1;
}

/* Adds to the last front, which begins at `from`, unless an entry of it is as good; removes entries that are worse. */
static int table_add(struct table *t, size_t from, uint64_t touch)
{
	size_t kept = from;

	for (size_t i = from; i < t->n; i++)
		if (front_touch_within(t->list[i], touch))
			return 0;
	for (size_t i = from; i < t->n; i++)
		if (!front_touch_within(touch, t->list[i]))
			t->list[kept++] = t->list[i];
	t->n = kept;
	if (array_reserve(t->list, t->n, 1))
		return -1;
	t->list[t->n++] = touch;
	return 0;
}

/* Combines two parts. */
static int table_join(const struct table *a, const struct table *b, struct table *out)
{
	if (table_init(out, a->free + b->free))
		return -1;
	for (unsigned k = 0; k <= out->free; k++) {
		size_t from = out->at[k] = out->n;

		for (unsigned x = k > b->free ? k - b->free : 0; x <= a->free && x <= k; x++)
			for (size_t i = a->at[x]; i < a->at[x + 1]; i++)
				for (size_t n = b->at[k - x]; n < b->at[k - x + 1]; n++)
					if (table_add(out, from, a->list[i] + b->list[n]))
						return -1;
		out->at[k + 1] = out->n;
	}
	return 0;
}

/* Joins b into a; b is freed. */
static int table_merge(struct table *a, struct table *b)
{
	struct table both = {0};
	int rc = 0;

	if (a->at) {
		rc = table_join(a, b, &both);
		table_free(a);
		table_free(b);
		*a = both;
	} else {
		*a = *b;
		*b = (struct table){0};
	}
	return rc;
}

/* Cores that count equally. */
static int table_alike(struct table *t, unsigned cores, uint64_t each)
{
	if (table_init(t, cores))
		return -1;
	for (unsigned k = 0; k <= cores; k++) {
		if (array_reserve(t->list, t->n, 1))
			return -1;
		t->at[k] = k;
		t->list[t->n++] = k * each;
	}
	t->at[cores + 1] = t->n;
	return 0;
}

/* What a domain adds to any of its cores, and the tasks that it must not cut. */
static void table_within(struct table *t, uint64_t adds, unsigned task_cores)
{
	size_t kept = 1;

	for (unsigned k = 1; k <= t->free; k++) {
		size_t i = t->at[k];

		t->at[k] = kept;
		for (; k % task_cores == 0 && i < t->at[k + 1]; i++)
			t->list[kept++] = t->list[i] + adds;
	}
	t->n = t->at[t->free + 1] = kept;
}

/* --- the fronts of a node --- */

struct build {
	const struct map *map;
	const struct shape *shape;
	const uint64_t *free_cores;
	unsigned task_cores;
	struct table *tables;		/* by domain, as far as its parts are done */
	unsigned *singles;		/* by domain: free cores directly below it, */
	uint64_t *each;			/* and what each of these counts */
};

/* The number of cores of whole tasks in this domain is a multiple of this. */
static unsigned cores_uncut(const struct build *b, uint64_t counts)
{
	for (int lane = LANE_NUMA; lane <= LANE_L3; lane++)
		if (front_touch_count(counts, lane) && b->map->largest[lane] >= b->task_cores)
			return b->task_cores;
	return 1;
}

static void core_done(struct build *b, const struct shape_domain *d)
{
	if (!core_set_has(b->free_cores, d->first))
		return;
	b->singles[d->parent]++;
	b->each[d->parent] = b->map->counts[b->shape->ndomains + d->first];
}

static int domain_done(struct build *b, size_t domain)
{
	struct table *t = &b->tables[domain], cores;
	int parent = b->shape->domains[domain].parent;

	if (b->singles[domain]) {
		if (table_alike(&cores, b->singles[domain], b->each[domain]))
			return -1;
		table_within(&cores, 0, cores_uncut(b, b->each[domain]));
		if (table_merge(t, &cores))
			return -1;
	}
	if (!t->at)
		return 0;
	table_within(t, b->map->counts[domain], cores_uncut(b, b->map->counts[domain]));
	return parent < 0 ? 0 : table_merge(&b->tables[parent], t);
}

static int build_run(struct build *b)
{
	for (size_t d = b->shape->ndomains; d-- > 0;) {
		if (b->shape->domains[d].level == LEVEL_CORE)
			core_done(b, &b->shape->domains[d]);
		else if (domain_done(b, d))
			return -1;
	}
	return b->tables[0].at ? 0 : table_alike(&b->tables[0], 0, 0);
}

static int table_make(const struct fronts *f, const struct cluster_kind *kind, const uint64_t *free_cores,
		      unsigned task_cores, struct table *t)
{
	size_t n = kind->shape->ndomains;
	struct build b = {
		.map = &f->maps[kind->index], .shape = kind->shape, .free_cores = free_cores, .task_cores = task_cores,
		.tables = calloc(n, sizeof(*b.tables)), .singles = calloc(n, sizeof(*b.singles)),
		.each = calloc(n, sizeof(*b.each)),
	};
	int rc = -1;

	if (b.tables && b.singles && b.each && !build_run(&b)) {
		*t = b.tables[0];
		b.tables[0] = (struct table){0};
		rc = 0;
	}
	for (size_t i = 0; b.tables && i < n; i++)
		table_free(&b.tables[i]);
	free(b.tables);
	free(b.singles);
	free(b.each);
	return rc;
}

/* NULL when memory is short. */
static const struct table *table_get(struct fronts *f, const struct cluster_kind *kind, const uint64_t *free_cores,
				     unsigned task_cores)
{
	size_t bytes = kind->words * sizeof(*free_cores), i;
	struct table t;

	f->key[0] = (uint64_t) kind->index << 32 | task_cores;
	memcpy(f->key + 1, free_cores, bytes);
	bytes += sizeof(*f->key);
	i = string_map_find_bytes(&f->known, f->key, bytes);
	if (i != STRING_MAP_NONE)
		return &f->tables[i];
	if (array_reserve(f->tables, f->ntables, 1) || table_make(f, kind, free_cores, task_cores, &t))
		return NULL;
	if (string_map_add_bytes(&f->known, f->key, bytes) == STRING_MAP_NONE) {
		table_free(&t);
		return NULL;
	}
	f->bytes += bytes + sizeof(t) + (t.free + 2) * sizeof(*t.at) + t.n * sizeof(*t.list);
	f->tables[f->ntables] = t;
	return &f->tables[f->ntables++];
}

static void tables_free(struct fronts *f)
{
	for (size_t i = 0; i < f->ntables; i++)
		table_free(&f->tables[i]);
	f->ntables = f->bytes = 0;
	string_map_free(&f->known);
}

struct fronts *fronts_new(const struct cluster *c)
{
	struct fronts *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	*f = (struct fronts){ .cluster = c, .maps = calloc(c->nkinds, sizeof(*f->maps)),
			      .key = malloc((c->words_max + 1) * sizeof(*f->key)) };
	if (!f->maps || !f->key)
		goto error;
	for (size_t i = 0; i < c->nkinds; i++)
		if (map_init(&f->maps[i], c->kinds[i].shape))
			goto error;
	return f;
error:
	fronts_free(f);
	return NULL;
}

void fronts_free(struct fronts *f)
{
	if (!f)
		return;
	for (size_t i = 0; f->maps && i < f->cluster->nkinds; i++)
		map_free(&f->maps[i]);
	free(f->maps);
	tables_free(f);
	free(f->tables);
	free(f->key);
	free(f);
}

int fronts_get(struct fronts *f, const struct cluster_kind *kind, const uint64_t *free_cores, unsigned task_cores,
	       unsigned cores, struct front *out)
{
	const struct table *t = table_get(f, kind, free_cores, task_cores);

	if (!t)
		return -1;
	*out = (struct front){0};
	if (cores <= t->free)
		*out = (struct front){ &t->list[t->at[cores]], t->at[cores + 1] - t->at[cores] };
	return 0;
}

void fronts_trim(struct fronts *f)
{
	if (f->bytes > CACHE_BYTES_MAX)
		tables_free(f);
}
