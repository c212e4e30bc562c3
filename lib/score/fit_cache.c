/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/fit_cache.h"

#define BYTES_MAX (48u << 20)	/* of `recent`; when full it becomes `older`, which may use as much */
#define SLOTS_MIN 1024u

/* Everything that the cost depends on. A table has the costs of all numbers of cores: the number is 0 here. */
struct key {
	const struct shape *shape;
	unsigned cores, task_cores;
	struct score_task task;
	enum fit fit;
	enum level level;
	unsigned nlimits;
	struct request_path path;
};

/* The cores for one number of cores of a table. */
struct choice_entry {
	struct choice_entry *next;
	unsigned cores;
	uint64_t chosen[];
};

struct node_fit {
	struct key key;
	uint64_t hash;
	struct score_table *table;
	struct choice_entry *choices;	/* of a table */
	struct score_cost cost;		/* without a table */
	bool fits;
	struct node_fit *next;		/* in its hash slot */
	uint64_t *chosen;		/* without a table: after the free ones in cores */
	struct score_limit *limits;	/* without a table: after these */
	uint64_t cores[];
};

static bool by_table(const struct score_need *need)
{
	return !need->nlimits &&
	       (need->fit == FIT_PREFER || (need->fit == FIT_REQUIRE && !(need->path && need->path->steps)));
}

static struct key key_of(const struct shape *shape, const struct score_need *need, bool table)
{
	struct key k;

	memset(&k, 0, sizeof(k));	/* keys are compared as bytes */
	k.shape = shape;
	k.cores = table ? 0 : need->cores;
	k.task_cores = need->task_cores;
	k.task = need->task;
	k.fit = table ? FIT_PREFER : need->fit;
	k.level = need->level;
	k.nlimits = table ? 0 : need->nlimits;
	if (!table && need->path)
		memcpy(k.path.step, need->path->step, (k.path.steps = need->path->steps) * sizeof(k.path.step[0]));
	if (k.path.steps)
		k.path.kind = need->path->kind;
	return k;
}

/* Multiply and fold, a word at a time (after wyhash's mix). Free cores are not hostile input. */
static uint64_t hash_mix(uint64_t h, uint64_t word)
{
	__uint128_t m = (__uint128_t) (h ^ word) * 0x9e3779b97f4a7c15u;

	return (uint64_t) m ^ (uint64_t) (m >> 64);
}

static uint64_t hash_of(const struct key *k, const uint64_t *cores, unsigned words, const struct score_limit *limits)
{
	uint64_t h = hash_mix((uintptr_t) k->shape,
			      ((uint64_t) k->cores << 32 | k->task_cores) + ((uint64_t) k->fit << 8 | k->level) + 1);

	h = hash_mix(h, (uint64_t) k->task.cpus << 32 | k->task.core_cpus);
	for (unsigned i = 0; i < k->path.steps; i++)
		h = hash_mix(h, (uint64_t) k->path.step[i].level << 32 | k->path.step[i].count);
	for (unsigned i = 0; i < words; i++)
		h = hash_mix(h + 1, cores[i]);
	for (unsigned i = 0; i < k->nlimits; i++)
		h = hash_mix(h + 1, (uint64_t) limits[i].first << 32 | limits[i].most);
	return h;
}

/* The link to the entry, or NULL. */
static struct node_fit **entry_find(const struct fit_table *t, const struct key *k, uint64_t hash,
				    const uint64_t *cores, unsigned words, const struct score_limit *limits)
{
	struct node_fit **at = t->nslots ? &t->slots[hash & (t->nslots - 1)] : NULL;

	while (at && *at && ((*at)->hash != hash || memcmp(&(*at)->key, k, sizeof(*k)) ||
			     memcmp((*at)->cores, cores, words * sizeof(*cores)) ||
			     (k->nlimits && memcmp((*at)->limits, limits, k->nlimits * sizeof(*limits)))))
		at = &(*at)->next;
	return at && *at ? at : NULL;
}

/* The number of slots doubles when entries outnumber them; without memory for that, chains grow longer. */
static int slots_grow(struct fit_table *t)
{
	size_t n = t->nslots ? 2 * t->nslots : SLOTS_MIN;
	struct node_fit **slots = t->used < t->nslots ? NULL : calloc(n, sizeof(*slots));

	if (!slots)
		return t->nslots ? 0 : -1;
	for (size_t i = 0; i < t->nslots; i++)
		for (struct node_fit *e = t->slots[i], *next; e; e = next) {
			next = e->next;
			e->next = slots[e->hash & (n - 1)];
			slots[e->hash & (n - 1)] = e;
		}
	free(t->slots);
	t->slots = slots;
	t->nslots = n;
	return 0;
}

