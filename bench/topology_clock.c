/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * A SPANK plugin around ours: what each of its hooks takes, of each step and task.
 *	optional topology_clock.so PLUGIN FILE ARGUMENTS...
 * PLUGIN is loaded and called with ARGUMENTS. FILE, which every user can write, gets a line each: hook, context,
 * microseconds, and of the processor's time, the plugin's children included.
 */
#include <dlfcn.h>
#include <sys/resource.h>

#include "base/std.h"

#pragma GCC visibility push(default)
#include <slurm/spank.h>
SPANK_PLUGIN(topology_clock, 1)
#pragma GCC visibility pop

typedef int hook_fn(spank_t sp, int argc, char **argv);

struct took {
	double wall, cpu;
};

static double clock_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static struct took now(void)
{
	struct took t = { clock_us(CLOCK_MONOTONIC), clock_us(CLOCK_THREAD_CPUTIME_ID) };
	struct rusage c;

	getrusage(RUSAGE_CHILDREN, &c);
	t.cpu += 1e6 * (c.ru_utime.tv_sec + c.ru_stime.tv_sec) + c.ru_utime.tv_usec + c.ru_stime.tv_usec;
	return t;
}

static void tell(const char *file, const char *hook, struct took from, struct took to)
{
	int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return;
	dprintf(fd, "%s %d %.1f %.1f\n", hook, (int) spank_context(), to.wall - from.wall, to.cpu - from.cpu);
	close(fd);
}

static int call(const char *hook, spank_t sp, int argc, char **argv)
{
	static void *plugin;
	struct took from;
	hook_fn *fn;
	int rc;

	if (argc < 2 || (!plugin && !(plugin = dlopen(argv[0], RTLD_LAZY))))
		return -1;
	if (!(fn = (hook_fn *) dlsym(plugin, hook)))
		return 0;
	from = now();
	rc = fn(sp, argc - 2, argv + 2);
	tell(argv[1], hook, from, now());
	return rc;
}

#define HOOK(name) int name(spank_t sp, int argc, char **argv) { return call(#name, sp, argc, argv); }
HOOK(slurm_spank_init)
HOOK(slurm_spank_init_post_opt)
HOOK(slurm_spank_task_init)
HOOK(slurm_spank_task_exit)
HOOK(slurm_spank_exit)
