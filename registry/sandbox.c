/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "sandbox.h"

#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define WALL_SECONDS 5

static const struct {
	int what;
	rlim_t limit;
} limits[] = {
#ifndef __SANITIZE_ADDRESS__	/* its shadow memory takes terabytes of addresses */
	{ RLIMIT_AS, 256u << 20 },
#endif
	{ RLIMIT_CPU, 2 },
	{ RLIMIT_CORE, 0 },
	{ RLIMIT_FSIZE, 0 },
	{ RLIMIT_NPROC, 0 },
	{ RLIMIT_NOFILE, 0 },
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
	{ SCMP_SYS(sysinfo), SCMP_ACT_ALLOW },	/* qsort(3) asks how much memory there is */
	{ SCMP_SYS(exit_group), SCMP_ACT_ALLOW },
	/* A document in an encoding that libc would load a module for is refused as a document, not as an attack. */
	{ SCMP_SYS(openat), SCMP_ACT_ERRNO(EACCES) },
	{ SCMP_SYS(newfstatat), SCMP_ACT_ERRNO(EACCES) },
};

static int set_limits(void)
{
	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (setrlimit(limits[i].what, &(struct rlimit){ limits[i].limit, limits[i].limit }))
			return -1;
	return 0;
}

static int set_filter(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int rc = ctx ? 0 : -1;

	for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]) && rc == 0; i++)
		rc = seccomp_rule_add(ctx, rules[i].action, rules[i].call, 0);
	/* Memory that no file is behind. */
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, SCMP_A4(SCMP_CMP_MASKED_EQ, 0xffffffff, 0xffffffff));
	if (rc == 0)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	return rc;
}

int sandbox_enter(int fd)
{
	if (dup2(fd, 0) < 0 || close_range(1, ~0u, 0))
		return -1;
	/* The default action of SIGALRM kills; the filter allows neither another alarm nor another action. */
	signal(SIGALRM, SIG_DFL);
	alarm(WALL_SECONDS);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || set_limits())
		return -1;
	return set_filter();
}
