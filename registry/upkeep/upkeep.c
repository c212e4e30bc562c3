/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "upkeep.h"

#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "fsck.h"
#include "upkeep_steps.h"
#include "publish.h"
#include "store/costs_store.h"
#include "store/fabric_store.h"

/*
 * Notes
 *
 * The thread runs the steps, whose order is that of the table; nobody else does. The lock of `background` is of what
 * others ask for (wanted, patched, next_full), and is never held while a step runs. Of several topiaryd on a database
 * the one with the advisory lock runs the steps that write.
 */

/* An arbitrary constant, other than those in migrate.c and encode.c. */
#define LOCK "SELECT pg_try_advisory_lock(1953460331)"
#define UNLOCK "SELECT pg_advisory_unlock(1953460331)"

#define SOON 5			/* seconds until unfinished work is tried again */
#define HISTORY_BATCH "256"
#define PATCHES_MIN 16			/* patches that are worth a run */
#define PATCHES_WAIT 2		/* seconds in which further patches are collected */
#define PATCHES_INTERVAL 30		/* seconds between runs requested by patches */

/* Beside UPKEEP_ON_...: also a run that many patches have brought forward, not that one, and the first. */
enum { ON_INTERVAL = 256, ON_CHECK = 512, ON_START = 1024 };

/* A class may be measured within a minute, node by node: the next run follows after as long as this one took. */
static int compare_costs(struct upkeep_run *p, struct err *e)
{
	int rc = costs_refresh(p->db, e);

	if (rc > 0)
		publisher_request(p->publisher);
	upkeep_pause(p);
	return rc < 0 ? -1 : 0;
}

static int match_fabric(struct upkeep_run *p, struct err *e)
{
	return fabric_match(p->db, e);
}

#define COMPARE_SECONDS 120
/* Whenever a topology was stored since the last time, or to see what became of those that were found. */
#define COMPARE_HARDWARE "SELECT same_hardware_refresh() FROM registry r WHERE EXISTS (SELECT FROM same_hardware)" \
	" OR EXISTS (SELECT FROM node n WHERE n.since > r.compared)"

static int compare_hardware(struct upkeep_run *p, struct err *e)
{
	PGresult *r = db_limit(p->db, COMPARE_SECONDS, e) ? NULL : db_query(p->db, e, COMPARE_HARDWARE, 0, NULL);
	int rc = r ? 0 : -1;

	if (r && PQntuples(r) && *PQgetvalue(r, 0, 0) == 't')
		log_warning("nodes that are the same hardware under several names came or went: see topiary drift");
	PQclear(r);
	return db_limit(p->db, DB_SECONDS, e) ? -1 : rc;
}

/* Rows of a release that stored names as they were sent, or of another NodeDomain. */
static int canonical_names(struct upkeep_run *p, struct err *e)
{
	const char *domain = strcasecmp(p->settings->node_domain, "keep") ? "false" : "true";
	PGresult *r = db_query(p->db, e, "SELECT * FROM node_names_canonical($1::boolean)", 1, &DB_TEXT(domain));
	int n = r ? PQntuples(r) : 0;

	for (int i = 0; i < n; i++)
		log_info("%s: now %s%s (NodeDomain)", PQgetvalue(r, i, 0), PQgetvalue(r, i, 1),
			 *PQgetvalue(r, i, 2) == 't' ? "" : ", which has a later export; that of the former name was"
							  " deleted");
	if (n)
		publisher_request(p->publisher);
	PQclear(r);
	return r ? 0 : -1;
}

#define DELETE_HISTORY "DELETE FROM past WHERE (node, since) IN (SELECT node, since FROM past" \
	" WHERE until < now() - make_interval(days => $1::int) ORDER BY until LIMIT " HISTORY_BATCH ")"

/* What is older than KeepHistory. */
static int delete_history(struct upkeep_run *p, struct err *e)
{
	const struct db_value days = DB_NUMBER(p->settings->keep_history);

	if (!p->settings->keep_history)
		return 0;
	for (int deleted = 1; deleted && upkeep_pause(p);) {
		PGresult *r = db_query(p->db, e, DELETE_HISTORY, 1, &days);

		if (!r)
			return -1;
		deleted = atoi(PQcmdTuples(r));
		p->emptied[IN_PAST] += deleted;
		PQclear(r);
	}
	return 0;
}

/*
 * Ordered by urgency; the baseline vote needs the bases of patches, and layouts are unused only after their documents
 * moved.
 */
