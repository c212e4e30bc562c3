/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <malloc.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/cmd_line.h"
#include "base/log.h"
#include "base/settings_here.h"
#include "ingest/gate.h"
#include "http/pg_servers.h"
#include "store/identity.h"
#include "http/readiness.h"
#include "http/server.h"
#include "upkeep/upkeep.h"

/*
 * Notes
 *
 * The main thread starts everything in the order of dependencies, waits for a signal and stops it in the reverse order.
 * struct service is filled before the threads that read it start; what changes later has a lock of its own. The
 * parser's parent is forked first, while there is one thread and no connection.
 */
#define COMMITTERS 2
#define CONNECTIONS 8		/* committers, encoding, the publisher and upkeep */
#define READERS 4		/* for one node */
#define LISTS 4			/* for lists: as many processors of PostgreSQL may be busy with them */
#define CHECKS 2		/* of health */
#define BASES_AT_HAND 128
#define DOCUMENTS_PER_CPU 4	/* in progress: they wait for PostgreSQL and the parser, too */

/* Declared by libc. */
__attribute__((visibility("default"))) const char *argp_program_version = "topiaryd " TOPIARY_VERSION;

struct args {
	const char *config;
	bool migrate, verbose;
};

static const struct cmd_option options[] = {
	{ "config", 'c', "FILE", CMD_TEXT(config), "Read FILE instead of the default topiary.conf" },
	{ "verbose", 'v', NULL, CMD_FLAG(verbose), "Log at level debug, whatever LogLevel is" },
	{ "migrate", 'm', NULL, CMD_FLAG(migrate), "Apply missing migrations to the database and exit" },
	{0},
};

static const struct cmd_syntax syntax = {
	.options = options, .help = "Registry of the nodes' hardware topologies.",
};

static int prepare_writer(struct db *db, void *user, struct err *e)
{
	const struct service *s = user;

	return pg_servers_check(s->hosts, db, e) || identity_check(s->identity, db, false, e) ? -1 : 0;
}

static int prepare_reader(struct db *db, void *user, struct err *e)
{
	const struct service *s = user;

	return identity_check(s->identity, db, true, e);
}

/* Open connections go to the wrong server, or to a database that is gone. */
static void invalidate_connections(void *user)
{
	const struct service *s = user;

	db_pool_invalidate(s->pool);
	db_pool_invalidate(s->readers);
	db_pool_invalidate(s->lists);
	db_pool_invalidate(s->checks);
	if (s->read_checks)
		db_pool_invalidate(s->read_checks);
}

/* Nothing is connected yet. */
static int pools_new(struct service *s, struct err *e)
{
	const char *database = s->settings.database,
		*read = *s->settings.read_database ? s->settings.read_database : database;

	if (db_conninfo_check("Database", database, e) || db_conninfo_check("ReadDatabase", read, e) ||
	    !(s->migrations = migrations_load(s->settings.schema_dir, e)))
		return -1;
	if (!(s->bases = bases_new(BASES_AT_HAND)) ||
	    !(s->identity = identity_new(s->migrations, s->bases, *s->settings.read_database, invalidate_connections,
				     s)) ||
	    !(s->pool = db_pool_new(database, CONNECTIONS, true, prepare_writer, s)) ||
	    !(s->readers = db_pool_new(read, READERS, false, prepare_reader, s)) ||
	    !(s->lists = db_pool_new(read, LISTS, false, prepare_reader, s)) ||
	    !(s->checks = db_pool_new(database, CHECKS, true, prepare_writer, s)) ||
	    (read != database && !(s->read_checks = db_pool_new(read, 1, false, prepare_reader, s))))
		return err_set(e, "out of memory");
	return 0;
}

/* Acquiring a connection applies the missing migrations. */
static int update_schema(struct db_pool *pool, struct err *e)
{
	struct db *db = db_acquire(pool, e);

	db_release(db);
	return db ? 0 : -1;
}

/* An incompatible schema is fatal. A PostgreSQL that is not up yet is waited for. */
static int try_database(const struct service *s, struct db_pool *pool, const char *setting, const char *requests,
			struct err *e)
{
	if (update_schema(pool, e) == 0)
		return 0;
	if (migrations_refused(s->migrations))
		return -1;
	log_warning("%s: %s; %s are answered with 503, and topiaryd tries again", setting, e->text, requests);
	return 0;
}

static int open_databases(const struct service *s, struct err *e)
{
	bool both = s->read_checks;

	return try_database(s, s->pool, "Database", both ? "exports" : "exports and reads", e) ||
	       (both && try_database(s, s->read_checks, "ReadDatabase", "reads", e)) ? -1 : 0;
}

