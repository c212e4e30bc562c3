/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "herald.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

#define TRIES "3"
#define HOOK_SECONDS 30
#define SHIFT_SECONDS 60	/* of one run, so that other steps have their turn */
#define TICK 50			/* milliseconds between two looks at whether it ended */
#define OUTPUT_MAX 1024		/* bytes of what it printed that are logged */
#define BATCH "32"

enum { NODE, SEVERITY, CLASS, CHANGES, VERSION };

/* --- the program --- */

/* A program that somebody else may write runs whatever they like as topiaryd. */
static int hook_check(const char *path, struct err *e)
{
	struct stat st;

	if (*path != '/')
		return err_set(e, "%s: the path must be absolute", path);
	if (stat(path, &st))
		return err_set(e, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, "%s: no regular file", path);
	if (st.st_mode & (S_IWGRP | S_IWOTH) || (st.st_uid && st.st_uid != geteuid()))
		return err_set(e, "%s: others than root and topiaryd's user may write it", path);
	return 0;
}

/* The changes, to be read from the start: a file, because a pipe would wait for a hook that does not read. */
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

/* Take what it printed, of which the first OUTPUT_MAX bytes are kept. */
static void hook_listen(int fd, struct buf *said)
{
	char chunk[512];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		if (said->len < OUTPUT_MAX)
			buf_add(said, chunk, (size_t) n < OUTPUT_MAX - said->len ? (size_t) n : OUTPUT_MAX - said->len);
}

/* Its exit status as waitpid has it, after at most HOOK_SECONDS; -1 when topiaryd ended first. */
static int hook_wait(const struct pass *p, pid_t pid, int fd, struct buf *said)
{
	time_t late = time(NULL) + HOOK_SECONDS;
	bool killed = false, cut = false;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		struct pollfd f = { .fd = fd, .events = POLLIN };

		/* A pipe that was closed is always ready: then only the time is waited for. */
		if (poll(&f, 1, TICK) > 0 && !(f.revents & POLLIN))
			poll(NULL, 0, TICK);
		hook_listen(fd, said);
		cut = cut || !pass_goes_on(p);
		if (!killed && (cut || time(NULL) >= late)) {
			kill(-pid, SIGKILL);
			killed = true;
		}
	}
	hook_listen(fd, said);
	return cut ? -1 : status;
}

static void log_said(const char *node, struct buf *said)
{
	while (said->len && said->data[said->len - 1] == '\n')
		said->data[--said->len] = '\0';
	for (size_t i = 0; i < said->len; i++)
		if ((unsigned char) said->data[i] < ' ' || (unsigned char) said->data[i] > '~')
			said->data[i] = ' ';
	if (said->len && !said->failed)
		log_info("%s: the drift hook: %s", node, said->data);
}

static int hook_verdict(int status, struct err *e)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return err_set(e, "killed, after %d s if it was for taking too long", HOOK_SECONDS);
	if (WIFSIGNALED(status))
		return err_set(e, "ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status) ? err_set(e, "exit status %d", WEXITSTATUS(status)) : 0;
}

/* 0, 1 when topiaryd ends, -1. */
static int hook_run(const struct pass *p, const PGresult *r, int row, struct err *e)
{
	char *node = PQgetvalue(r, row, NODE), *severity = PQgetvalue(r, row, SEVERITY);
	char *argv[] = { p->settings->drift_hook, node, severity, NULL };
	char env_node[300], env_severity[64], env_class[64];
	char *env[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", env_node, env_severity, env_class, NULL };
	int input = hook_input(PQgetvalue(r, row, CHANGES)), output[2], rc, status;
	struct buf said = {0};
	pid_t pid;

	if (input < 0)
		return err_set(e, "no memory for what it is to read");
	if (pipe2(output, O_CLOEXEC | O_NONBLOCK)) {
		close(input);
		return err_set(e, "no pipe for what it prints: %s", strerror(errno));
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
		status = hook_wait(p, pid, output[0], &said);
		log_said(node, &said);
		rc = status == -1 ? 1 : hook_verdict(status, e);
	}
	close(output[0]);
	buf_free(&said);
	return rc;
}

/* --- the rows --- */

/* The version is compared: a node that changed again while the hook ran is told of again. */
#define TOLD "UPDATE drift SET told = true, tries = 0 WHERE node = $1 AND xmin::text = $2 RETURNING told"
#define FAILED "UPDATE drift SET told = tries + 1 >= " TRIES ", tries = (tries + 1) % " TRIES \
	" WHERE node = $1 AND xmin::text = $2 RETURNING told"

static int note(struct pass *p, const PGresult *r, int row, int failed, const struct err *why, struct err *e)
{
	const char *node = PQgetvalue(r, row, NODE);
	PGresult *noted = db_query(p->db, e, failed ? FAILED : TOLD, 2,
				   (struct db_value[]){ DB_TEXT(node), DB_TEXT(PQgetvalue(r, row, VERSION)) });
	bool over = noted && PQntuples(noted) && *PQgetvalue(noted, 0, 0) == 't';

	PQclear(noted);
	if (failed)
		log_error("%s: the drift hook %s: %s; %s", node, p->settings->drift_hook, why->text,
			  over ? "given up" : "to be run again");
	return noted ? 0 : -1;
}

/*
 * A batch of those that were never tried, or of those that failed. What a node drifts by at its first export is told at a full pass
 * only: it may be found there that the node is right, and what it was compared with is not. The number of rows, -1.
 */
static int tell_some(struct pass *p, const char *fresh, time_t until, struct err *e)
{
	PGresult *r = db_query(p->db, e, "SELECT d.node, d.severity, 'c' || b.class, d.changes::text, d.xmin::text FROM drift d"
			       " JOIN node n ON n.name = d.node JOIN form f ON f.id = n.form JOIN base b ON b.id = f.base"
			       " WHERE NOT d.told AND (d.tries = 0) = $1::bool"
			       " AND ($2::bool OR EXISTS (SELECT 1 FROM past o WHERE o.node = d.node))"
			       " ORDER BY array_position('{capacity,wiring,cosmetic}'::text[], d.severity), d.since, d.node"
			       " LIMIT " BATCH, 2, (struct db_value[]){ DB_TEXT(fresh), DB_TEXT(p->full ? "t" : "f") });
	int rows = r ? PQntuples(r) : -1, rc = rows;

	for (int i = 0; i < rows && rc == rows; i++) {
		struct err why;
		int ran;

		if (time(NULL) >= until) {
			p->unfinished = true;
			rc = 0;
		} else if ((ran = hook_run(p, r, i, &why)) > 0) {
			rc = 0;
		} else if (note(p, r, i, ran, &why, e)) {
			rc = -1;
		}
	}
	PQclear(r);
	return rc;
}

/* Without a hook nobody waits to be told, also not when there is one some day. */
static int tell_nobody(struct pass *p, struct err *e)
{
	PGresult *r = db_query(p->db, e, "UPDATE drift SET told = true WHERE NOT told", 0, NULL);

	PQclear(r);
	return r ? 0 : -1;
}

int herald_run(struct pass *p, struct err *e)
{
	time_t until = time(NULL) + SHIFT_SECONDS;
	int rows;

	if (!*p->settings->drift_hook)
		return tell_nobody(p, e);
	if (hook_check(p->settings->drift_hook, e))
		return -1;
	if (p->full && tell_some(p, "false", until, e) < 0)
		return -1;
	do
		rows = tell_some(p, "true", until, e);
	while (rows > 0 && pass_goes_on(p));
	return rows < 0 ? -1 : 0;
}
