/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "child.h"

#include <sys/resource.h>

#include "base/child.h"
#include "base/file.h"

#define CPU_SECONDS 20
#define MAX_BYTES (64u << 20)

enum { STATUS_DONE, STATUS_REFUSED, STATUS_LOST };

struct work {
	int (*work)(const void *given, struct buf *out, struct err *e);
	const void *given;
};

static int child_main(int to, void *arg)
{
	struct rlimit cpu = { CPU_SECONDS, CPU_SECONDS }, core = {0};
	int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const struct work *w = arg;
	struct buf out = {0};
	struct err e = {""};

	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_CORE, &core);
	dup2(quiet, STDERR_FILENO);
	if (w->work(w->given, &out, &e))
		return file_write(to, e.text, strlen(e.text)) ? STATUS_LOST : STATUS_REFUSED;
	return out.failed || file_write(to, out.data, out.len) ? STATUS_LOST : STATUS_DONE;
}

int cmd_child(int (*work)(const void *given, struct buf *out, struct err *e), const void *given, unsigned seconds,
	      struct buf *out, struct err *e)
{
	struct buf b = {0};
	int rc = child_run(child_main, &(struct work){ work, given }, seconds, MAX_BYTES, &b, e);

	if (rc < 0)
		return err_within(e, "a child process");
	if (rc == STATUS_DONE) {
		*out = b;
		return 0;
	}
	err_set(e, "%s", rc == STATUS_LOST ? "the output of a child process was lost" :
		b.len ? b.data : "");
	buf_free(&b);
	return -1;
}

struct program {
	const char *const *argv;
	enum cmd_stderr how;
};

static int program_main(int to, void *arg)
{
	const struct program *p = arg;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, STDIN_FILENO);
	dup2(to, STDOUT_FILENO);
	if (p->how != STDERR_OURS)
		dup2(p->how == STDERR_TOO ? to : null, STDERR_FILENO);
	/* As it is read here, whatever the user prefers to see. */
	setenv("SLURM_TIME_FORMAT", "standard", 1);
	execvp(p->argv[0], (char *const *) p->argv);
	fprintf(stderr, "%s: %s\n", p->argv[0], strerror(errno));
	return 127;
}

int cmd_program(const char *const argv[], enum cmd_stderr how, unsigned seconds, size_t max, struct buf *out,
		struct err *e)
{
	return child_run(program_main, &(struct program){ argv, how }, seconds, max, out, e);
}

/* --- other processes --- */

enum { PROC_MAX = 4 << 20 };

int cmd_process_environ(pid_t pid, struct buf *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", (int) pid);
	return file_read(path, PROC_MAX, out, NULL);
}

const char *cmd_environ_get(const struct buf *environ_of, const char *name)
{
	size_t n = strlen(name);

	for (size_t at = 0; at < environ_of->len; at += strlen(environ_of->data + at) + 1)
		if (!strncmp(environ_of->data + at, name, n) && environ_of->data[at + n] == '=')
			return environ_of->data + at + n + 1;
	return "";
}

pid_t cmd_process_parent(pid_t pid)
{
	struct buf status = {0};
	char path[64];
	const char *at;
	pid_t parent;

	snprintf(path, sizeof(path), "/proc/%d/status", (int) pid);
	at = file_read(path, PROC_MAX, &status, NULL) || !status.data ? NULL : strstr(status.data, "\nPPid:");
	parent = at ? atoi(at + strlen("\nPPid:")) : 0;
	buf_free(&status);
	return parent;
}
