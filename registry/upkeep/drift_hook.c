/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "upkeep_steps.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/settings_here.h"

/*
 * Notes
 *
 * A step of upkeep: its thread alone. No transaction is open while a hook runs; a row that changed meanwhile is
 * reported again.
 */
#define TRIES "3"
#define HOOK_SECONDS 30
#define RUN_SECONDS 60	/* for all hooks of one run, so that other steps get their turn */
#define TICK 50			/* milliseconds between two checks whether it exited */
#define OUTPUT_MAX 1024		/* bytes of its output that are logged */
#define BATCH "32"

enum { NODE, SEVERITY, CLASS, CHANGES, VERSION };

/* --- the program --- */

/* The changes as a file positioned at its start: a pipe would block on a hook that does not read. */
static int hook_input(const char *changes)
{
	int fd = memfd_create("changes", MFD_CLOEXEC);

	if (fd >= 0 && (file_write(fd, changes, strlen(changes)) || lseek(fd, 0, SEEK_SET))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int hook_spawn(const char *path, char *const argv[], char *const env[], int input, int output, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
	posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	posix_spawn_file_actions_addchdir_np(&files, "/");
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	rc = posix_spawn(pid, path, &files, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return rc;
}

/* Reads its output, of which the first OUTPUT_MAX bytes are kept. */
static void hook_read_output(int fd, struct buf *output)
{
	char chunk[512];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		if (output->len < OUTPUT_MAX)
			buf_add(output, chunk, MIN((size_t) n, OUTPUT_MAX - output->len));
}

/* Its wait status, after at most HOOK_SECONDS; -1 when topiaryd stopped first. */
static int hook_wait(const struct upkeep_run *p, pid_t pid, int fd, struct buf *output_text)
{
	double late = clock_now() + HOOK_SECONDS;
	bool killed = false, cut = false;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		struct pollfd f = { .fd = fd, .events = POLLIN };

		/* A closed pipe is always ready: then only the time is awaited. */
		if (poll(&f, 1, TICK) > 0 && !(f.revents & POLLIN))
			poll(NULL, 0, TICK);
		hook_read_output(fd, output_text);
		cut = cut || !upkeep_continues(p);
		if (!killed && (cut || clock_now() >= late)) {
			kill(-pid, SIGKILL);
			killed = true;
		}
	}
	hook_read_output(fd, output_text);
	return cut ? -1 : status;
}

/* 0, 1 when topiaryd stops, -1. */
static int hook_run(const struct upkeep_run *p, const PGresult *r, int row, struct err *e)
{
	char *node = PQgetvalue(r, row, NODE), *severity = PQgetvalue(r, row, SEVERITY);
	char *argv[] = { p->settings->drift_hook, node, severity, NULL };
	char env_node[300], env_severity[64], env_class[64];
	char *env[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", env_node, env_severity,
			env_class, NULL };
	int input = hook_input(PQgetvalue(r, row, CHANGES)), output[2], rc, status;
	struct buf output_text = {0};
	pid_t pid;

	if (input < 0)
		return err_set(e, "cannot create its input: out of memory");
	if (pipe2(output, O_CLOEXEC | O_NONBLOCK)) {
		close(input);
		return err_set(e, "cannot create a pipe for its output: %s", strerror(errno));
	}
	snprintf(env_node, sizeof(env_node), "TOPIARY_NODE=%s", node);
	snprintf(env_severity, sizeof(env_severity), "TOPIARY_SEVERITY=%s", severity);
	snprintf(env_class, sizeof(env_class), "TOPIARY_CLASS=%s", PQgetvalue(r, row, CLASS));
	rc = hook_spawn(argv[0], argv, env, input, output[1], &pid);
	close(input);
	close(output[1]);
	if (rc) {
		rc = err_set(e, "%s", strerror(rc));
	} else {
		status = hook_wait(p, pid, output[0], &output_text);
		while (output_text.len && output_text.data[output_text.len - 1] == '\n')
			output_text.data[--output_text.len] = '\0';
		for (size_t i = 0; i < output_text.len; i++)
			if ((unsigned char) output_text.data[i] < ' ' || (unsigned char) output_text.data[i] > '~')
				output_text.data[i] = ' ';
		if (output_text.len && !output_text.failed)
			log_info("%s: drift hook: %s", node, output_text.data);
		if (status == -1)
			rc = 1;
		else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			rc = err_set(e, "killed (time limit: %d s)", HOOK_SECONDS);
		else if (WIFSIGNALED(status))
			rc = err_set(e, "terminated by signal %d", WTERMSIG(status));
		else if (WEXITSTATUS(status))
			rc = err_set(e, "exit status %d", WEXITSTATUS(status));
	}
	close(output[0]);
	buf_free(&output_text);
	return rc;
}

/* --- the tables drift and slow_node --- */

/*
 * A batch of those never tried ($1), or of those that failed. Drift of a node's very first export waits for a full run
 * ($2): the baseline vote may find that the node is right and its baseline wrong.
 */
#define UNREPORTED(table, is_due) "SELECT d.node, d.severity, 'c' || b.class, d.changes::text, d.xmin::text FROM " \
	table " d JOIN node n ON n.name = d.node JOIN layout f ON f.id = n.layout JOIN base b ON b.id = f.base" \
	" WHERE NOT d.reported AND (d.tries = 0) = $1::bool AND ($2::bool OR " is_due ")" \
	" ORDER BY array_position('{capacity,slow,wiring,cosmetic}'::text[], d.severity), d.since, d.node LIMIT " BATCH
/* The row's version is compared: a node that changed while the hook ran is reported again. */
#define TOLD(table) "UPDATE " table " SET reported = true, tries = 0 WHERE node = $1 AND xmin::text = $2" \
	" RETURNING reported"
#define FAILED(table) "UPDATE " table " SET reported = tries + 1 >= " TRIES ", tries = (tries + 1) % " TRIES \
	" WHERE node = $1 AND xmin::text = $2 RETURNING reported"
#define SKIPPED(table) "UPDATE " table " SET reported = true WHERE NOT reported"

static const struct drift_table {
	const char *unreported, *told, *failed, *skipped;
} tables[] = {
	{ UNREPORTED("drift", "EXISTS (SELECT 1 FROM past o WHERE o.node = d.node)"), TOLD("drift"), FAILED("drift"),
	  SKIPPED("drift") },
	{ UNREPORTED("slow_node", "true"), TOLD("slow_node"), FAILED("slow_node"),
	  SKIPPED("slow_node") },
};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

static int record_result(struct upkeep_run *p, const struct drift_table *t, const PGresult *r, int row, int failed,
			 const struct err *why, struct err *e)
{
	const char *node = PQgetvalue(r, row, NODE);
	PGresult *noted = db_query(p->db, e, failed ? t->failed : t->told, 2,
				   (struct db_value[]){ DB_TEXT(node), DB_TEXT(PQgetvalue(r, row, VERSION)) });
	bool exhausted = noted && PQntuples(noted) && *PQgetvalue(noted, 0, 0) == 't';

	PQclear(noted);
	if (failed)
		log_error("%s: drift hook %s: %s; %s", node, p->settings->drift_hook, why->text,
			  exhausted ? "not retried" : "will be retried");
	return noted ? 0 : -1;
}

/* The number of rows, or -1. */
static int run_batch(struct upkeep_run *p, const struct drift_table *t, const char *fresh, double until, struct err *e)
{
	PGresult *r = db_query(p->db, e, t->unreported, 2,
			       (struct db_value[]){ DB_TEXT(fresh), DB_TEXT(p->full ? "t" : "f") });
	int rows = r ? PQntuples(r) : -1, rc = rows;

	for (int i = 0; i < rows && rc == rows; i++) {
		struct err why;
		int ran;

		if (clock_now() >= until) {
			p->unfinished = true;
			rc = 0;
		} else if ((ran = hook_run(p, r, i, &why)) > 0) {
			rc = 0;
		} else if (record_result(p, t, r, i, ran, &why, e)) {
			rc = -1;
		}
	}
	PQclear(r);
	return rc;
}

int drift_hook_run(struct upkeep_run *p, struct err *e)
{
	bool hook = *p->settings->drift_hook;
	double until = clock_now() + RUN_SECONDS;

	if (hook && settings_check_hook(p->settings->drift_hook, geteuid(), e))
		return -1;
	for (size_t i = 0; i < TABLES; i++) {
		int rows;

		/* Without a hook, drift is marked as reported, also for a hook configured later. */
		if (!hook) {
			if (db_execute(p->db, e, tables[i].skipped, 0, NULL))
				return -1;
			continue;
		}
		if (p->full && run_batch(p, &tables[i], "false", until, e) < 0)
			return -1;
		do
			rows = run_batch(p, &tables[i], "true", until, e);
		while (rows > 0 && upkeep_continues(p));
		if (rows < 0)
			return -1;
	}
	return 0;
}
