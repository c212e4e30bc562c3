/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "pg_servers.h"

#include "base/clock.h"
#include "base/log.h"

/*
 * Notes
 *
 * The thread asks the servers without the lock, into a copy, and publishes what it found with it. Connections of others
 * are checked against that; `on_split` is called without the lock.
 */
#define INTERVAL 5	/* seconds between two checks of all servers */
#define REPLY_SECONDS 3	/* seconds for one of them */
#define SYSTEM 24	/* digits of a system identifier and the NUL */

struct pg_server {
	char *name;		/* for messages: host or host:port */
	char *conninfo;
	struct db_pool *pool;	/* of one connection */
	bool reached, primary;
	unsigned timeline;	/* of a primary */
	char system[SYSTEM];	/* identical for a primary and its standbys */
};

struct pg_servers {
	struct background background;	/* its lock is of all that follows; not started with one server */
	void (*on_split)(void *user);
	void *user;
	char split[sizeof(((struct err *) 0)->text)];	/* the split as a message, or empty */
	unsigned latest;	/* the highest timeline of a primary so far */
	char latest_host[256], system[SYSTEM];
	unsigned n;
	struct pg_server all[];
};

/* --- the connection string --- */

static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
	for (; options->keyword; options++)
		if (!strcmp(options->keyword, keyword))
			return options->val ? options->val : "";
	return "";
}

/* The i-th element of a comma-separated list; the only one of a list of one. */
static void add_nth(struct buf *out, const char *list, unsigned i)
{
	for (const char *comma; i && (comma = strchr(list, ',')); i--)
		list = comma + 1;
	buf_add(out, list, strcspn(list, ","));
}

static void add_option(struct buf *out, const char *keyword, const char *value)
{
	buf_printf(out, "%s='", keyword);
	for (; *value; value++)
		buf_printf(out, *value == '\'' || *value == '\\' ? "\\%c" : "%c", *value);
	buf_puts(out, "' ");
}

static int no_check(struct db *, void *, struct err *)
{
	return 0;
}

static int server_init(struct pg_server *h, const PQconninfoOption *options, unsigned i)
{
	const char *names = value_of(options, "host"), *ports = value_of(options, "port");
	struct buf name = {0}, conninfo = {0};

	add_nth(&name, *names ? names : value_of(options, "hostaddr"), i);
	if (*ports) {
		buf_puts(&name, ":");
		add_nth(&name, ports, i);
	}
	/* The connection string of a single server, without target_session_attrs. */
	for (const PQconninfoOption *o = options; o->keyword; o++) {
		bool list = !strcmp(o->keyword, "host") || !strcmp(o->keyword, "hostaddr") ||
			!strcmp(o->keyword, "port");
		struct buf one = {0};

		if (!o->val || !*o->val || !strcmp(o->keyword, "target_session_attrs"))
			continue;
		buf_puts(&one, "");
		if (list)
			add_nth(&one, o->val, i);
		else
			buf_puts(&one, o->val);
		if (one.failed)
			conninfo.failed = true;
		else if (one.len)
			add_option(&conninfo, o->keyword, one.data);
		buf_free(&one);
	}
	if (name.failed || conninfo.failed || !(h->pool = db_pool_new(conninfo.data, 1, false, no_check, NULL))) {
		buf_free(&name);
		buf_free(&conninfo);
		return -1;
	}
	h->name = name.data;
	h->conninfo = conninfo.data;
	return 0;
}

static unsigned count_servers(const PQconninfoOption *options)
{
	const char *list = value_of(options, *value_of(options, "host") ? "host" : "hostaddr");
	unsigned n = 1;

	while ((list = strchr(list, ','))) {
		list++;
		n++;
	}
	return n;
}

/* --- checks --- */

/* A standby's timeline is its primary's and not compared. */
#define TIMELINE "CASE WHEN pg_is_in_recovery() THEN '0' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END"
#define QUERY_SERVER "SELECT " TIMELINE ", system_identifier FROM pg_control_system()"

/* The lock is held. */
static int find_split(struct pg_servers *s, const struct pg_server *found, struct err *e)
{
	const struct pg_server *primary = NULL, *any = NULL;

	for (const struct pg_server *h = found; h < found + s->n; h++) {
		if (!h->reached)
			continue;
		if (any && strcmp(any->system, h->system))
			return err_set(e, "PostgreSQL at %s and at %s are different database systems (identifiers %s"
					  " and %s); correct Database=", any->name, h->name, any->system, h->system);
		any = h;
		if (h->primary && primary)
			return err_set(e, "PostgreSQL has two primaries, %s (timeline %u) and %s (timeline %u): stop"
					  " the replaced one", primary->name, primary->timeline, h->name, h->timeline);
		primary = h->primary ? h : primary;
	}
	if (!primary)
		return 0;
	/* Another database system: timelines of the former one do not apply. */
	if (strcmp(s->system, primary->system))
		s->latest = 0;
	if (primary->timeline < s->latest)
		return err_set(e, "PostgreSQL at %s is primary on timeline %u, but %s was on the later timeline %u:"
				  " stop the replaced one; if this one is to stay, restart topiaryd", primary->name,
				       primary->timeline, s->latest_host, s->latest);
	s->latest = primary->timeline;
	snprintf(s->latest_host, sizeof(s->latest_host), "%s", primary->name);
	snprintf(s->system, sizeof(s->system), "%s", primary->system);
	return 0;
}

