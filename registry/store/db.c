/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "db.h"

#include <assert.h>
#include <poll.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/log.h"

/*
 * Notes
 *
 * A connection belongs to one thread from db_acquire to db_release; `busy` is under its pool's lock, and so is what
 * the pool knows of the server (down, connecting, why). All else of a connection is its thread's, without a lock. Any
 * thread may invalidate a pool: its connections look at the time when they are acquired next.
 */
#define VALUES_MAX 20
#define WAIT_SECONDS 5
#define PREPARED_MAX 48
#define REPORT_SECONDS 30
#define ANSWER_SECONDS 2	/* beyond a statement's limit at the server, for its error to arrive */

struct db {
	struct db_pool *pool;
	PGconn *conn;		/* NULL before the first connection and after one was abandoned */
	double opened;		/* in clock_now, as until */
	double until;		/* of all statements until it is released; 0: no limit */
	unsigned seconds;	/* for one statement; 0: no limit */
	int abandoned;		/* server process of the abandoned connection, which may still run; 0: none */
	bool busy;
	char state[6];
	char warning[128];	/* of the last statement, or empty */
	const char *prepared[PREPARED_MAX];	/* statement i is named by its index */
	unsigned nprepared;
};

struct db_pool {
	pthread_mutex_t lock;
	pthread_cond_t freed;
	const char *conninfo;
	int (*prepare)(struct db *db, void *user, struct err *e);
	void *user;
	bool writes;
	bool down, connecting;	/* the last attempt failed, with error why; a thread is trying again */
	struct err why;
	_Atomic double invalidated;	/* when: older connections are not used */
	unsigned size;
	struct db db[];
};

int db_conninfo_check(const char *setting, const char *conninfo, struct err *e)
{
	char *why = NULL;
	PQconninfoOption *options = PQconninfoParse(conninfo, &why);
	int rc = options ? 0 : err_set(e, "%s: %.*s", setting, (int) strcspn(why ? why : "", "\n"),
				       why ? why : "out of memory");

	PQfreemem(why);
	PQconninfoFree(options);
	return rc;
}

struct db_pool *db_pool_new(const char *conninfo, unsigned size, bool writes,
			    int (*prepare)(struct db *db, void *user, struct err *e), void *user)
{
	struct db_pool *p = calloc(1, sizeof(*p) + size * sizeof(p->db[0]));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->freed, NULL);
	p->conninfo = conninfo;
	p->prepare = prepare;
	p->user = user;
	p->writes = writes;
	p->size = size;
	for (unsigned i = 0; i < size; i++)
		p->db[i] = (struct db){ .pool = p, .seconds = DB_SECONDS };
	return p;
}

void db_pool_free(struct db_pool *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->size; i++)
		PQfinish(p->db[i].conn);
	free(p);
}

void db_pool_invalidate(struct db_pool *p)
{
	atomic_store(&p->invalidated, clock_now());
}

static int set_error(struct db *db, struct err *e)
{
	const char *text = db->conn ? PQerrorMessage(db->conn) : "the connection was closed";

	return err_set(e, "PostgreSQL: %.*s", (int) strcspn(text, "\n"), text);
}

static void on_notice(void *user, const PGresult *r)
{
	struct db *db = user;

	snprintf(db->warning, sizeof(db->warning), "%s", PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) ?: "");
}

static void db_close(struct db *db)
{
	PQfinish(db->conn);
	db->conn = NULL;
	*db->state = '\0';
}

static int set_broken(struct db *db, struct err *e)
{
	*db->state = '\0';
	return set_error(db, e);
}

