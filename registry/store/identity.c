/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "identity.h"

#include <pthread.h>

#include "base/log.h"

/*
 * Notes
 *
 * The lock is held while a new connection is checked, so that they are checked, and the schema is updated, one after
 * another. on_change and the cache of bases are called with it: neither acquires a connection.
 */
#define INSUFFICIENT_PRIVILEGE "42501"

/* A server's identity; the strings are as PostgreSQL writes them. */
struct server_identity {
	bool standby;
	char system[24], database[DB_KEY];
	unsigned timeline;	/* 0: not known */
};

struct identity {
	pthread_mutex_t lock;
	struct migrations *migrations;
	struct bases *bases;
	bool reads_elsewhere;
	void (*on_change)(void *user);
	void *user;
	struct server_identity server;	/* the latest */
	char tables[96];	/* identity of the tables in it; empty before the first connection */
	struct identity_counts counts;
};

struct identity *identity_new(struct migrations *m, struct bases *b, bool reads_elsewhere,
			      void (*on_change)(void *user), void *user)
{
	struct identity *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	pthread_mutex_init(&i->lock, NULL);
	i->migrations = m;
	i->bases = b;
	i->reads_elsewhere = reads_elsewhere;
	i->on_change = on_change;
	i->user = user;
	return i;
}

void identity_free(struct identity *i)
{
	free(i);
}

/*
 * A primary's timeline is that of the WAL it writes: the control file has it only after the next checkpoint. Where
 * ordinary roles may not call these functions, the tables alone identify the database.
 */
static int read_server(struct db *db, struct server_identity *out, struct err *e)
{
	enum { STANDBY, DATABASE, SYSTEM, TIMELINE };
	PGresult *r = db_query(db, e, "SELECT pg_is_in_recovery(), (SELECT oid FROM pg_database WHERE datname ="
			       " current_database()), (SELECT system_identifier FROM pg_control_system()), CASE WHEN"
			       " NOT pg_is_in_recovery() THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()),"
			       " 8))::bit(32)::int END", 0, NULL);

	if (!r && !strcmp(db_state(db), INSUFFICIENT_PRIVILEGE))
		r = db_query(db, e, "SELECT pg_is_in_recovery(), (SELECT oid FROM pg_database WHERE datname ="
				    " current_database()), '', 0", 0, NULL);
	if (!r)
		return -1;
	*out = (struct server_identity){ .standby = *PQgetvalue(r, 0, STANDBY) == 't',
					 .timeline = atoi(PQgetvalue(r, 0, TIMELINE)) };
	snprintf(out->system, sizeof(out->system), "%s", PQgetvalue(r, 0, SYSTEM));
	snprintf(out->database, sizeof(out->database), "%s", PQgetvalue(r, 0, DATABASE));
	PQclear(r);
	return 0;
}

static int read_tables(struct db *db, char out[static 96], struct err *e)
{
	PGresult *r = db_query(db, e, "SELECT concat_ws(' ', identity, 'layout'::regclass::oid, 'base'::regclass::oid)"
				      " FROM registry", 0, NULL);
	int rows = r ? PQntuples(r) : -1;

	if (rows > 0)
		snprintf(out, 96, "%s", PQgetvalue(r, 0, 0));
	PQclear(r);
	return rows > 0 ? 0 : rows < 0 ? -1 : err_set(e, "PostgreSQL: the table registry is empty; restore it from a"
							 " dump");
}

static bool same_server(const struct server_identity *a, const struct server_identity *b)
{
	return !strcmp(a->system, b->system) && !strcmp(a->database, b->database) && a->timeline == b->timeline;
}

/* Of any timeline. Not every role may read the system's identifier. */
static bool same_database(const struct server_identity *a, const struct server_identity *b)
{
	return !strcmp(a->database, b->database) && (!*a->system || !*b->system || !strcmp(a->system, b->system));
}

static bool is_old_primary(const struct server_identity *seen, const struct server_identity *now)
{
	return *now->system && !strcmp(seen->system, now->system) && now->timeline < seen->timeline;
}

/* The lock is held. */
static int check_server(struct identity *i, struct db *db, bool reads_only, struct err *e)
{
	struct server_identity now;
	char tables[96];
	bool old;
	int rc;

	if (read_server(db, &now, e))
		return -1;
	old = !now.standby && is_old_primary(&i->server, &now);
	if (old && !reads_only) {
		i->counts.refused++;
		return err_set(e, "PostgreSQL: this server is a primary on timeline %u, but timeline %u of the same"
			       " system was seen: an old primary, still running after a failover. Exports are refused;"
			       " stop it, or restart topiaryd if it was reinstated", now.timeline, i->server.timeline);
	}
	if ((rc = migrations_check(db, i->migrations, e)) < 0)
		return -1;
	if (rc > 0 && (reads_only || now.standby))
		return err_set(e, "the database's schema is not up to date; start a topiaryd that writes to it, or"
			       " topiaryd --migrate");
	if (rc > 0 && migrations_apply(db, i->migrations, e))
		return -1;
	if (old || now.standby)
		return 0;
	if (reads_only && i->reads_elsewhere && *i->tables && !same_database(&i->server, &now))
		return err_set(e, "PostgreSQL: this is another database (system %s, oid %s) than that of Database"
				  " (system %s, oid %s): correct ReadDatabase", now.system, now.database,
			       i->server.system, i->server.database);
	if (read_tables(db, tables, e))
		return -1;
	if (!same_server(&i->server, &now) || strcmp(i->tables, tables)) {
		if (*i->tables) {
			log_warning("the database has been replaced (system %s, timeline %u, oid %s; before: system %s,"
				    " timeline %u, oid %s); the cache is emptied", now.system, now.timeline,
				    now.database, i->server.system, i->server.timeline, i->server.database);
			bases_clear(i->bases);
			i->counts.changes++;
			i->on_change(i->user);
		}
		i->server = now;
		i->counts.timeline = now.timeline;
		snprintf(i->tables, sizeof(i->tables), "%s", tables);
	}
	return 0;
}

int identity_check(struct identity *i, struct db *db, bool reads_only, struct err *e)
{
	int rc;

	pthread_mutex_lock(&i->lock);
	rc = check_server(i, db, reads_only, e);
	pthread_mutex_unlock(&i->lock);
	return rc;
}

void identity_counts(struct identity *i, struct identity_counts *out)
{
	pthread_mutex_lock(&i->lock);
	*out = i->counts;
	pthread_mutex_unlock(&i->lock);
}
