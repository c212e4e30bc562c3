/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define CPU_SECONDS 20
#define MAX_BYTES (64u << 20)

enum { STATUS_DONE, STATUS_REFUSED, STATUS_LOST };

static void child_main(int (*work)(const void *given, struct buf *out, struct err *e), const void *given, int to)
{
	struct rlimit cpu = { CPU_SECONDS, CPU_SECONDS }, core = {0};
	int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct buf out = {0};
	struct err e = {""};

	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_CORE, &core);
	if (quiet >= 0)
		dup2(quiet, STDERR_FILENO);
	if (work(given, &out, &e))
		_exit(file_write(to, e.text, strlen(e.text)) ? STATUS_LOST : STATUS_REFUSED);
	_exit(out.failed || file_write(to, out.data, out.len) ? STATUS_LOST : STATUS_DONE);
}

static int read_all(int from, struct buf *b)
{
	for (;;) {
		char *room = b->len < MAX_BYTES ? buf_reserve(b, 65536) : NULL;
		ssize_t n = room ? read(from, room, 65536) : -1;

		if (!room || (n < 0 && errno != EINTR))
			return -1;
		if (!n)
			return 0;
		b->len += n > 0 ? n : 0;
	}
}

static int child_status(int status, int whole, const struct buf *b, struct err *e)
{
	if (WIFSIGNALED(status))
		return err_set(e, "hwloc ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (whole == 0 && WEXITSTATUS(status) == STATUS_DONE)
		return 0;
	if (whole == 0 && WEXITSTATUS(status) == STATUS_REFUSED)
		return err_set(e, "%.*s", (int) b->len, b->len ? b->data : "");
	return err_set(e, "the output of the child process that runs hwloc was lost");
}

int cmd_child(int (*work)(const void *given, struct buf *out, struct err *e), const void *given, struct buf *out,
	      struct err *e)
{
	struct buf b = {0};
	int ends[2], status = 0, whole;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return err_set(e, "pipe: %s", strerror(errno));
	if ((pid = fork()) < 0) {
		close(ends[0]);
		close(ends[1]);
		return err_set(e, "fork: %s", strerror(errno));
	}
	if (!pid)
		child_main(work, given, ends[1]);
	close(ends[1]);
	whole = read_all(ends[0], &b);
	close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (child_status(status, whole, &b, e)) {
		buf_free(&b);
		return -1;
	}
	*out = b;
	return 0;
}