/* Wait until the next result can be read without blocking: 0, or -1 with the connection abandoned or broken. */
static int wait_ready(struct db *db, double until, struct err *e)
{
	double begun = clock_now(), reported = begun;
	int unsent = 1;

	while (unsent || PQisBusy(db->conn)) {
		struct pollfd f = { .fd = PQsocket(db->conn), .events = POLLIN };
		double left = until ? until - clock_now() : 1;

		if (unsent && (unsent = PQflush(db->conn)) < 0)
			return set_broken(db, e);
		if (!unsent && !PQisBusy(db->conn))
			return 0;
		f.events |= unsent ? POLLOUT : 0;
		if (left <= 0) {	/* Closed without waiting for what the server is doing. */
			db->abandoned = PQbackendPID(db->conn);
			db_close(db);
			db_pool_invalidate(db->pool);
			return err_set(e, "PostgreSQL: no reply in time, the connection was closed");
		}
		if (clock_now() >= reported + REPORT_SECONDS) {
			reported = clock_now();
			log_info("PostgreSQL: a statement without time limit has been running for %.0f s",
				 reported - begun);
		}
		if (poll(&f, 1, 1000 * left + 1) > 0 && !PQconsumeInput(db->conn))
			return set_broken(db, e);
	}
	return 0;
}

/* Deadline of a statement sent now, in clock_now; 0: none. */
static double answer_until(const struct db *db)
{
	double until = db->seconds ? clock_now() + db->seconds + ANSWER_SECONDS : 0;

	return db->until && (!until || db->until < until) ? db->until : until;
}

/* The last result of what was sent; NULL with an error. */
static PGresult *wait_result(struct db *db, int sent, double until, struct err *e)
{
	PGresult *r = NULL, *next;

	*db->warning = '\0';
	if (!sent) {
		set_broken(db, e);
		return NULL;
	}
	for (;;) {
		if (wait_ready(db, until, e)) {
			PQclear(r);
			return NULL;
		}
		if (!(next = PQgetResult(db->conn)))
			break;
		/* Of several statements the first that fails is the last executed. */
		PQclear(r);
		r = next;
	}
	if (PQresultStatus(r) != PGRES_TUPLES_OK && PQresultStatus(r) != PGRES_COMMAND_OK) {
		snprintf(db->state, sizeof(db->state), "%s", PQresultErrorField(r, PG_DIAG_SQLSTATE) ?: "");
		set_error(db, e);
	} else if (*db->warning && PQtransactionStatus(db->conn) == PQTRANS_IDLE) {
		err_set(e, "PostgreSQL: %s", db->warning);
		db_close(db);
	} else {
		return r;
	}
	PQclear(r);
	return NULL;
}

enum { FSYNC, FULL_PAGE_WRITES, USED };
/* A server's default may not wait for the disk; one that waits for more (remote_apply) is kept. */
#define SESSION "SELECT current_setting('fsync'), current_setting('full_page_writes')," \
	" current_setting('topiary.session', true), set_config('topiary.session', 'used', false)," \
	" set_config('synchronous_commit'," \
	" CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)"
/* No statement is worth compiling: that of the baseline vote took a hundred times as long. */
/* Not as `options` of the connection, which PgBouncer refuses; those that conninfo has win. */
#define LIMITS "SELECT set_config(name, v.value, false) FROM (VALUES ('statement_timeout', '10s')," \
	" ('lock_timeout', '5s'), ('idle_in_transaction_session_timeout', '30s'), ('client_min_messages', 'warning')," \
	" ('TimeZone', 'UTC'), ('jit', 'off'), ('plan_cache_mode', $1)) v(name, value)" \
	" JOIN pg_settings USING (name) WHERE source <> 'client'"
/* A few exports are looked up by keys: planning that anew takes PostgreSQL several times as long as executing it. */
#define WRITERS_PLANS "force_generic_plan"
/*
 * A server process that waits for a standby stays even when its client is gone: they would use up all connection slots.
 */
#define TERMINATE_ABANDONED "SELECT pg_terminate_backend(pid) FROM pg_stat_activity" \
	" WHERE pid = $1::int AND usename = current_user AND application_name = 'topiaryd'"

int db_check(struct db *db, struct err *e)
{
	return db->pool->prepare(db, db->pool->user, e);
}

