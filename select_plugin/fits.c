/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fits.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (96u << 20)
#define SLOTS_MIN 1024u

/* Whatever the cost depends on. A table tells all numbers of cores at once; for the rest the number is of the key too. */
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
	uint64_t cores[];
};

static struct {
	struct entry **slots;
	size_t nslots, used, bytes;
	unsigned long serial;
} all;

static bool by_table(const struct score_need *need)
{
	return need->fit == FIT_PREFER || (need->fit == FIT_REQUIRE && !(need->path && need->path->steps));
}

static struct key key_of(const struct shape *shape, const struct score_need *need)
{
	struct key k;

	memset(&k, 0, sizeof(k));	/* compared as bytes */
	k.shape = shape;
	k.cores = by_table(need) ? 0 : need->cores;
	k.task_cores = need->task_cores;
	k.fit = by_table(need) ? FIT_PREFER : need->fit;
	k.level = need->level;
	if (!by_table(need) && need->path)
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
	uint64_t h = mix((uintptr_t) k->shape, ((uint64_t) k->cores << 32 | k->task_cores) + ((uint64_t) k->fit << 8 | k->level) + 1);

	for (unsigned i = 0; i < k->path.steps; i++)
		h = mix(h, (uint64_t) k->path.step[i].level << 32 | k->path.step[i].count);
	for (unsigned i = 0; i < words; i++)
		h = mix(h + 1, cores[i]);
	return h;
}

static struct entry *find(const struct key *k, uint64_t hash, const uint64_t *cores, unsigned words)
{
	struct entry *e = all.nslots ? all.slots[hash & (all.nslots - 1)] : NULL;

	while (e && (e->hash != hash || memcmp(&e->key, k, sizeof(*k)) || memcmp(e->cores, cores, words * sizeof(*cores))))
		e = e->next;
	return e;
}

/* Slots double before there are more entries than slots; without memory for that, chains grow longer. */
static int make_slots(void)
{
	size_t n = all.nslots ? 2 * all.nslots : SLOTS_MIN;
	struct entry **slots = all.used < all.nslots ? NULL : calloc(n, sizeof(*slots));

	if (!slots)
		return all.nslots ? 0 : -1;
	for (size_t i = 0; i < all.nslots; i++)
		for (struct entry *e = all.slots[i], *next; e; e = next) {
			next = e->next;
			e->next = slots[e->hash & (n - 1)];
			slots[e->hash & (n - 1)] = e;
		}
	free(all.slots);
	all.slots = slots;
	all.nslots = n;
	return 0;
}

static void entry_free(struct entry *e)
{
	score_table_free(e->table);
	free(e);
}

static struct entry *add(const struct key *k, uint64_t hash, const uint64_t *cores, unsigned words, const struct score_need *need)
{
	struct entry *e = make_slots() ? NULL : calloc(1, sizeof(*e) + words * sizeof(*cores));
	int rc = 0;

	if (!e)
		return NULL;
	e->key = *k;
	e->hash = hash;
	memcpy(e->cores, cores, words * sizeof(*cores));
	if (by_table(need))
		rc = (e->table = score_table_new(k->shape, cores, need->task_cores, need->level)) ? 0 : -1;
	else
		rc = score_pick(k->shape, cores, need, NULL, &e->cost);
	if (rc < 0) {
		entry_free(e);
		return NULL;
	}
	e->fits = rc == 0;
	e->next = all.slots[hash & (all.nslots - 1)];
	all.slots[hash & (all.nslots - 1)] = e;
	all.used++;
	all.bytes += sizeof(*e) + words * sizeof(*cores) + (e->table ? score_table_bytes(e->table) : 0);
	return e;
}

const struct score_cost *fits_cost(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need)
{
	struct key k = key_of(shape, need);
	unsigned words = score_words(shape->cores);
	uint64_t hash = hash_of(&k, free_cores, words);
	struct entry *e = find(&k, hash, free_cores, words);
	const struct score_cost *c;

	if (!e && !(e = add(&k, hash, free_cores, words, need)))
		return NULL;
	if (!e->table)
		return e->fits ? &e->cost : NULL;
	c = score_table_cost(e->table, need->cores);
	return c && need->fit == FIT_REQUIRE && score_count(c, SCORE_BEYOND, LEVEL_NODE) ? NULL : c;
}

void fits_forget(void)
{
	for (size_t i = 0; i < all.nslots; i++)
		for (struct entry *e = all.slots[i], *next; e; e = next) {
			next = e->next;
			entry_free(e);
		}
	free(all.slots);
	memset(&all, 0, sizeof(all));
}

size_t fits_bytes(void)
{
	return all.bytes;
}

void fits_begin(unsigned long serial)
{
	if (all.bytes > BYTES_MAX || all.serial != serial)
		fits_forget();
	all.serial = serial;
}
