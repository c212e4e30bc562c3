/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/child.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"

#define KILL_SECONDS 2	/* for a process to end after SIGKILL; one in uninterruptible sleep is not waited for */

/* 1: read some bytes; 0: end of file; -1 with errno. */
static int read_some(int fd, double deadline, size_t max, struct buf *out)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int left = 1000 * (deadline - clock_now());
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

static int read_all(int fd, double deadline, size_t max, struct buf *out)
{
	int rc;

	while ((rc = read_some(fd, deadline, max, out)) > 0)
		;
	return rc;
}

int child_read(int fd, unsigned seconds, size_t max, struct buf *out)
{
	return read_all(fd, clock_now() + seconds, max, out);
}

static int lowest_from(const int *kept, int from)
{
	int low = -1;

	for (; *kept >= 0; kept++)
		if (*kept >= from && (low < 0 || *kept < low))
			low = *kept;
	return low;
}

void child_keep(const int *kept)
{
	int from = STDERR_FILENO + 1;

	for (int next; (next = lowest_from(kept, from)) >= 0; from = next + 1)
		if (next > from)
			close_range(from, next - 1, 0);
	close_range(from, ~0U, 0);
}

/* A process that the user controls may close its end of the pipe and keep running. 0, or -1 with errno. */
static int wait_for_end(pid_t pid, double deadline)
{
	int fd = syscall(SYS_pidfd_open, pid, 0), rc = -1;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (fd >= 0 && rc < 0) {
		int left = 1000 * (deadline - clock_now());

		if ((rc = poll(&p, 1, left > 0 ? left : 0)) < 0 && errno != EINTR)
			break;
	}
	if (fd >= 0)
		close(fd);
	if (!rc)
		errno = ETIMEDOUT;
	return rc > 0 ? 0 : -1;
}

/* The wait status, or -1 with errno: it is still running. */
static int reap(pid_t pid, double deadline)
{
	int status;

	if (wait_for_end(pid, deadline))
		return -1;
	return waitpid(pid, &status, WNOHANG) == pid ? status : -1;
}

int child_run(child_fn *fn, void *arg, unsigned seconds, size_t max, struct buf *out, struct err *e)
{
	double deadline = clock_now() + seconds;
	struct buf b = {0};
	int fds[2], status, failed;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return err_set(e, "pipe: %s", strerror(errno));
	if ((pid = fork()) == 0) {
		sigset_t none;

		setpgid(0, 0);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		_exit(fn(fds[1], arg));
	}
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return err_set(e, "fork: %s", strerror(errno));
	}
	setpgid(pid, pid);
	failed = read_all(fds[0], deadline, max, &b) || (status = reap(pid, deadline)) < 0 ? errno : 0;
	close(fds[0]);
	if (failed) {
		kill(-pid, SIGKILL);
		reap(pid, clock_now() + KILL_SECONDS);
	}
	if (failed == ETIMEDOUT)
		err_set(e, "took more than %u seconds", seconds);
	else if (failed)
		err_set(e, "reading its output: %s", strerror(failed));
	else if (WIFSIGNALED(status))
		err_set(e, "was killed by signal %d", WTERMSIG(status));
	if (failed || WIFSIGNALED(status)) {
		buf_free(&b);
		return -1;
	}
	*out = b;
	return WEXITSTATUS(status);
}

bool child_program(const char *name, char path[static PATH_MAX])
{
	const char *at = strchr(name, '/') ? "" : getenv("PATH") ?: "/bin:/usr/bin";
	struct stat st;

	for (size_t len; at; at = at[len] ? at + len + 1 : NULL) {
		len = strcspn(at, ":");
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int) len, at, len ? "/" : "", name) < PATH_MAX &&
		    !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK))
			return true;
	}
	return false;
}