static int begin_session(struct db_pool *p, struct db *db, struct err *e)
{
	/* Once a process, whichever pool connects first. */
	static atomic_bool warned_torn_pages;
	PGresult *r;
	int rc = 0;

	PQsetnonblocking(db->conn, 1);
	PQsetNoticeReceiver(db->conn, on_notice, db);
	if (db_execute(db, e, LIMITS, 1, &DB_TEXT(p->writes ? WRITERS_PLANS : "auto")) ||
	    !(r = db_query(db, e, SESSION, 0, NULL)))
		return -1;
	if (*PQgetvalue(r, 0, USED))
		rc = err_set(e, "PostgreSQL: the session is another client's, as with PgBouncer in transaction mode:"
				" set pool_mode=session and server_reset_query=DISCARD ALL");
	else if (p->writes && strcmp(PQgetvalue(r, 0, FSYNC), "on"))
		rc = err_set(e, "PostgreSQL: fsync=off: a crash of the server would lose acknowledged exports; set"
				" fsync=on");
	else if (p->writes && strcmp(PQgetvalue(r, 0, FULL_PAGE_WRITES), "on") &&
		 !atomic_exchange(&warned_torn_pages, true))
		log_warning("PostgreSQL: full_page_writes=off: a crash may corrupt tables unless the file system"
			    " writes pages atomically (ZFS)");
	PQclear(r);
	if (rc || (db->abandoned && db_execute(db, e, TERMINATE_ABANDONED, 1, &DB_NUMBER(db->abandoned))))
		return -1;
	db->abandoned = 0;
	return db_check(db, e);
}

/* 0, 1 when the server cannot be reached, -1 when the session is refused. */
static int connection_reopen(struct db_pool *p, struct db *db, struct err *e)
{
	/* Settings in conninfo override these. */
	const char *keys[] = { "connect_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count",
			       "tcp_user_timeout",
		"application_name", "client_encoding", "dbname", NULL };
	const char *values[] = { "3", "10", "5", "3", "10000", "topiaryd", "UTF8",
		p->conninfo, NULL };
	bool unreachable;

	db->nprepared = 0;
	db->conn = PQconnectdbParams(keys, values, 1);
	db->opened = clock_now();
	if (PQstatus(db->conn) == CONNECTION_OK && begin_session(p, db, e) == 0)
		return 0;
	unreachable = PQstatus(db->conn) != CONNECTION_OK;
	if (unreachable && db->conn)
		set_error(db, e);
	db_close(db);
	return unreachable ? 1 : -1;
}

/*
 * While the server is down one thread at a time tries to connect, which may take seconds; others fail with the last
 * error.
 */
static int db_connect(struct db_pool *p, struct db *db, struct err *e)
{
	bool was_down, other;
	struct err why = {0};
	int rc;

	/*
	 * A server that closed an idle connection is noticed by reading only: first its last message, then the end of
	 * file.
	 */
	if (db->conn && db->opened > atomic_load(&p->invalidated) && PQconsumeInput(db->conn) &&
	    PQconsumeInput(db->conn) &&
	    PQstatus(db->conn) == CONNECTION_OK)
		return 0;
	db_close(db);
	pthread_mutex_lock(&p->lock);
	was_down = p->down;
	other = was_down && p->connecting;
	p->connecting |= was_down;
	if (other)
		why = p->why;
	pthread_mutex_unlock(&p->lock);
	if (other)
		return err_set(e, "%s", why.text);
	rc = connection_reopen(p, db, &why);
	pthread_mutex_lock(&p->lock);
	p->down = rc == 1;
	p->why = why;
	p->connecting &= !was_down;
	pthread_mutex_unlock(&p->lock);
	return rc ? err_set(e, "%s", why.text) : 0;
}

