/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fits.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (48u << 20)	/* of what was used lately; then it becomes what was used before, of which there may be as much */
#define SLOTS_MIN 1024u

/*
 * Whatever the cost depends on. A table tells all numbers of cores at once; for the rest the number is of the key too.
 */
struct key {
	const struct shape *shape;
	unsigned cores, task_cores;
	enum fit fit;
	enum level level;
	struct request_path path;
};

struct entry {
	struct key key;
	uint64_t hash;
	struct score_table *table;
	struct score_cost cost;		/* where there is no table */
	bool fits;
	struct entry *next;		/* in its slot */
	uint64_t *chosen;		/* where there is no table: after the free ones in cores */
	uint64_t cores[];
};

struct memo {
	struct entry **slots;
	size_t nslots, used, bytes;
};

/*
 * What is found in `before` moves to `lately`, so that a user's many different requests do not displace what others
 * use.
 */
static struct memo lately, before;
static unsigned long view;
static struct {
	unsigned costs, choices;
} left;				/* that may still be worked out */
static bool refused;

static bool by_table(const struct score_need *need)
{
	return need->fit == FIT_PREFER || (need->fit == FIT_REQUIRE && !(need->path && need->path->steps));
}

static struct key key_of(const struct shape *shape, const struct score_need *need, bool table)
{
	struct key k;

	memset(&k, 0, sizeof(k));	/* compared as bytes */
	k.shape = shape;
	k.cores = table ? 0 : need->cores;
	k.task_cores = need->task_cores;
	k.fit = table ? FIT_PREFER : need->fit;
	k.level = need->level;
	if (!table && need->path)
		memcpy(k.path.step, need->path->step, (k.path.steps = need->path->steps) * sizeof(k.path.step[0]));
	return k;
}

/* Multiply and fold, a word at a time (after wyhash's mix): free cores are no adversary. */
static uint64_t mix(uint64_t h, uint64_t word)
{
	__uint128_t m = (__uint128_t) (h ^ word) * 0x9e3779b97f4a7c15u;

	return (uint64_t) m ^ (uint64_t) (m >> 64);
}

static uint64_t hash_of(const struct key *k, const uint64_t *cores, unsigned words)
{
	uint64_t h = mix((uintptr_t) k->shape,
			 ((uint64_t) k->cores << 32 | k->task_cores) + ((uint64_t) k->fit << 8 | k->level) + 1);

	for (unsigned i = 0; i < k->path.steps; i++)
		h = mix(h, (uint64_t) k->path.step[i].level << 32 | k->path.step[i].count);
	for (unsigned i = 0; i < words; i++)
		h = mix(h + 1, cores[i]);
	return h;
}

/* Where the entry is linked, or NULL. */
static struct entry **find(const struct memo *m, const struct key *k, uint64_t hash, const uint64_t *cores,
			   unsigned words)
{
	struct entry **at = m->nslots ? &m->slots[hash & (m->nslots - 1)] : NULL;

	while (at && *at && ((*at)->hash != hash || memcmp(&(*at)->key, k, sizeof(*k)) ||
			     memcmp((*at)->cores, cores, words * sizeof(*cores))))
		at = &(*at)->next;
	return at && *at ? at : NULL;
}

/* Slots double before there are more entries than slots; without memory for that, chains grow longer. */
static int slots_grow(struct memo *m)
{
	size_t n = m->nslots ? 2 * m->nslots : SLOTS_MIN;
	struct entry **slots = m->used < m->nslots ? NULL : calloc(n, sizeof(*slots));

	if (!slots)
		return m->nslots ? 0 : -1;
	for (size_t i = 0; i < m->nslots; i++)
		for (struct entry *e = m->slots[i], *next; e; e = next) {
			next = e->next;
			e->next = slots[e->hash & (n - 1)];
			slots[e->hash & (n - 1)] = e;
		}
	free(m->slots);
	m->slots = slots;
	m->nslots = n;
	return 0;
}

static size_t entry_bytes(const struct entry *e)
{
	return sizeof(*e) + (e->table ? 1 : 2) * core_set_words(e->key.shape->cores) * sizeof(*e->cores) +
	       (e->table ? score_table_bytes(e->table) : 0);
}

