/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <argp.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "gate.h"
#include "migrate.h"
#include "server.h"
#include "upkeep.h"

#define COMMITTERS 2
#define CONNECTIONS 8		/* committers, placing, the publisher and upkeep */
#define READERS 6
#define BASES_AT_HAND 128
#define DOCUMENTS_PER_CPU 4	/* worked on at once: they wait for PostgreSQL and the parser too */

/* libc looks for it. */
__attribute__((visibility("default"))) const char *argp_program_version = "topiaryd " TOPIARY_VERSION;

struct options {
	const char *config;
	bool migrate;
};

static const struct argp_option option_list[] = {
	{ "config", 'c', "FILE", 0, "Read FILE instead of the usual topiary.conf", 0 },
	{ "migrate", 'm', NULL, 0, "Bring the database's schema up to date and exit", 0 },
	{0},
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'c':
		o->config = value;
		return 0;
	case 'm':
		o->migrate = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is wanted");
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = { option_list, parse_option, NULL, "The registry of the nodes' topologies.", NULL, NULL, NULL };

static int prepare(struct db *db, const void *folder, struct err *e)
{
	return migrate(db, folder, e);
}

/* Taking a connection applies what is missing. */
static int migrate_only(struct db_pool *pool, struct err *e)
{
	struct db *db = db_take(pool, e);

	db_give(pool, db);
	return db ? 0 : -1;
}

/* Wait for the order to end: 0, or -1 when the parser ended instead, without which no export can be read. */
static int wait_for_end(const sigset_t *signals, const struct parser *parser, struct err *e)
{
	int signal;

	do {
		signal = sigwaitinfo(signals, NULL);
	} while (signal < 0 || (signal == SIGCHLD && waitpid(parser_pid(parser), NULL, WNOHANG) == 0));
	return signal == SIGCHLD ? err_set(e, "the parser ended; topiaryd must be started again") : 0;
}

/* What serves needs, in the order of starting; each starts after those that it uses. */
static int start(struct service *s, struct err *e)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!(s->bases = bases_new(BASES_AT_HAND)) ||
	    !(s->gate = gate_new(DOCUMENTS_PER_CPU * (cpus > 0 ? cpus : 1), s->settings.storm_rate)))
		return err_set(e, "out of memory");
	if (!(s->committer = committer_start(s->pool, COMMITTERS, e)) ||
	    !(s->publisher = publisher_start(s->pool, s->settings.snapshot_file, s->settings.fabric_file, e)) ||
	    !(s->upkeep = upkeep_start(&s->settings, s->pool, s->bases, s->parser, e)))
		return -1;
	return 0;
}

static void stop(struct service *s)
{
	upkeep_stop(s->upkeep);
	publisher_stop(s->publisher);
	committer_stop(s->committer);
	gate_free(s->gate);
	bases_free(s->bases);
	parser_stop(s->parser);
}

static int serve(struct service *s, struct err *e)
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
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (start(s, e) == 0 && (server = server_start(s, s->settings.listen, e))) {
		log_info("serving on %s", s->settings.listen);
		rc = wait_for_end(&signals, s->parser, e);
	}
	server_stop(server);
	stop(s);
	return rc;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct service s = {0};
	struct err e = {0};
	int rc;

	log_open("topiaryd");
	/* Documents come and go by the hundred a second: their pages stay, instead of being mapped and cleared for each. */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	mallopt(M_ARENA_MAX, 4);
	signal(SIGPIPE, SIG_IGN);
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	if (settings_load(o.config, &s.settings, &e)) {
		log_error("%s", e.text);
		return EXIT_FAILURE;
	}
	s.pool = db_pool_new(s.settings.database, CONNECTIONS, prepare, s.settings.schema_dir);
	s.readers = db_pool_new(s.settings.database, READERS, prepare, s.settings.schema_dir);
	if (!s.pool || !s.readers)
		rc = err_set(&e, "out of memory");
	else
		rc = o.migrate ? migrate_only(s.pool, &e) : serve(&s, &e);
	if (rc)
		log_error("%s", e.text);
	db_pool_free(s.readers);
	db_pool_free(s.pool);
	settings_free(&s.settings);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