struct db *db_acquire(struct db_pool *p, struct err *e)
{
	double until = clock_now() + WAIT_SECONDS;
	struct db *db = NULL;
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	while (!db && rc != ETIMEDOUT) {
		for (unsigned i = 0; i < p->size && !db; i++)
			db = p->db[i].busy ? NULL : &p->db[i];
		if (!db)
			rc = clock_wait(&p->freed, &p->lock, until);
	}
	if (db) {
		db->busy = true;
		*db->state = '\0';
	}
	pthread_mutex_unlock(&p->lock);
	if (!db) {
		err_set(e, "PostgreSQL: all connections are busy");
	} else if (db_connect(p, db, e)) {
		db_release(db);
		db = NULL;
	}
	return db;
}

void db_release(struct db *db)
{
	struct db_pool *p = db ? db->pool : NULL;

	if (!db)
		return;
	assert(db->busy);
	db->until = 0;
	if (db_alive(db) && PQtransactionStatus(db->conn) != PQTRANS_IDLE)
		db_execute(db, NULL, "ROLLBACK", 0, NULL);
	if (db_alive(db) && db->seconds != DB_SECONDS)
		db_limit(db, DB_SECONDS, NULL);
	db->seconds = DB_SECONDS;
	/* Read-only by a setting of the role or database, a session stays so when the setting is gone. */
	if (!strcmp(db->state, "25006"))
		db_close(db);
	pthread_mutex_lock(&p->lock);
	db->busy = false;
	pthread_cond_signal(&p->freed);
	pthread_mutex_unlock(&p->lock);
}

int db_limit(struct db *db, unsigned seconds, struct err *e)
{
	char text[16];

	snprintf(text, sizeof(text), "%us", seconds);
	db->seconds = seconds;
	return db_execute(db, e, "SELECT set_config('statement_timeout', $1, false)", 1, &DB_TEXT(text));
}

void db_limit_all(struct db *db, unsigned seconds)
{
	db->until = clock_now() + seconds;
}

bool db_alive(const struct db *db)
{
	return PQstatus(db->conn) == CONNECTION_OK;
}

const char *db_state(const struct db *db)
{
	return db->state;
}

/* Values in libpq's arrays. */
struct values {
	const char *data[VALUES_MAX];
	int length[VALUES_MAX], binary[VALUES_MAX];
};

static void values_set(struct values *v, unsigned n, const struct db_value *values)
{
	assert(n <= VALUES_MAX);
	for (unsigned i = 0; i < n; i++) {
		v->data[i] = values[i].data;
		v->length[i] = values[i].len;
		v->binary[i] = values[i].len > 0;
	}
}

PGresult *db_query(struct db *db, struct err *e, const char *sql, unsigned n, const struct db_value *values)
{
	struct values v;

	values_set(&v, n, values);
	return wait_result(db, PQsendQueryParams(db->conn, sql, n, NULL, v.data, v.length, v.binary, 0),
			   answer_until(db), e);
}

PGresult *db_query_prepared(struct db *db, struct err *e, const char *sql, unsigned n, const struct db_value *values)
{
	struct values v;
	unsigned i = 0;
	char name[16];
	PGresult *r;

	while (i < db->nprepared && db->prepared[i] != sql)
		i++;
	if (i == PREPARED_MAX)
		return db_query(db, e, sql, n, values);
	snprintf(name, sizeof(name), "s%u", i);
	if (i == db->nprepared) {
		r = wait_result(db, PQsendPrepare(db->conn, name, sql, 0, NULL), answer_until(db), e);
		if (!r)
			return NULL;
		PQclear(r);
		db->prepared[db->nprepared++] = sql;
	}
	values_set(&v, n, values);
	return wait_result(db, PQsendQueryPrepared(db->conn, name, n, v.data, v.length, v.binary, 0), answer_until(db),
			   e);
}

