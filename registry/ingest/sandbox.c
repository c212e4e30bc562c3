/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "worker.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define WALL_SECONDS 5
#define FILTER_MAX 4096	/* instructions; the kernel's BPF_MAXINSNS */

struct limit {
	int what;
	rlim_t limit;
};

static const struct limit inherited[] = {
#ifndef __SANITIZE_ADDRESS__	/* its shadow memory takes terabytes of address space */
	{ RLIMIT_AS, 256u << 20 },
#endif
	{ RLIMIT_CORE, 0 },
	{ RLIMIT_FSIZE, 0 },
	{ .what = -1 },
};

/* For the worker alone: the parent forks and receives descriptors. */
static const struct limit own[] = {
	{ RLIMIT_NPROC, 0 },
	{ RLIMIT_NOFILE, 0 },
	{ .what = -1 },
};

static const struct {
	int call;
	uint32_t action;
} rules[] = {
	{ SCMP_SYS(read), SCMP_ACT_ALLOW },
	{ SCMP_SYS(write), SCMP_ACT_ALLOW },
	{ SCMP_SYS(brk), SCMP_ACT_ALLOW },
	{ SCMP_SYS(munmap), SCMP_ACT_ALLOW },
	{ SCMP_SYS(mremap), SCMP_ACT_ALLOW },
	{ SCMP_SYS(madvise), SCMP_ACT_ALLOW },
	{ SCMP_SYS(futex), SCMP_ACT_ALLOW },
	{ SCMP_SYS(getrandom), SCMP_ACT_ALLOW },
	{ SCMP_SYS(clock_gettime), SCMP_ACT_ALLOW },
	{ SCMP_SYS(sysinfo), SCMP_ACT_ALLOW },	/* qsort(3) reads the size of memory */
	{ SCMP_SYS(exit_group), SCMP_ACT_ALLOW },
	/* libc may load a module for a document's encoding: refuse the document instead of killing the worker. */
	{ SCMP_SYS(openat), SCMP_ACT_ERRNO(EACCES) },
	{ SCMP_SYS(newfstatat), SCMP_ACT_ERRNO(EACCES) },
};

static int filter_rules(scmp_filter_ctx ctx)
{
	int rc = 0;

	for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]) && rc == 0; i++)
		rc = seccomp_rule_add(ctx, rules[i].action, rules[i].call, 0);
	/* Anonymous mappings only. */
	return rc ? rc : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
					  SCMP_A4(SCMP_CMP_MASKED_EQ, 0xffffffff, 0xffffffff));
}

/* libseccomp exports to files only. */
static int filter_export(scmp_filter_ctx ctx, struct sock_fprog *out)
{
	struct sock_filter space[FILTER_MAX];
	int fd = memfd_create("filter", MFD_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0 && seccomp_export_bpf(ctx, fd) == 0)
		n = pread(fd, space, sizeof(space), 0);
	if (fd >= 0)
		close(fd);
	if (n <= 0 || !(out->filter = malloc(n)))
		return -1;
	memcpy(out->filter, space, n);
	out->len = n / sizeof(space[0]);
	return 0;
}

int sandbox_make(struct sandbox *s, struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int rc = ctx && filter_rules(ctx) == 0 ? filter_export(ctx, &s->filter) : -1;

	seccomp_release(ctx);
	return rc ? err_set(e, "cannot create the system call filter: %s", strerror(errno)) : 0;
}

void sandbox_free(struct sandbox *s)
{
	free(s->filter.filter);
	*s = (struct sandbox){0};
}

static int set_limits(const struct limit *l)
{
	for (; l->what >= 0; l++)
		if (setrlimit(l->what, &(struct rlimit){ l->limit, l->limit }))
			return -1;
	return 0;
}

int sandbox_prepare(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return -1;
	return set_limits(inherited);
}

int sandbox_enter(const struct sandbox *s, int fd)
{
	if (dup2(fd, 0) < 0 || close_range(1, ~0u, 0))
		return -1;
	/* The default action of SIGALRM kills; the filter allows neither alarm nor sigaction. */
	signal(SIGALRM, SIG_DFL);
	alarm(WALL_SECONDS);
	/* SIGXCPU at the soft limit, SIGKILL at the hard one. */
	if (setrlimit(RLIMIT_CPU, &(struct rlimit){ SANDBOX_CPU_SECONDS, SANDBOX_CPU_SECONDS + 1 }))
		return -1;
	return set_limits(own) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &s->filter) ? -1 : 0;
}