static void entry_link(struct entry *e)
{
	struct entry **slot = &lately.slots[e->hash & (lately.nslots - 1)];

	e->next = *slot;
	*slot = e;
	lately.used++;
	lately.bytes += entry_bytes(e);
}

static void entry_free(struct entry *e)
{
	score_table_free(e->table);
	free(e);
}

static struct entry *entry_new(const struct key *k, uint64_t hash, const uint64_t *cores, unsigned words,
			       const struct score_need *need)
{
	bool table = !k->cores;
	struct entry *e = calloc(1, sizeof(*e) + (table ? 1 : 2) * words * sizeof(*cores));
	int rc = 0;

	if (!e)
		return NULL;
	e->key = *k;
	e->hash = hash;
	memcpy(e->cores, cores, words * sizeof(*cores));
	e->chosen = e->cores + words;
	if (table)
		rc = (e->table = score_table_new(k->shape, cores, need->task_cores, need->level)) ? 0 : -1;
	else
		rc = score_pick(k->shape, cores, need, e->chosen, &e->cost);
	if (rc < 0) {
		entry_free(e);
		return NULL;
	}
	e->fits = rc == 0;
	return e;
}

static struct entry *get(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need,
			 bool table, unsigned *allowed)
{
	struct key k = key_of(shape, need, table);
	unsigned words = core_set_words(shape->cores);
	uint64_t hash = hash_of(&k, free_cores, words);
	struct entry **at = find(&lately, &k, hash, free_cores, words), *e;

	if (at)
		return *at;
	if (slots_grow(&lately))
		return NULL;
	if ((at = find(&before, &k, hash, free_cores, words))) {
		e = *at;
		*at = e->next;
		before.used--;
		before.bytes -= entry_bytes(e);
	} else if (!*allowed) {
		refused = true;
		return NULL;
	} else if ((e = entry_new(&k, hash, free_cores, words, need))) {
		--*allowed;
	}
	if (e)
		entry_link(e);
	return e;
}

const struct score_cost *fits_cost(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need)
{
	struct entry *e = need->cores ? get(shape, free_cores, need, by_table(need), &left.costs) : NULL;
	const struct score_cost *c;

	if (!e)
		return NULL;
	if (!e->table)
		return e->fits ? &e->cost : NULL;
	c = score_table_cost(e->table, need->cores);
	return c && need->fit == FIT_REQUIRE && score_count(c, SCORE_BEYOND, LEVEL_NODE) ? NULL : c;
}

bool fits_pick(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need, uint64_t *chosen)
{
	struct entry *e = need->cores ? get(shape, free_cores, need, false, &left.choices) : NULL;

	if (!e || !e->fits)
		return false;
	memcpy(chosen, e->chosen, core_set_words(shape->cores) * sizeof(*chosen));
	return true;
}

unsigned fits_most(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need,
		   const struct score_cost **cost)
{
	struct entry *e = get(shape, free_cores, need, true, &left.costs);
	unsigned few = 0, most = e ? shape->cores : 0;

	while (few < most) {
		unsigned half = few + (most - few + 1) / 2;
		const struct score_cost *c = score_table_cost(e->table, half);

		if (c && !score_count(c, SCORE_BEYOND, LEVEL_NODE))
			few = half;
		else
			most = half - 1;
	}
	if (few)
		*cost = score_table_cost(e->table, few);
	return few;
}

static void memo_free(struct memo *m)
{
	for (size_t i = 0; i < m->nslots; i++)
		for (struct entry *e = m->slots[i], *next; e; e = next) {
			next = e->next;
			entry_free(e);
		}
	free(m->slots);
	*m = (struct memo){0};
}

void fits_forget(void)
{
	memo_free(&lately);
	memo_free(&before);
}

size_t fits_bytes(void)
{
	return lately.bytes + before.bytes;
}

void fits_begin(unsigned long serial)
{
	if (view != serial)
		fits_forget();
	view = serial;
	if (lately.bytes <= BYTES_MAX)
		return;
	memo_free(&before);
	before = lately;
	lately = (struct memo){0};
}

void fits_allow(unsigned scores)
{
	left.costs = left.choices = scores;
	refused = false;
}

bool fits_refused(void)
{
	return refused;
}
