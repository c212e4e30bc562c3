/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/front_cache.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES (96u << 20)
#define FIRST_SLOTS 1024u

struct entry {
	uint64_t hash;
	void *answer;
	const struct cluster_kind *kind;
	unsigned task_cores;
	uint64_t free_cores[];
};

struct front_cache {
	const struct front_ops *how;
	const void *user;
	struct entry **slots;		/* open addressing, at least half empty */
	size_t nslots, used, bytes;
};

struct front_cache *front_cache_new(const struct front_ops *how, const void *user)
{
	struct front_cache *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	*m = (struct front_cache){ .how = how, .user = user, .slots = calloc(FIRST_SLOTS, sizeof(*m->slots)),
				   .nslots = FIRST_SLOTS };
	if (m->slots)
		return m;
	free(m);
	return NULL;
}

static void entry_free(struct front_cache *m, struct entry *e)
{
	if (e && e->answer)
		m->how->drop(e->answer);
	free(e);
}

static void front_cache_clear(struct front_cache *m)
{
	for (size_t i = 0; i < m->nslots; i++)
		entry_free(m, m->slots[i]);
	memset(m->slots, 0, m->nslots * sizeof(*m->slots));
	m->used = m->bytes = 0;
}

void front_cache_free(struct front_cache *m)
{
	if (!m)
		return;
	front_cache_clear(m);
	free(m->slots);
	free(m);
}

void front_cache_trim(struct front_cache *m)
{
	if (m->bytes > MAX_BYTES)
		front_cache_clear(m);
}

/* The finalizer of MurmurHash3 over each word in turn. */
static uint64_t hash_mix(uint64_t h, uint64_t word)
{
	h ^= word;
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ull;
	return h ^ h >> 33;
}

static uint64_t hash_of(const struct cluster_kind *kind, const uint64_t *free_cores, unsigned task_cores)
{
	uint64_t h = hash_mix(kind->index, task_cores);

	for (unsigned w = 0; w < kind->words; w++)
		h = hash_mix(h, free_cores[w]);
	return h;
}

static bool entry_is(const struct entry *e, uint64_t hash, const struct cluster_kind *kind, const uint64_t *free_cores,
		     unsigned task_cores)
{
	return e->hash == hash && e->kind == kind && e->task_cores == task_cores &&
	       !memcmp(e->free_cores, free_cores, kind->words * sizeof(*free_cores));
}

static struct entry **slot_empty(struct entry **slots, size_t n, uint64_t hash)
{
	size_t i = hash & (n - 1);

	while (slots[i])
		i = (i + 1) & (n - 1);
	return &slots[i];
}

static int front_cache_grow(struct front_cache *m)
{
	size_t n = 2 * m->nslots;
	struct entry **slots;

	if (2 * (m->used + 1) <= m->nslots)
		return 0;
	if (!(slots = calloc(n, sizeof(*slots))))
		return -1;
	for (size_t i = 0; i < m->nslots; i++)
		if (m->slots[i])
			*slot_empty(slots, n, m->slots[i]->hash) = m->slots[i];
	free(m->slots);
	m->slots = slots;
	m->nslots = n;
	return 0;
}

static const void *front_cache_add(struct front_cache *m, uint64_t hash, const struct cluster_kind *kind,
				   const uint64_t *free_cores, unsigned task_cores)
{
	size_t bytes = kind->words * sizeof(*free_cores);
	struct entry *e = malloc(sizeof(*e) + bytes);

	if (!e)
		return NULL;
	*e = (struct entry){ .hash = hash, .kind = kind, .task_cores = task_cores };
	memcpy(e->free_cores, free_cores, bytes);
	if (front_cache_grow(m) || !(e->answer = m->how->make(kind, free_cores, task_cores, m->user))) {
		free(e);
		return NULL;
	}
	*slot_empty(m->slots, m->nslots, hash) = e;
	m->used++;
	m->bytes += sizeof(*e) + bytes + m->how->bytes(e->answer);
	return e->answer;
}

const void *front_cache_get(struct front_cache *m, const struct cluster_kind *kind, const uint64_t *free_cores,
			    unsigned task_cores)
{
	uint64_t hash = hash_of(kind, free_cores, task_cores);

	for (size_t i = hash & (m->nslots - 1); m->slots[i]; i = (i + 1) & (m->nslots - 1))
		if (entry_is(m->slots[i], hash, kind, free_cores, task_cores))
			return m->slots[i]->answer;
	return front_cache_add(m, hash, kind, free_cores, task_cores);
}
