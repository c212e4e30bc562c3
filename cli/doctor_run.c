/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "doctor.h"

struct probe {
	const char *const *argv; /* or NULL: work */
	int (*work)(const struct doctor *d, struct buf *out, struct err *e);
	const struct doctor *doctor;
};

static void child(const struct probe *p, int to)
{
	struct buf out = { 0 };
	struct err e = { "" };
	int rc;

	setpgid(0, 0);
	if (p->argv) {
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
		dup2(to, STDOUT_FILENO);
		dup2(to, STDERR_FILENO);
		execvp(p->argv[0], (char **) p->argv);
		dprintf(to, "%s: %s", p->argv[0], strerror(errno));
		_exit(127);
	}
	rc = p->work(p->doctor, &out, &e);
	file_write(to, rc ? e.text : out.data, rc ? strlen(e.text) : out.len);
	_exit(rc ? 1 : 0);
}

/* 0 at the end of the output, -1 when the time is over. */
static int collect(int from, struct buf *out)
{
	double until = clock_now() + DOCTOR_SECONDS;

	for (;;) {
		struct pollfd p = { .fd = from, .events = POLLIN };
		double left = until - clock_now();
		char *room;
		ssize_t n;

		if (left <= 0 || poll(&p, 1, 1000 * left + 1) <= 0 || !(room = buf_reserve(out, 65536)))
			return -1;
		if ((n = read(from, room, 65536)) <= 0)
			return 0;
		out->len += n;
		room[n] = '\0';
	}
}

static int run(const struct probe *p, struct buf *out, struct err *e)
{
	int ends[2], status = 0, rc;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return err_set(e, "pipe: %s", strerror(errno));
	if ((pid = fork()) == 0)
		child(p, ends[1]);
	close(ends[1]);
	rc = pid < 0 ? -1 : collect(ends[0], out);
	close(ends[0]);
	if (pid < 0)
		return err_set(e, "fork: %s", strerror(errno));
	if (rc)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (rc)
		return err_set(e, "no answer within %d s", DOCTOR_SECONDS);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	return err_set(e, "%.*s", out->len ? (int) strcspn(out->data, "\n") : 6, out->len ? out->data : "failed");
}

int doctor_run(const char *const argv[], struct buf *out, struct err *e)
{
	return run(&(struct probe){ .argv = argv }, out, e);
}

int doctor_limited(int (*work)(const struct doctor *d, struct buf *out, struct err *e), const struct doctor *d,
		   struct buf *out, struct err *e)
{
	return run(&(struct probe){ .work = work, .doctor = d }, out, e);
}
