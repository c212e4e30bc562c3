/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "migrate.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* Any number, as long as it is always the same; this one spells "topi". */
#define LOCK "SELECT pg_advisory_xact_lock(1953460329)"
#define RECORD "CREATE TABLE IF NOT EXISTS topiary_migration (name text PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"

/* A role that may not create tables can still run on a schema that is complete. */
static int applied(struct db *db, const char *name, struct err *e)
{
	PGresult *r = db_query(db, e, "SELECT to_regclass('topiary_migration') IS NOT NULL", 0, NULL);
	int rc = !r ? -1 : *PQgetvalue(r, 0, 0) == 't';

	PQclear(r);
	if (rc != 1)
		return rc;
	r = db_query(db, e, "SELECT 1 FROM topiary_migration WHERE name = $1", 1, &DB_TEXT(name));
	rc = !r ? -1 : PQntuples(r);
	PQclear(r);
	return rc;
}

static int apply(struct db *db, const char *name, const char *script, struct err *e)
{
	int done;

	if (db_do(db, e, "BEGIN", 0, NULL) || db_do(db, e, LOCK, 0, NULL) || db_do(db, e, RECORD, 0, NULL) ||
	    (done = applied(db, name, e)) < 0)
		goto error;
	if (!done && (db_script(db, e, script) ||
		      db_do(db, e, "INSERT INTO topiary_migration (name) VALUES ($1)", 1, &DB_TEXT(name))))
		goto error;
	if (db_do(db, e, "COMMIT", 0, NULL) == 0)
		return 0;
error:
	db_do(db, NULL, "ROLLBACK", 0, NULL);
	return -1;
}

static int one(struct db *db, const char *path, struct err *e)
{
	const char *name = strrchr(path, '/') + 1;
	struct buf script = {0};
	int rc = applied(db, name, e);

	if (rc == 0 && (rc = file_read(path, 1 << 20, &script, e)) == 0)
		rc = apply(db, name, script.data, e);
	buf_free(&script);
	return rc < 0 ? err_within(e, "migration %s", name) : 0;
}

int migrate(struct db *db, const char *folder, struct err *e)
{
	struct buf pattern = {0};
	glob_t found = {0};
	int rc = -1;

	buf_printf(&pattern, "%s/[0-9][0-9][0-9][0-9]_*.sql", folder);
	if (pattern.failed || glob(pattern.data, 0, NULL, &found)) {
		err_set(e, "%s: no migrations (NNNN_NAME.sql) here", folder);
		goto done;
	}
	rc = 0;
	for (size_t i = 0; i < found.gl_pathc && rc == 0; i++)
		rc = one(db, found.gl_pathv[i], e);
done:
	globfree(&found);
	buf_free(&pattern);
	return rc;
}
