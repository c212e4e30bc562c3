/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <slurm/slurm.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/printable.h"
#include "granted_gpus.h"
#include "monitor/ask.h"
#include "monitor/events.h"
#include "options.h"
#include "run_dir.h"
#include "step.h"
#include "step_end.h"
#include "task_env.h"
#include "task_lines.h"

#define DONE_SECONDS 1.0	/* for topiary-monitor to complete the trace */
#define COPY_SECONDS 10		/* Slurm drains a node whose steps do not end */
#define FIRST_NS 100000		/* the pauses meanwhile double, as it mostly answers at once */
#define LAST_NS 2000000
#define MAX_OUTPUT 512

static struct {
	bool is_asked;			/* ASK_FILE is there, and asks for a trace */
	uint32_t tasks, ended;		/* of the step on this node */
	uint32_t nodes;			/* of the step */
	char cores[4096];		/* of the step on this node, as Slurm lists them */
	char folder[PATH_MAX];		/* where the trace goes: the user's word */
} monitor;

static int ask_link(spank_t sp, struct err *e)
{
	struct monitor_ask ask = { .uid = step.user.uid, .request = options.monitor };
	struct buf text = {0};
	int fd = run_dir_file(step.dir, e), rc = -1;

	if (fd < 0)
		return -1;
	if (monitor_set_has(ask.request.set, "gpu"))
		granted_gpus(sp, ask.gpus, sizeof(ask.gpus));
	monitor_ask_write(&ask, &text);
	if (text.failed || file_write(fd, text.data, text.len))
		err_set(e, ASK_FILE ": %s", strerror(errno));
	else
		rc = run_dir_link(fd, step.dir, ASK_FILE, e);
	buf_free(&text);
	close(fd);
	return rc;
}

/* topiary-JOB.STEP in the directory the job was submitted from. False if Slurm does not tell it. */
static bool folder_name(spank_t sp)
{
	char from[PATH_MAX - 64];

	if (spank_getenv(sp, "SLURM_SUBMIT_DIR", from, sizeof(from)) || *from != '/')
		return false;
	snprintf(monitor.folder, sizeof(monitor.folder), "%s/topiary-%s", from, step.name);
	return true;
}

/* Beside the trace to come. A program with libtopiary_phase creates folder and file, as the user. */
static void phases_set(spank_t sp)
{
	char path[PATH_MAX + sizeof(step.node) + 16];

	snprintf(path, sizeof(path), "%s/%s.phases", monitor.folder, step.node);
	task_env_set(sp, "TOPIARY_PHASES", path);
}

/* Only tasks that srun starts itself are known. */
static void tasks_open(spank_t sp)
{
	char *cores = NULL;

	if (step.id >= SLURM_MAX_NORMAL_STEP_ID || step.launcher)
		return;
	if (!spank_get_item(sp, S_STEP_ALLOC_CORES, &cores) && cores)
		snprintf(monitor.cores, sizeof(monitor.cores), "%s", cores);
	if (spank_get_item(sp, S_JOB_NNODES, &monitor.nodes))
		monitor.nodes = 1;
	task_lines_open(monitor.tasks);
}

/* A site's default is not worth a line in each job's output. */
static void report_unrecorded(const char *why)
{
	struct err e;

	err_set(&e, "step %s is not recorded on %s: %s", step.name, step.node, why);
	if (options_set_by_user("topo-monitor"))
		slurm_spank_log("topiary: %s", printable(e.text));
	else
		slurm_debug("topiary: %s", printable(e.text));
}

/* Every step leaves whose it is: of a PU that two users have, topiary-monitor records nothing. */
int monitor_open(spank_t sp, int argc, char **argv)
{
	struct err e;

	(void) argc, (void) argv;
	if (step.dir < 0 || (!step.is_local && !options.monitor.hz))
		return 0;
	spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &monitor.tasks);
	if (!step.is_local) {
		report_unrecorded("its topology describes other hardware than this machine's");
	} else if (options.monitor.hz && !folder_name(sp)) {
		report_unrecorded("Slurm does not tell the directory that the job was submitted from");
	} else if (ask_link(sp, &e)) {
		report_unrecorded(e.text);
	} else if ((monitor.is_asked = options.monitor.hz)) {
		phases_set(sp);
		tasks_open(sp);
	}
	return 0;
}

/* --- after the last task --- */

