/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "migrate.h"

#include <glob.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"

/*
 * Notes
 *
 * The migrations do not change once loaded. `started` is written under the lock of identity.c, from which all calls
 * come; `refused` is atomic, for topiaryd.c.
 */

/* An arbitrary constant; it spells "topi". */
#define LOCK "SELECT pg_advisory_xact_lock(1953460329)"
#define RECORD "CREATE TABLE IF NOT EXISTS topiary_migration (name text PRIMARY KEY, applied timestamptz NOT NULL" \
	" DEFAULT now(), sha256 text NOT NULL, works_with text)"
#define WORKS_WITH "\n-- Works with: "
#define NUMBER 4	/* digits */

struct migration {
	const char *name;	/* within path */
	char *path;
	struct buf script;
	char sha256[HASH_HEX];
	char works_with[NUMBER + 1];	/* or empty */
};

struct migrations {
	size_t n;
	atomic_bool refused;
	const struct migration *started;	/* that was logged last */
	struct migration all[];
};

static int load_migration(struct migration *m, const char *path, struct err *e)
{
	const char *line;

	if (!(m->path = strdup(path)))
		return err_set(e, "out of memory");
	m->name = strrchr(m->path, '/') + 1;
	if (file_read(path, 1 << 20, &m->script, e))
		return -1;
	hash_hex(m->script.data, m->script.len, m->sha256);
	if ((line = strstr(m->script.data, WORKS_WITH)))
		snprintf(m->works_with, sizeof(m->works_with), "%.*s", NUMBER, line + strlen(WORKS_WITH));
	return 0;
}

struct migrations *migrations_load(const char *folder, struct err *e)
{
	struct migrations *m = NULL;
	struct buf pattern = {0};
	glob_t found = {0};

	buf_printf(&pattern, "%s/[0-9][0-9][0-9][0-9]_*.sql", folder);
	if (pattern.failed || glob(pattern.data, 0, NULL, &found)) {
		err_set(e, "SchemaDir=%s: no migrations (NNNN_NAME.sql) found", folder);
		goto error;
	}
	if (!(m = calloc(1, sizeof(*m) + found.gl_pathc * sizeof(m->all[0])))) {
		err_set(e, "out of memory");
		goto error;
	}
	for (; m->n < found.gl_pathc; m->n++)
		if (load_migration(&m->all[m->n], found.gl_pathv[m->n], e)) {
			m->n++;
			goto error;
		}
	globfree(&found);
	buf_free(&pattern);
	return m;
error:
	globfree(&found);
	buf_free(&pattern);
	migrations_free(m);
	return NULL;
}

void migrations_free(struct migrations *m)
{
	for (size_t i = 0; m && i < m->n; i++) {
		free(m->all[i].path);
		buf_free(&m->all[i].script);
	}
	free(m);
}

bool migrations_refused(const struct migrations *m)
{
	return atomic_load(&m->refused);
}

/* --- the recorded migrations --- */

#define HAS_RECORD "SELECT count(to_regclass('topiary_migration'))"
/* Applied by development versions before the first release, whose first files had the names of ours: it comes first. */
#define FORMER "0004_identity.sql"
/* The oldest of them recorded no hash and had no column for it. */
#define RECORDED "SELECT name, coalesce(to_jsonb(m)->>'sha256', ''), coalesce(to_jsonb(m)->>'works_with', '')," \
	" to_char(applied, 'YYYY-MM-DD') FROM topiary_migration m ORDER BY name <> '" FORMER "', name"
enum { R_NAME, R_SHA256, R_WORKS_WITH, R_DATE };

static const struct migration *find_migration(const struct migrations *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->all[i].name, name))
			return &m->all[i];
	return NULL;
}

