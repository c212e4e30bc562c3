/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* 1 after some bytes, 0 at the end of them, -1 with errno. */
static int read_some(int fd, int64_t deadline, size_t max, struct buf *out)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int64_t left = deadline - now_ms();
	ssize_t n;
	char *at;

	if (left <= 0 || (n = poll(&p, 1, left)) == 0) {
		errno = ETIMEDOUT;
		return -1;
	}
	if (n < 0)
		return errno == EINTR ? 1 : -1;
	if (!(at = buf_reserve(out, 65536)) || out->len > max) {
		errno = at ? EFBIG : ENOMEM;
		return -1;
	}
	if ((n = read(fd, at, 65536)) < 0)
		return errno == EINTR ? 1 : -1;
	out->len += n;
	out->data[out->len] = '\0';
	return n > 0;
}

static int read_all(int fd, int64_t deadline, size_t max, struct buf *out)
{
	int rc;

	while ((rc = read_some(fd, deadline, max, out)) > 0)
		;
	return rc;
}

/* It may have closed its end and live on: the user's own, who can make it. 0, or -1 with errno. */
static int wait_for_end(pid_t pid, int64_t deadline)
{
	int fd = syscall(SYS_pidfd_open, pid, 0), rc = -1;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (fd >= 0 && rc < 0) {
		int64_t left = deadline - now_ms();

		if ((rc = poll(&p, 1, left > 0 ? left : 0)) < 0 && errno != EINTR)
			break;
	}
	if (fd >= 0)
		close(fd);
	if (!rc)
		errno = ETIMEDOUT;
	return rc > 0 ? 0 : -1;
}

static void be_child(child_fn *fn, void *arg, int fd)
{
	sigset_t none;

	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	_exit(fn(fd, arg));
}

int child_run(child_fn *fn, void *arg, unsigned seconds, size_t max, struct buf *out, struct err *e)
{
	int64_t deadline = now_ms() + seconds * INT64_C(1000);
	struct buf b = {0};
	int fds[2], status = 0, failed;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return err_set(e, "pipe: %s", strerror(errno));
	if ((pid = fork()) == 0)
		be_child(fn, arg, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return err_set(e, "fork: %s", strerror(errno));
	}
	setpgid(pid, pid);
	failed = read_all(fds[0], deadline, max, &b) || wait_for_end(pid, deadline) ? errno : 0;
	close(fds[0]);
	if (failed)
		kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (failed == ETIMEDOUT)
		err_set(e, "took more than %u seconds", seconds);
	else if (failed)
		err_set(e, "its answer: %s", strerror(failed));
	else if (WIFSIGNALED(status))
		err_set(e, "died of signal %d", WTERMSIG(status));
	if (failed || !WIFEXITED(status)) {
		buf_free(&b);
		return -1;
	}
	*out = b;
	return WEXITSTATUS(status);
}
