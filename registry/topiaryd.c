/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <argp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/log.h"
#include "server.h"

#define DATABASE_CONNECTIONS 6

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
	if ((s->publisher = publisher_start(s->pool, s->settings.snapshot_file, e)) &&
	    (server = server_start(s, s->settings.listen, e))) {
		log_info("serving on %s", s->settings.listen);
		rc = wait_for_end(&signals, s->parser, e);
	}
	server_stop(server);
	publisher_stop(s->publisher);
	parser_stop(s->parser);
	return rc;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct service s = {0};
	struct err e = {0};
	int rc;

	log_open("topiaryd");
	signal(SIGPIPE, SIG_IGN);
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	if (settings_load(o.config, &s.settings, &e)) {
		log_error("%s", e.text);
		return EXIT_FAILURE;
	}
	s.pool = db_pool_new(s.settings.database, s.settings.schema_dir, DATABASE_CONNECTIONS);
	if (!s.pool)
		rc = err_set(&e, "out of memory");
	else
		rc = o.migrate ? migrate_only(s.pool, &e) : serve(&s, &e);
	if (rc)
		log_error("%s", e.text);
	db_pool_free(s.pool);
	settings_free(&s.settings);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
