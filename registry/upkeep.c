/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "upkeep.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "herald.h"
#include "rebase.h"
#include "vacuum.h"

/* Any number, as long as it is always the same and not one of those in migrate.c and place.c. */
#define LOCK "SELECT pg_try_advisory_lock(1953460331)"
#define UNLOCK "SELECT pg_advisory_unlock(1953460331)"

#define SOON 5			/* seconds until what could not be done now is tried again */
#define HISTORY_BATCH "256"
#define MANY 16			/* patches that are worth a pass */
#define GATHERING 2		/* seconds: those that come with them may go with it */
#define APART 30		/* seconds from one pass to the next that patches ask for */

enum occasion { ON_TURN = 1, ON_DRIFT = 2, ON_ACCEPT = 4, ON_GOLDEN = 8 };

static int forget_history(struct pass *p, struct err *e);

/*
 * In this order: what people wait for comes first, what most nodes of a class are is known when they have a base, and forms are empty
 * only after the nodes have left them.
 */
static const struct step {
	const char *what;
	unsigned when;
	int (*run)(struct pass *p, struct err *e);
} steps[] = {
	{ "finding bases for nodes stored as patches", ON_TURN, rebase_patches },
	{ "finding out what classes are expected to be", ON_TURN | ON_GOLDEN, rebase_golden },
	{ "moving nodes to classes that were accepted", ON_TURN | ON_ACCEPT, rebase_accepted },
	{ "telling of drift", ON_TURN | ON_DRIFT, herald_run },
	{ "moving nodes to newer forms", ON_TURN, rebase_forms },
	{ "deleting old history", ON_TURN, forget_history },
	{ "deleting bases without nodes", ON_TURN, rebase_unused },
	{ "taking back the room of dead rows", ON_TURN | ON_ACCEPT, vacuum_run },
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

struct upkeep {
	pthread_t thread;
	struct pace pace;	/* its lock is also of the four below */
	unsigned wanted, patched;
	double turn, last_turn;	/* when the next full pass is due, and when there was one */
	const struct settings *settings;
	struct db_pool *pool;
	struct bases *bases;
	struct parser *parser;
	int highest_base;
	char complaint[STEPS + 1][sizeof(((struct err *) 0)->text)];
};

static int forget_history(struct pass *p, struct err *e)
{
	char days[16];
	int deleted;

	if (!p->settings->keep_history)
		return 0;
	snprintf(days, sizeof(days), "%u", p->settings->keep_history);
	do {
		PGresult *r = db_query(p->db, e, "DELETE FROM past WHERE (node, since) IN (SELECT node, since FROM past"
				       " WHERE until < now() - make_interval(days => $1::int) ORDER BY until LIMIT " HISTORY_BATCH ")",
				       1, &DB_TEXT(days));

		if (!r)
			return -1;
		deleted = atoi(PQcmdTuples(r));
		p->emptied[IN_PAST] += deleted;
		PQclear(r);
	} while (deleted && pass_rest(p));
	return 0;
}

/* A trouble that lasts is told once, and once more when it is over. */
static void report(char *complaint, const char *what, int rc, const struct err *e)
{
	const char *text = rc ? e->text : "";

	if (!strcmp(text, complaint))
		return;
	if (rc)
		log_error("upkeep: %s: %s", what, text);
	else
		log_info("upkeep: %s: works again", what);
	snprintf(complaint, sizeof(((struct err *) 0)->text), "%s", text);
}

/* 1 when the lock is ours, 0 when another topiaryd has it, -1. */
static int try_lock(struct db *db, struct err *e)
{
	PGresult *r = db_query(db, e, LOCK, 0, NULL);
	int rc = !r ? -1 : *PQgetvalue(r, 0, 0) == 't';

	PQclear(r);
	return rc;
}

/* What is still to be done soon. */
static unsigned run_steps(struct upkeep *u, struct pass *p, unsigned wanted)
{
	unsigned again = 0;
	struct err e;

	for (size_t i = 0; i < STEPS && pass_goes_on(p); i++) {
		int rc;

		if (!(steps[i].when & wanted))
			continue;
		p->pace->worked_since = pace_now();
		p->unfinished = false;
		rc = steps[i].run(p, &e);
		report(u->complaint[i], steps[i].what, rc, &e);
		if (rc == 0 && p->unfinished)
			again |= steps[i].when & ~ON_TURN;
	}
	return again;
}

static unsigned pass(struct upkeep *u, unsigned wanted)
{
	struct err e = {0};
	struct pass p = { .settings = u->settings, .db = db_take(u->pool, &e), .bases = u->bases, .parser = u->parser,
			  .pace = &u->pace, .highest_base = &u->highest_base, .full = wanted & ON_TURN };
	int rc = p.db ? rebase_refresh(&p, &e) : -1, locked = 0;
	unsigned again = wanted & ~ON_TURN;

	if (rc == 0 && (locked = try_lock(p.db, &e)) < 0)
		rc = -1;
	report(u->complaint[STEPS], "taking its turn", rc, &e);
	if (locked == 1) {
		again = run_steps(u, &p, wanted);
		db_do(p.db, NULL, UNLOCK, 0, NULL);
	}
	db_give(u->pool, p.db);
	return again;
}

/* The lock is held. */
static void begin_turn(struct upkeep *u)
{
	u->last_turn = pace_now();
	u->turn = u->last_turn + u->settings->upkeep_interval;
	u->patched = 0;
}

/* Sleep until there is something to do: what; 0 when topiaryd ends. */
static unsigned wait_turn(struct upkeep *u, bool again)
{
	double soon = again ? pace_now() + SOON : HUGE_VAL;
	unsigned wanted = 0;

	pthread_mutex_lock(&u->pace.lock);
	while (!u->pace.stop && !(wanted = u->wanted | (pace_now() >= u->turn ? ON_TURN : 0) |
				  (pace_now() >= soon ? ON_DRIFT | ON_ACCEPT : 0)))
		pthread_cond_timedwait(&u->pace.wake, &u->pace.lock, (struct timespec[]){ pace_at(soon < u->turn ? soon : u->turn) });
	if (wanted & ON_TURN)
		begin_turn(u);
	u->wanted = 0;
	if (u->pace.stop)
		wanted = 0;
	pthread_mutex_unlock(&u->pace.lock);
	return wanted;
}

static bool stopping(struct upkeep *u)
{
	return !pass_goes_on(&(struct pass){ .pace = &u->pace });
}

static void *run(void *user)
{
	struct upkeep *u = user;
	unsigned again = ON_DRIFT | ON_ACCEPT | ON_GOLDEN;

	while (!stopping(u)) {
		unsigned wanted = wait_turn(u, again);

		if (wanted)
			again = pass(u, wanted | again);
	}
	return NULL;
}

static void ask(struct upkeep *u, unsigned what)
{
	if (!u)
		return;
	pthread_mutex_lock(&u->pace.lock);
	u->wanted |= what;
	pthread_cond_signal(&u->pace.wake);
	pthread_mutex_unlock(&u->pace.lock);
}

void upkeep_nudge(struct upkeep *u)
{
	if (u && *u->settings->drift_hook)
		ask(u, ON_DRIFT);
}

void upkeep_follow(struct upkeep *u)
{
	ask(u, ON_ACCEPT);
}

void upkeep_patched(struct upkeep *u)
{
	if (!u)
		return;
	pthread_mutex_lock(&u->pace.lock);
	if (++u->patched == MANY) {
		double soon = pace_now() + GATHERING, apart = u->last_turn + APART, due = soon > apart ? soon : apart;

		u->turn = due < u->turn ? due : u->turn;
		pthread_cond_signal(&u->pace.wake);
	}
	pthread_mutex_unlock(&u->pace.lock);
}

struct upkeep *upkeep_start(const struct settings *s, struct db_pool *pool, struct bases *b, struct parser *p, struct err *e)
{
	struct upkeep *u = calloc(1, sizeof(*u));

	if (!u) {
		err_set(e, "out of memory");
		return NULL;
	}
	u->settings = s;
	u->pool = pool;
	u->bases = b;
	u->parser = p;
	u->turn = pace_now() + s->upkeep_interval;
	u->last_turn = pace_now() - APART;
	pace_init(&u->pace);
	if (pthread_create(&u->thread, NULL, run, u)) {
		err_set(e, "no thread for upkeep");
		free(u);
		return NULL;
	}
	return u;
}

void upkeep_stop(struct upkeep *u)
{
	if (!u)
		return;
	pthread_mutex_lock(&u->pace.lock);
	u->pace.stop = true;
	pthread_cond_signal(&u->pace.wake);
	pthread_mutex_unlock(&u->pace.lock);
	pthread_join(u->thread, NULL);
	free(u);
}