static const struct step {
	const char *what;
	unsigned when;
	int (*run)(struct upkeep_run *p, struct err *e);
} steps[] = {
	{ "changing names of nodes to those of NodeDomain", ON_INTERVAL | ON_START, canonical_names },
	{ "finding bases for nodes stored as patches", ON_INTERVAL, rebase_patches },
	{ "voting on baselines of classes", ON_INTERVAL | ON_START, baseline_vote_run },
	{ "moving nodes to accepted classes", ON_INTERVAL | UPKEEP_ON_ACCEPT, rebase_accepted },
	{ "comparing measured costs of nodes", ON_INTERVAL | UPKEEP_ON_ACCEPT | UPKEEP_ON_COSTS, compare_costs },
	{ "running the drift hook", ON_INTERVAL | UPKEEP_ON_DRIFT | UPKEEP_ON_COSTS, drift_hook_run },
	{ "moving documents to newer field layouts", ON_INTERVAL, rebase_layouts },
	{ "matching adapters of the fabric with nodes", ON_INTERVAL, match_fabric },
	{ "comparing hardware of different names", ON_INTERVAL, compare_hardware },
	{ "deleting old history", ON_INTERVAL, delete_history },
	{ "checking stored documents", ON_CHECK, fsck_run },
	{ "deleting unused bases", ON_INTERVAL, rebase_delete_unused },
	{ "vacuuming tables", ON_INTERVAL | UPKEEP_ON_ACCEPT, vacuum_run },
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

struct upkeep {
	struct background background;	/* its lock is of the next four members */
	unsigned wanted, patched;
	double next_full, last_full;	/* when the next full run is due, and when the last was */
	double next_interval;		/* when UpkeepInterval is over */
	const struct settings *settings;
	struct db_pool *pool;
	struct bases *bases;
	struct parser *parser;
	struct publisher *publisher;
	char complaint[STEPS + 1][sizeof(((struct err *) 0)->text)];
};

/* --- a run --- */

/* A lasting failure is logged once, and its end once. */
static void report_error(char *complaint, const char *what, int rc, const struct err *e)
{
	const char *text = rc ? e->text : "";

	if (!strcmp(text, complaint))
		return;
	if (rc)
		log_error("upkeep: %s: %s", what, text);
	else
		log_info("upkeep: %s: successful again", what);
	snprintf(complaint, sizeof(((struct err *) 0)->text), "%s", text);
}

/* Sleep until there is work: which; 0 when topiaryd stops. */
static unsigned wait_due(struct upkeep *u, bool again)
{
	double soon = again ? clock_now() + SOON : HUGE_VAL;
	unsigned wanted = 0;

	pthread_mutex_lock(&u->background.lock);
	while (!u->background.stop && !(wanted = u->wanted | (clock_now() >= u->next_full ? ON_INTERVAL : 0) |
				  (clock_now() >= soon ? UPKEEP_ON_DRIFT | UPKEEP_ON_ACCEPT : 0)))
		clock_wait(&u->background.wake, &u->background.lock, soon < u->next_full ? soon : u->next_full);
	if (wanted & ON_INTERVAL) {
		u->last_full = clock_now();
		u->next_full = u->last_full + u->settings->upkeep_interval;
		u->patched = 0;
		if (u->last_full >= u->next_interval) {
			u->next_interval = u->next_full;
			wanted |= ON_CHECK;
		}
	}
	u->wanted = 0;
	if (u->background.stop)
		wanted = 0;
	pthread_mutex_unlock(&u->background.lock);
	return wanted;
}

static void *upkeep_thread(void *user)
{
	unsigned again = UPKEEP_ON_DRIFT | UPKEEP_ON_ACCEPT | ON_START, wanted;
	struct upkeep *u = user;

	while ((wanted = wait_due(u, again))) {
		struct err e = {0};
		struct upkeep_run p = { .settings = u->settings, .db = db_acquire(u->pool, &e), .bases = u->bases,
					.parser = u->parser, .publisher = u->publisher, .background = &u->background,
					.full = wanted & ON_INTERVAL };
		PGresult *r = p.db && rebase_refresh(&p, &e) == 0 ? db_query(p.db, &e, LOCK, 0, NULL) : NULL;

		wanted |= again;
		again = wanted & ~(ON_INTERVAL | ON_CHECK);
		report_error(u->complaint[STEPS], "starting a run", r ? 0 : -1, &e);
		if (r && *PQgetvalue(r, 0, 0) == 't') {
			/* What is still to be done soon. */
			again = 0;
			for (size_t i = 0; i < STEPS && upkeep_continues(&p); i++) {
				int rc;

				if (!(steps[i].when & wanted))
					continue;
				p.worked_since = clock_now();
				p.unfinished = false;
				rc = steps[i].run(&p, &e);
				report_error(u->complaint[i], steps[i].what, rc, &e);
				if (rc == 0 && p.unfinished)
					again |= steps[i].when & ~(ON_INTERVAL | ON_CHECK);
			}
			db_execute(p.db, NULL, UNLOCK, 0, NULL);
		}
		PQclear(r);
		db_release(p.db);
	}
	return NULL;
}

void upkeep_notify(struct upkeep *u, enum upkeep_event what)
{
	if (what == UPKEEP_ON_DRIFT && !*u->settings->drift_hook)
		return;
	pthread_mutex_lock(&u->background.lock);
	if (what != UPKEEP_ON_PATCH) {
		u->wanted |= what;
		pthread_cond_signal(&u->background.wake);
	} else if (++u->patched == PATCHES_MIN) {
		double soon = clock_now() + PATCHES_WAIT, apart = u->last_full + PATCHES_INTERVAL,
			due = soon > apart ? soon : apart;

		u->next_full = due < u->next_full ? due : u->next_full;
		pthread_cond_signal(&u->background.wake);
	}
	pthread_mutex_unlock(&u->background.lock);
}

struct upkeep *upkeep_start(const struct settings *s, struct db_pool *pool, struct bases *b, struct parser *p,
			    struct publisher *publisher, struct err *e)
{
	struct upkeep *u = calloc(1, sizeof(*u));

	if (!u)
		return err_null(e, "out of memory");
	u->settings = s;
	u->pool = pool;
	u->bases = b;
	u->parser = p;
	u->publisher = publisher;
	u->next_full = u->next_interval = clock_now() + s->upkeep_interval;
	u->last_full = clock_now() - PATCHES_INTERVAL;
	if (background_start(&u->background, upkeep_thread, u, "upkeep", e)) {
		free(u);
		return NULL;
	}
	return u;
}

void upkeep_stop(struct upkeep *u)
{
	if (u)
		background_stop(&u->background);
	free(u);
}