static void query_servers(struct pg_servers *s)
{
	struct pg_server *found = calloc(s->n, sizeof(*found));
	struct err e = {0};
	bool began;

	if (!found)
		return;
	for (unsigned i = 0; i < s->n; i++) {
		found[i] = s->all[i];
		struct db *db = db_acquire(found[i].pool, NULL);
		PGresult *r = db && db_limit(db, REPLY_SECONDS, NULL) == 0 ? db_query(db, NULL, QUERY_SERVER, 0, NULL) :
			NULL;

		found[i].reached = r != NULL;
		found[i].primary = false;
		if (r) {
			found[i].timeline = strtoul(PQgetvalue(r, 0, 0), NULL, 16);
			found[i].primary = found[i].timeline > 0;
			snprintf(found[i].system, sizeof(found[i].system), "%s", PQgetvalue(r, 0, 1));
		}
		PQclear(r);
		db_release(db);
	}
	pthread_mutex_lock(&s->background.lock);
	memcpy(s->all, found, s->n * sizeof(*found));
	if (find_split(s, found, &e) == 0)
		*e.text = '\0';
	began = *e.text && !*s->split;
	if (began)
		log_error("%s; exports are refused until then", e.text);
	else if (*s->split && !*e.text)
		log_info("PostgreSQL has a single primary again: %s", s->latest_host);
	snprintf(s->split, sizeof(s->split), "%s", e.text);
	pthread_mutex_unlock(&s->background.lock);
	if (began)
		s->on_split(s->user);
	free(found);
}

static void *pg_servers_thread(void *user)
{
	struct pg_servers *s = user;

	while (background_pause(&s->background, clock_now() + INTERVAL))
		query_servers(s);
	return NULL;
}

/* --- interface --- */

struct pg_servers *pg_servers_start(const char *conninfo, void (*on_split)(void *user), void *user, struct err *e)
{
	PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
	unsigned n = options ? count_servers(options) : 0;
	struct pg_servers *s = options ? calloc(1, sizeof(*s) + n * sizeof(s->all[0])) : NULL;
	bool failed = !s;

	if (failed) {
		err_set(e, "out of memory");
		goto done;
	}
	s->on_split = on_split;
	s->user = user;
	/* With one server there is nothing to compare. */
	for (; n > 1 && s->n < n && !failed; s->n++)
		failed = server_init(&s->all[s->n], options, s->n) != 0;
	if (failed) {
		err_set(e, "out of memory");
	} else if (s->n) {
		s->background = (struct background){ .lock = PTHREAD_MUTEX_INITIALIZER };
		query_servers(s);
		failed = background_start(&s->background, pg_servers_thread, s, "the servers", e) != 0;
	}
	if (failed) {
		pg_servers_stop(s);
		s = NULL;
	}
done:
	PQconninfoFree(options);
	return s;
}

void pg_servers_stop(struct pg_servers *s)
{
	if (!s)
		return;
	background_stop(&s->background);
	for (unsigned i = 0; i < s->n; i++) {
		db_pool_free(s->all[i].pool);
		free(s->all[i].conninfo);
		free(s->all[i].name);
	}
	free(s);
}

int pg_servers_check(struct pg_servers *s, struct db *db, struct err *e)
{
	char timeline[DB_KEY];
	int rc = 0;

	if (!s || !s->n)
		return 0;
	if (db_query_key(db, timeline, e, "SELECT " TIMELINE, 0, NULL) < 0)
		return -1;
	pthread_mutex_lock(&s->background.lock);
	if (*s->split)
		rc = err_set(e, "%s", s->split);
	else if (strtoul(timeline, NULL, 16) < s->latest)
		rc = err_set(e, "PostgreSQL: this server is on timeline %lu, but the primary %s is on timeline %u",
			     strtoul(timeline, NULL, 16), s->latest_host, s->latest);
	pthread_mutex_unlock(&s->background.lock);
	return rc;
}

bool pg_servers_split(struct pg_servers *s)
{
	bool split;

	if (!s->n)
		return false;
	pthread_mutex_lock(&s->background.lock);
	split = *s->split;
	pthread_mutex_unlock(&s->background.lock);
	return split;
}

const char *pg_servers_state(struct pg_servers *s, unsigned i, bool *primary, bool *reached)
{
	if (i >= s->n)
		return NULL;
	pthread_mutex_lock(&s->background.lock);
	*primary = s->all[i].primary;
	*reached = s->all[i].reached;
	pthread_mutex_unlock(&s->background.lock);
	return s->all[i].name;
}