int db_query_key(struct db *db, char key[static DB_KEY], struct err *e, const char *sql, unsigned n,
		 const struct db_value *values)
{
	PGresult *r = db_query_prepared(db, e, sql, n, values);
	int rows = r ? PQntuples(r) : -1;

	if (rows > 0)
		snprintf(key, DB_KEY, "%s", PQgetvalue(r, 0, 0));
	PQclear(r);
	return rows > 0 ? 1 : rows;
}

int db_execute(struct db *db, struct err *e, const char *sql, unsigned n, const struct db_value *values)
{
	PGresult *r = db_query(db, e, sql, n, values);

	PQclear(r);
	return r ? 0 : -1;
}

int db_end(struct db *db, int rc, struct err *e)
{
	if (rc == 0)
		rc = db_execute(db, e, "COMMIT", 0, NULL);
	if (rc)
		db_execute(db, NULL, "ROLLBACK", 0, NULL);
	return rc;
}

int db_script(struct db *db, struct err *e, const char *sql)
{
	PGresult *r = wait_result(db, PQsendQuery(db->conn, sql), answer_until(db), e);

	PQclear(r);
	return r ? 0 : -1;
}

const char *db_number(char text[static DB_NUMBER_TEXT], long long n)
{
	snprintf(text, DB_NUMBER_TEXT, "%lld", n);
	return text;
}

/* Before an element: the beginning, or a comma. */
static void array_next(struct buf *b)
{
	buf_add(b, b->len ? "," : "{", 1);
}

void db_array_span(struct buf *b, const char *text, size_t len)
{
	size_t from = 0;

	array_next(b);
	buf_add(b, "\"", 1);
	for (size_t i = 0; i < len; i++)
		if (text[i] == '"' || text[i] == '\\') {
			buf_add(b, text + from, i - from);
			buf_add(b, "\\", 1);
			from = i;
		}
	buf_add(b, text + from, len - from);
	buf_add(b, "\"", 1);
}

void db_array_text(struct buf *b, const char *text)
{
	if (text) {
		db_array_span(b, text, strlen(text));
	} else {
		array_next(b);
		buf_puts(b, "NULL");
	}
}

void db_array_number(struct buf *b, long long n)
{
	array_next(b);
	buf_printf(b, "%lld", n);
}

void db_array_bytes(struct buf *b, const void *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *from = data;
	char *to;

	array_next(b);
	buf_puts(b, "\"\\\\x");
	if (!(to = buf_reserve(b, 2 * len)))
		return;
	for (size_t i = 0; i < len; i++) {
		*to++ = digits[from[i] >> 4];
		*to++ = digits[from[i] & 15];
	}
	b->len += 2 * len;
	buf_add(b, "\"", 1);
}

void db_array_end(struct buf *b)
{
	buf_puts(b, b->len ? "}" : "{}");
}

PGresult *db_query_arrays(struct db *db, bool prepared, const char *sql, unsigned n, struct buf arrays[],
			  unsigned more, const struct db_value *values, struct err *e)
{
	struct db_value v[VALUES_MAX];
	bool failed = false;
	PGresult *r = NULL;

	assert(n + more <= VALUES_MAX);
	for (unsigned i = 0; i < n + more; i++) {
		if (i < n) {
			db_array_end(&arrays[i]);
			failed |= arrays[i].failed;
		}
		v[i] = i < n ? DB_TEXT(arrays[i].data) : values[i - n];
	}
	if (failed)
		err_set(e, "out of memory");
	else
		r = (prepared ? db_query_prepared : db_query)(db, e, sql, n + more, v);
	for (unsigned i = 0; i < n; i++)
		buf_free(&arrays[i]);
	return r;
}

int db_bytes(const PGresult *r, int row, int column, struct buf *out)
{
	struct buf b = {0};
	size_t len;
	unsigned char *raw = PQunescapeBytea((unsigned char *) PQgetvalue(r, row, column), &len);

	if (!raw)
		return -1;
	buf_add(&b, raw, len);
	PQfreemem(raw);
	if (b.failed)
		return -1;
	*out = b;
	return 0;
}
