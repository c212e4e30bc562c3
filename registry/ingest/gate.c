/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "gate.h"

#include <assert.h>

#include "base/clock.h"
#include "base/string_map.h"

/*
 * Notes
 *
 * `lock` protects all of struct gate, and the slots in its two lists, which belong to their callers. Who leaves admits
 * those that wait, in their order, and calls each by its semaphore; one that gives up removes itself. Any thread.
 */
#define WAIT_SECONDS 20
#define ADDRESS_SHARE 4			/* an address has one slot in so many */
/* enough for tests of a new XML; a document takes at most two CPU seconds (worker.h) */
#define REFUSALS_ALLOWED 256
#define REFUSAL_SECONDS 30	/* after which one refusal is forgotten */
#define REFUSAL_SLOTS 4096

TAILQ_HEAD(gate_slots, gate_slot);

/* A leaky bucket. */
struct bucket {
	double level, at;
};

/* Keyed by the host's hash; a colliding host takes the entry over. */
struct refusal_bucket {
	uint32_t hash;
	struct bucket bucket;
};

struct gate {
	pthread_mutex_t lock;
	unsigned at_once, share, inside;
	struct gate_slots working, waiting;
	double rate;
	struct bucket announced;
	struct refusal_bucket refused[REFUSAL_SLOTS];
};

struct gate *gate_new(unsigned at_once, unsigned rate)
{
	struct gate *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	pthread_mutex_init(&g->lock, NULL);
	TAILQ_INIT(&g->working);
	TAILQ_INIT(&g->waiting);
	g->at_once = at_once;
	g->share = at_once > ADDRESS_SHARE ? at_once / ADDRESS_SHARE : 1;
	g->rate = rate;
	return g;
}

void gate_free(struct gate *g)
{
	free(g);
}

/* --- slots --- */

static bool is_queued(const struct gate_slots *all, const char *node)
{
	const struct gate_slot *t;

	TAILQ_FOREACH(t, all, link)
		if (!strcmp(t->node, node))
			return true;
	return false;
}

static bool may_enter(const struct gate *g, const struct gate_slot *t)
{
	const struct gate_slot *other;
	unsigned n = 0;

	if (g->inside >= g->at_once)
		return false;
	TAILQ_FOREACH(other, &g->working, link)
		n += *t->address && !strcmp(other->address, t->address);
	return n < g->share;
}

static void admit_slot(struct gate *g, struct gate_slot *t)
{
	assert(!t->inside && g->inside < g->at_once);
	TAILQ_INSERT_TAIL(&g->working, t, link);
	t->inside = true;
	g->inside++;
}

enum gate_result gate_enter(struct gate *g, struct gate_slot *t)
{
	enum gate_result rc = GATE_ENTERED;

	pthread_mutex_lock(&g->lock);
	t->inside = false;
	if (is_queued(&g->working, t->node) || is_queued(&g->waiting, t->node)) {
		rc = GATE_DUPLICATE;
	} else if (may_enter(g, t)) {
		admit_slot(g, t);
	} else {
		sem_init(&t->called, 0, 0);
		TAILQ_INSERT_TAIL(&g->waiting, t, link);
		pthread_mutex_unlock(&g->lock);
		clock_take(&t->called, clock_now() + WAIT_SECONDS);
		pthread_mutex_lock(&g->lock);
		if (!t->inside) {
			TAILQ_REMOVE(&g->waiting, t, link);
			rc = GATE_FULL;
		}
		sem_destroy(&t->called);
	}
	pthread_mutex_unlock(&g->lock);
	return rc;
}

void gate_leave(struct gate *g, struct gate_slot *t)
{
	struct gate_slot *next, *after;

	pthread_mutex_lock(&g->lock);
	assert(t->inside && g->inside);
	TAILQ_REMOVE(&g->working, t, link);
	g->inside--;
	for (next = TAILQ_FIRST(&g->waiting); next; next = after) {
		after = TAILQ_NEXT(next, link);
		if (!may_enter(g, next))
			continue;
		TAILQ_REMOVE(&g->waiting, next, link);
		admit_slot(g, next);
		sem_post(&next->called);
	}
	pthread_mutex_unlock(&g->lock);
}

/* --- rates --- */

/* Drains by the elapsed time, then adds. Returns the level. */
static double bucket_fill(struct bucket *b, double rate, double by)
{
	double now = clock_now();

	b->level -= (now - b->at) * rate;
	b->level = (b->level < 0 ? 0 : b->level) + by;
	b->at = now;
	return b->level;
}

unsigned gate_window(struct gate *g)
{
	double level;

	pthread_mutex_lock(&g->lock);
	level = bucket_fill(&g->announced, g->rate, 1);
	pthread_mutex_unlock(&g->lock);
	return level / g->rate;
}

static double refusal_level(struct gate *g, const char *host, unsigned more)
{
	uint32_t h = string_hash(host);
	struct refusal_bucket *r = &g->refused[h % REFUSAL_SLOTS];
	double level = 0;

	pthread_mutex_lock(&g->lock);
	if (r->hash != h && more)
		*r = (struct refusal_bucket){ .hash = h };
	if (r->hash == h)
		level = bucket_fill(&r->bucket, 1.0 / REFUSAL_SECONDS, more);
	pthread_mutex_unlock(&g->lock);
	return level;
}

void gate_refused(struct gate *g, const char *host)
{
	refusal_level(g, host, 1);
}

unsigned gate_backoff(struct gate *g, const char *host)
{
	double over = refusal_level(g, host, 0) - REFUSALS_ALLOWED;

	return over > 0 ? 1 + over * REFUSAL_SECONDS : 0;
}

/* --- what is stored of a host in 24 hours --- */

bool gate_quota_spent(const struct settings *s, const PGresult *r, int row)
{
	return (s->node_documents && strtoull(PQgetvalue(r, row, 1), NULL, 10) >= s->node_documents) ||
		(s->node_bytes &&
		 strtoull(PQgetvalue(r, row, 2), NULL, 10) >= (unsigned long long) s->node_bytes << 20);
}

int gate_quota_left(struct db *db, const struct settings *s, const char *node, const char *host, struct err *e)
{
	struct buf asked[2] = {0};
	PGresult *r;
	int rc;

	db_array_text(&asked[0], node);
	db_array_text(&asked[1], host);
	r = db_query_arrays(db, true, QUOTA_SQL, 2, asked, 0, NULL, e);
	rc = !r ? -1 : !PQntuples(r) || !gate_quota_spent(s, r, 0);
	PQclear(r);
	return rc;
}