static size_t set_bytes(const struct node_fit *f)
{
	return core_set_words(f->key.shape->cores) * sizeof(*f->cores);
}

static size_t choice_bytes(const struct node_fit *f)
{
	return sizeof(*f->choices) + set_bytes(f);
}

static size_t fit_bytes(const struct node_fit *f)
{
	size_t bytes = sizeof(*f) + (f->table ? score_table_bytes(f->table) : set_bytes(f)) + set_bytes(f) +
		       f->key.nlimits * sizeof(*f->limits);

	for (const struct choice_entry *e = f->choices; e; e = e->next)
		bytes += choice_bytes(f);
	return bytes;
}

static void fit_free(struct node_fit *f)
{
	for (struct choice_entry *e = f->choices, *next; e; e = next) {
		next = e->next;
		free(e);
	}
	score_table_free(f->table);
	free(f);
}

static struct node_fit *fit_new(const struct key *k, uint64_t hash, const uint64_t *cores, unsigned words,
				const struct score_need *need)
{
	bool table = !k->cores;
	size_t limits = k->nlimits * sizeof(struct score_limit);
	struct node_fit *f = calloc(1, sizeof(*f) + (table ? 1 : 2) * words * sizeof(*cores) + limits);
	int rc = 0;

	if (!f)
		return NULL;
	f->key = *k;
	f->hash = hash;
	memcpy(f->cores, cores, words * sizeof(*cores));
	f->chosen = f->cores + words;
	f->limits = (struct score_limit *) (f->chosen + (table ? 0 : words));
	if (limits)
		memcpy(f->limits, need->limits, limits);
	if (table)
		rc = (f->table = score_table_new(k->shape, cores, need)) ? 0 : -1;
	else
		rc = score_pick(k->shape, cores, need, f->chosen, &f->cost);
	if (rc < 0) {
		fit_free(f);
		return NULL;
	}
	f->fits = rc == 0;
	return f;
}

static struct node_fit *fit_get(struct fit_cache *c, const struct shape *shape, const uint64_t *free_cores,
				const struct score_need *need, bool table)
{
	struct key k = key_of(shape, need, table);
	unsigned words = core_set_words(shape->cores);
	uint64_t hash = hash_of(&k, free_cores, words, need->limits);
	struct fit_table *recent = &c->recent, *older = &c->older;
	struct node_fit **at = entry_find(recent, &k, hash, free_cores, words, need->limits), **slot, *f;

	if (at)
		return *at;
	if (slots_grow(recent)) {
		c->failed = true;
		return NULL;
	}
	if ((at = entry_find(older, &k, hash, free_cores, words, need->limits))) {
		f = *at;
		*at = f->next;
		older->used--;
		older->bytes -= fit_bytes(f);
	} else if (!c->left.costs) {
		c->refused = true;
		return NULL;
	} else if ((f = fit_new(&k, hash, free_cores, words, need))) {
		c->left.costs--;
	} else {
		c->failed = true;
		return NULL;
	}
	slot = &recent->slots[hash & (recent->nslots - 1)];
	f->next = *slot;
	*slot = f;
	recent->used++;
	recent->bytes += fit_bytes(f);
	return f;
}

/* Whether the memo has the entry that a search would find: one of a table, whatever the number of cores. */
static bool memo_answers(const struct fit_cache *c, const struct fit_memo *m, const struct shape *shape,
			 const uint64_t *free_cores, const struct score_need *need)
{
	return m->fit && m->turn == c->turn && m->shape == shape && m->task_cores == need->task_cores &&
	       !memcmp(&m->task, &need->task, sizeof(m->task)) && m->level == need->level && by_table(need) &&
	       !memcmp(m->cores, free_cores, core_set_words(shape->cores) * sizeof(*free_cores));
}

/* With the cost of another number of cores if the memo may be written. */
static const struct score_cost *memo_cost(const struct fit_cache *c, struct fit_memo *m, const struct score_need *need)
{
	const struct score_cost *cost;

	if (m->asked != need->cores) {
		cost = score_table_cost(m->fit->table, need->cores);
		if (m->decision == c->decision)
			return cost;
		m->asked = need->cores;
		m->has = cost;
		if (cost)
			m->cost = *cost;
	}
	m->decision = c->decision;
	return m->has ? &m->cost : NULL;
}