static int check_row(const struct migrations *m, const PGresult *r, int row, struct err *e)
{
	const char *name = PQgetvalue(r, row, R_NAME), *works_with = PQgetvalue(r, row, R_WORKS_WITH);
	const char *sha256 = PQgetvalue(r, row, R_SHA256), *date = PQgetvalue(r, row, R_DATE);
	const struct migration *ours = find_migration(m, name);

	if (!*sha256 || !strcmp(name, FORMER))
		return err_set(e, "the database has the schema of a development version (migration %s, applied on %s):"
			       " see operations.md, Upgrades, or create the database anew", name, date);
	if (!ours && *works_with && strncmp(works_with, m->all[m->n - 1].name, NUMBER) <= 0)
		return 0;
	if (!ours)
		return err_set(e, "the database has migration %s (applied on %s), which topiaryd " TOPIARY_VERSION
			       " does not know: start the release that applied it, or restore a backup from before",
			       name, date);
	if (strcmp(sha256, ours->sha256))
		return err_set(e, "migration %s was edited since it was applied on %s: install the file as it was, and"
				  " change the schema by a new one", ours->path, date);
	return 0;
}

/* Each is applied on those before it: one that is missing below the last was lost, and cannot be applied any more. */
static int check_gaps(const struct migrations *m, const PGresult *r, struct err *e)
{
	int rows = PQntuples(r);
	const char *last = rows ? PQgetvalue(r, rows - 1, R_NAME) : "";

	for (size_t i = 0; i < m->n && strcmp(m->all[i].name, last) < 0; i++) {
		int row = 0;

		while (row < rows && strcmp(PQgetvalue(r, row, R_NAME), m->all[i].name))
			row++;
		if (row == rows)
			return err_set(e, "the database lacks migration %s, but has %s: restore it from a backup",
				       m->all[i].name, last);
	}
	return 0;
}

static int check_rows(const struct migrations *m, const PGresult *r, struct err *e)
{
	size_t known = 0;

	for (int i = 0; i < PQntuples(r); i++) {
		if (check_row(m, r, i, e))
			return -1;
		known += find_migration(m, PQgetvalue(r, i, R_NAME)) != NULL;
	}
	return check_gaps(m, r, e) ? -1 : known < m->n;
}

int migrations_check(struct db *db, struct migrations *m, struct err *e)
{
	char has[DB_KEY];
	PGresult *r;
	int rc;

	if (db_query_key(db, has, e, HAS_RECORD, 0, NULL) < 0)
		return -1;
	if (!strcmp(has, "0"))
		return 1;
	if (!(r = db_query(db, e, RECORDED, 0, NULL)))
		return -1;
	rc = check_rows(m, r, e);
	atomic_store(&m->refused, rc < 0);
	PQclear(r);
	return rc;
}

/* --- applying --- */

#define IS_APPLIED "SELECT 1 FROM topiary_migration WHERE name = $1"
#define APPLIED "INSERT INTO topiary_migration (name, sha256, works_with) VALUES ($1, $2, nullif($3, ''))"

int migrations_apply(struct db *db, struct migrations *m, struct err *e)
{
	int rc = db_limit(db, 0, e);

	for (size_t i = 0; i < m->n && rc == 0; i++) {
		struct db_value v[] = { DB_TEXT(m->all[i].name), DB_TEXT(m->all[i].sha256),
				       DB_TEXT(m->all[i].works_with) };
		double begun = clock_now();
		char one[DB_KEY];

		rc = db_execute(db, e, "BEGIN", 0, NULL) || db_execute(db, e, LOCK, 0, NULL) ||
			db_script(db, e, RECORD) ? -1 : db_query_key(db, one, e, IS_APPLIED, 1, v);
		/* One that fails is tried again at each connect. */
		if (rc == 0) {
			if (m->started != &m->all[i])
				log_info("migration %s: started; exports wait until it is done", m->all[i].name);
			m->started = &m->all[i];
			if (!(rc = db_script(db, e, m->all[i].script.data)) && !(rc = db_execute(db, e, APPLIED, 3, v)))
				log_info("migration %s: done after %.0f s", m->all[i].name, clock_now() - begun);
		}
		rc = db_end(db, rc < 0 ? -1 : 0, e) ? err_within(e, "migration %s", m->all[i].name) : 0;
	}
	db_limit(db, DB_SECONDS, NULL);
	return rc;
}