static int open_file(const char *name)
{
	return openat(step.dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

/* The trace, complete if topiary-monitor answers in time. -1: none was begun. */
static int trace_open_ended(void)
{
	double until = clock_now() + DONE_SECONDS;
	long pause = FIRST_NS;
	int fd = -1;

	unlinkat(step.dir, ASK_FILE, 0);
	while ((fd = open_file(ASK_DONE)) < 0 && !faccessat(step.dir, ASK_TRACE, F_OK, AT_SYMLINK_NOFOLLOW) &&
	       clock_now() < until) {
		nanosleep(&(struct timespec){ 0, pause }, NULL);
		pause = pause < LAST_NS / 2 ? 2 * pause : LAST_NS;
	}
	/* topiary-monitor may rename it just now: in this order one of them is found. */
	if (fd < 0 && (fd = open_file(ASK_TRACE)) < 0)
		fd = open_file(ASK_DONE);
	return fd;
}

static int fail(int fd, const char *what)
{
	dprintf(fd, "%s: %s", what, strerror(errno));
	return 1;
}

/* NODE and what it ends in: no link is followed, and no pipe waited for. */
static int file_create(int folder, const char *end, char *name, size_t size)
{
	snprintf(name, size, "%s%s", step.node, end);
	return openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
}

/* What fits on a full disk stays, but no empty file. */
static int fail_file(int fd, int folder, const char *name, int to)
{
	fail(fd, name);
	if (to >= 0 && lseek(to, 0, SEEK_CUR) == 0)
		unlinkat(folder, name, 0);
	return 1;
}

static int trace_write(int fd, int folder, int from)
{
	char name[sizeof(step.node) + 8];
	int to = file_create(folder, ".trace", name, sizeof(name));
	ssize_t n = to < 0 ? -1 : 1;

	while (n > 0)
		n = sendfile(to, from, NULL, 1 << 20);
	return n < 0 || close(to) ? fail_file(fd, folder, name, to) : 0;
}

static void tasks_format(struct buf *out)
{
	json_t *head = json_pack("{s:i, s:s, s:s, s:I, s:s, s:s*}", "tasks", 1, "step", step.name, "node", step.node,
				 "nodes", (json_int_t) monitor.nodes, "cores", monitor.cores, "capture",
				 *options.capture ? options.capture : NULL);
	char *text = head ? json_dumps(head, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	if (text)
		buf_printf(out, "%s\n", text);
	if (text)
		task_lines_add(out);
	free(text);
	json_decref(head);
}

static int tasks_write(int fd, int folder)
{
	char name[sizeof(step.node) + 8];
	struct buf text = {0};
	int to, rc = 0;

	tasks_format(&text);
	if (text.len && !text.failed)
		rc = (to = file_create(folder, ".tasks", name, sizeof(name))) < 0 ||
			file_write(to, text.data, text.len) || close(to) ? fail_file(fd, folder, name, to) : 0;
	buf_free(&text);
	return rc;
}

/* As the user, who may have made the path lead anywhere. */
static int copy_child(int fd, void *arg)
{
	int from = *(int *) arg, folder;
	struct err e;

	if (user_become(&step.user) || user_confine(&step.user, NULL))
		return fail(fd, "dropping root's rights");
	child_keep((int[]){ fd, from, -1 });
	if (mkdir(monitor.folder, 0755) && errno != EEXIST)
		return fail(fd, monitor.folder);
	if ((folder = user_open_directory(&step.user, monitor.folder, &e)) < 0) {
		dprintf(fd, "%s", e.text);
		return 1;
	}
	if (from >= 0 && trace_write(fd, folder, from))
		return 1;
	return task_lines_are_open() ? tasks_write(fd, folder) : 0;
}

/* from: the trace, or -1. */
static void files_write(int from)
{
	struct buf said = {0};
	struct err e;
	int rc = child_run(copy_child, &from, COPY_SECONDS, MAX_OUTPUT, &said, &e);

	if (rc > 0)
		err_set(&e, "%s", said.len ? said.data : "the copying process failed without a message");
	if (rc)
		slurm_spank_log("topiary: step %s: the trace of %s was not written to %s: %s", step.name, step.node,
				printable(monitor.folder), printable(e.text));
	buf_free(&said);
}

int monitor_close(spank_t sp, int argc, char **argv)
{
	int fd;

	(void) sp, (void) argc, (void) argv;
	if (!monitor.is_asked || step.owner != getpid())
		return 0;
	monitor.is_asked = false;
	if ((fd = trace_open_ended()) < 0)
		report_unrecorded("topiary-monitor did not begin a trace; does it run there?");
	/* Where nobody asked, and nothing was recorded, a folder would be a surprise. */
	if (fd >= 0 || options_set_by_user("topo-monitor"))
		files_write(fd);
	/* A script that ran steps by srun: they had theirs, and its own trace is of the same cores. */
	if (fd >= 0 && step.id == SLURM_BATCH_SCRIPT &&
	    faccessat(step.dir, STEP_SRUN_MARK, F_OK, AT_SYMLINK_NOFOLLOW))
		step_end_run(step.name, monitor.folder, &options.monitor, true, options_set_by_user("topo-monitor"));
	if (fd >= 0)
		close(fd);
	return 0;
}

int monitor_task_exit(spank_t sp, int argc, char **argv)
{
	return ++monitor.ended == monitor.tasks ? monitor_close(sp, argc, argv) : 0;
}