static void warn(void *, const char *finding)
{
	log_warning("topiary.conf: %s", finding);
}

/* In the order of their dependencies. */
static int service_start(struct service *s, struct err *e)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!(s->verified = verified_cache_new()) ||
	    !(s->gate = gate_new(DOCUMENTS_PER_CPU * (cpus > 0 ? cpus : 1), s->settings.storm_rate)))
		return err_set(e, "out of memory");
	if (!(s->committer = committer_start(s->pool, &s->settings, s->bases, s->verified, COMMITTERS, e)) ||
	    !(s->publisher = publisher_start(s->pool, &s->settings, e)) ||
	    !(s->upkeep = upkeep_start(&s->settings, s->pool, s->bases, s->parser, s->publisher, e)) ||
	    !(s->readiness = readiness_start(s, e)))
		return -1;
	return 0;
}

/* systemd waits for it, as for sd_notify(3): its socket has a path, or with @ an abstract name. */
static void notify_ready(void)
{
	static const char state[] = "READY=1";
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (!len || len > sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, len);
	if (*path == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, state, sizeof(state) - 1, 0, (const struct sockaddr *) &to,
			     offsetof(struct sockaddr_un, sun_path) + len) < 0)
		log_warning("NOTIFY_SOCKET=%s: %s; systemd does not know that topiaryd is ready", path,
			    strerror(errno));
	if (fd >= 0)
		close(fd);
}

static int service_run(struct service *s, struct err *e)
{
	struct server *server = NULL;
	sigset_t signals;
	int rc = -1;

	/* Forked while there is one thread and no connection. */
	if (!(s->parser = parser_start(e)))
		return -1;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	/* What can be refused is checked before the database or a file is changed. */
	if ((server = server_open(s, e)) &&
	    (s->hosts = pg_servers_start(s->settings.database, invalidate_connections, s, e)) &&
	    open_databases(s, e) == 0 && service_start(s, e) == 0 && server_start(server, e) == 0) {
		int signal;

		log_info("listening on %s", s->settings.listen);
		notify_ready();
		/* Not before: names of hosts may take seconds. */
		settings_check_here(&s->settings, geteuid(), warn, NULL);
		/*
		 * Wait for SIGTERM or SIGINT: 0, or -1 when the parser ended instead, without which no export can be
		 * parsed.
		 */
		do {
			signal = sigwaitinfo(&signals, NULL);
			if (signal == SIGHUP)
				log_warning("SIGHUP ignored: restart topiaryd to apply changes of topiary.conf");
		} while (signal < 0 || signal == SIGHUP ||
			 (signal == SIGCHLD && waitpid(parser_pid(s->parser), NULL, WNOHANG) == 0));
		rc = signal == SIGCHLD ? err_set(e, "the parser process ended unexpectedly; restart topiaryd") : 0;
		if (!rc)
			server_drain(server);
	}
	server_stop(server);
	readiness_stop(s->readiness);
	upkeep_stop(s->upkeep);
	publisher_stop(s->publisher);
	committer_stop(s->committer);
	gate_free(s->gate);
	verified_cache_free(s->verified);
	parser_stop(s->parser);
	pg_servers_stop(s->hosts);
	return rc;
}

int main(int argc, char **argv)
{
	struct args o = {0};
	struct service s = {0};
	struct err e = {0};
	int rc;

	log_open("topiaryd");
	/*
	 * Hundreds of documents a second are allocated and freed: keep their pages instead of mapping and clearing them
	 * each time.
	 */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	mallopt(M_ARENA_MAX, 4);
	signal(SIGPIPE, SIG_IGN);
	cmd_line_parse(&syntax, &o, NULL, NULL, argc, argv);
	if (settings_load_named(o.config, &s.settings, &e)) {
		log_error("%s", e.text);
		return EXIT_FAILURE;
	}
	log_set_level(o.verbose ? "debug" : s.settings.log_level);
	if (pools_new(&s, &e))
		rc = -1;
	else
		rc = o.migrate ? update_schema(s.pool, &e) : service_run(&s, &e);
	if (rc)
		log_error("%s", e.text);
	db_pool_free(s.read_checks);
	db_pool_free(s.checks);
	db_pool_free(s.lists);
	db_pool_free(s.readers);
	db_pool_free(s.pool);
	identity_free(s.identity);
	bases_free(s.bases);
	migrations_free(s.migrations);
	settings_free(&s.settings);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