const struct score_cost *fit_cost_on(struct fit_cache *c, const struct shape *shape, const uint64_t *free_cores,
				     const struct score_need *need, struct fit_memo *m, struct node_fit **fit)
{
	bool answers = m && memo_answers(c, m, shape, free_cores, need);
	bool table = by_table(need);
	struct node_fit *f = answers ? m->fit : need->cores ? fit_get(c, shape, free_cores, need, table) : NULL;
	const struct score_cost *cost;

	if (!f)
		return NULL;
	if (!answers && m && m->decision != c->decision) {
		unsigned words = core_set_words(shape->cores);
		bool fits = f->table && words <= FIT_MEMO_WORDS;

		*m = (struct fit_memo){ .fit = fits ? f : NULL, .shape = shape, .turn = c->turn,
					.decision = m->decision, .task_cores = f->key.task_cores,
					.task = f->key.task, .level = f->key.level };
		if (fits)
			memcpy(m->cores, free_cores, words * sizeof(*free_cores));
		answers = fits;
	}
	cost = answers ? memo_cost(c, m, need) : f->table ? score_table_cost(f->table, need->cores) :
	       f->fits ? &f->cost : NULL;
	/* A table has no requirement. */
	if (table && cost && need->fit == FIT_REQUIRE && score_count(cost, SCORE_BEYOND, LEVEL_NODE))
		return NULL;
	if (cost)
		*fit = f;
	return cost;
}

const struct score_cost *fit_cost(struct fit_cache *c, const struct shape *shape, const uint64_t *free_cores,
				  const struct score_need *need, struct node_fit **fit)
{
	return fit_cost_on(c, shape, free_cores, need, NULL, fit);
}

const struct score_cost *fit_cost_of_kind(struct fit_cache *c, const struct shape *shape, const uint64_t *free_cores,
					  const struct score_need *need, uint64_t *scratch, struct fit_memo *m,
					  struct node_fit **fit, bool *mixes)
{
	unsigned words = core_set_words(shape->cores);
	const struct score_cost *best = NULL, *cost;
	struct node_fit *found;

	for (unsigned kind = shape->kinds ? shape->nkinds : 0; kind-- > 0;) {
		memcpy(scratch, free_cores, words * sizeof(*scratch));
		score_keep_kind(shape, kind, scratch);
		if (core_set_count(scratch, words) < need->cores)
			continue;
		cost = fit_cost(c, shape, scratch, need, &found);
		if (!cost || (best && score_compare(cost, best) >= 0))
			continue;
		best = cost;
		*fit = found;
	}
	*mixes = shape->kinds && !best;
	return best ? best : fit_cost_on(c, shape, free_cores, need, m, fit);
}

const uint64_t *fit_cores(struct fit_cache *c, struct node_fit *fit, unsigned cores)
{
	/* If a cost of a table keeps within one domain, it is also the least of FIT_REQUIRE, with the same cores. */
	struct score_need need = { .cores = cores, .task_cores = fit->key.task_cores, .task = fit->key.task,
				   .fit = fit->key.fit, .level = fit->key.level };
	struct choice_entry *e = fit->choices;
	struct score_cost cost;

	if (!fit->table)
		return fit->chosen;
	while (e && e->cores != cores)
		e = e->next;
	if (e)
		return e->chosen;
	if (!c->left.choices) {
		c->refused = true;
		return NULL;
	}
	e = malloc(choice_bytes(fit));
	if (!e || score_pick(fit->key.shape, fit->cores, &need, e->chosen, &cost)) {
		free(e);
		c->failed = true;
		return NULL;
	}
	e->next = fit->choices;
	e->cores = cores;
	c->left.choices--;
	c->recent.bytes += choice_bytes(fit);
	fit->choices = e;
	return e->chosen;
}

unsigned fit_most(struct fit_cache *c, const struct shape *shape, const uint64_t *free_cores,
		  const struct score_need *need, const struct score_cost **cost, struct node_fit **fit)
{
	struct node_fit *f = fit_get(c, shape, free_cores, need, true);
	unsigned most = f ? score_table_within(f->table) : 0;

	if (most) {
		*cost = score_table_cost(f->table, most);
		*fit = f;
	}
	return most;
}

static void table_free(struct fit_table *t)
{
	for (size_t i = 0; i < t->nslots; i++)
		for (struct node_fit *f = t->slots[i], *next; f; f = next) {
			next = f->next;
			fit_free(f);
		}
	free(t->slots);
	*t = (struct fit_table){0};
}

void fit_cache_clear(struct fit_cache *c)
{
	table_free(&c->recent);
	table_free(&c->older);
	c->turn++;
}

size_t fit_cache_bytes(const struct fit_cache *c)
{
	return c->recent.bytes + c->older.bytes;
}

void fit_cache_begin(struct fit_cache *c, unsigned long serial)
{
	c->decision++;
	if (c->serial != serial)
		fit_cache_clear(c);
	c->serial = serial;
	if (c->recent.bytes <= BYTES_MAX)
		return;
	table_free(&c->older);
	c->older = c->recent;
	c->recent = (struct fit_table){0};
	c->turn++;
}

void fit_cache_allow(struct fit_cache *c, unsigned scores)
{
	c->left.costs = c->left.choices = scores;
	c->refused = c->failed = false;
}
