/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors
 *
 * On a machine that has cgroup v1 beside cgroup v2: /proc/PID/cgroup without the lines of v1, as where there is v2
 * only. Slurm goes no further when it sees any; all else that it does with cgroups of v2 is real.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int unified_only(int fd)
{
	FILE *all = fdopen(fd, "r");
	int made = memfd_create("cgroup", MFD_CLOEXEC);
	char line[4096];

	while (all && fgets(line, sizeof(line), all))
		if (!strncmp(line, "0::", 3))
			dprintf(made, "%s", line);
	fclose(all);
	lseek(made, 0, SEEK_SET);
	return made;
}

static int open_as(const char *name, const char *path, int flags, mode_t mode)
{
	int (*real)(const char *path, int flags, ...) = dlsym(RTLD_NEXT, name);
	int fd = real(path, flags, mode);

	return fd >= 0 && !fnmatch("/proc/*/cgroup", path, FNM_PATHNAME) ? unified_only(fd) : fd;
}

#define OPEN(name) \
	int name(const char *path, int flags, ...) \
	{ \
		mode_t mode = 0; \
		va_list more; \
\
		va_start(more, flags); \
		if (flags & (O_CREAT | O_TMPFILE)) \
			mode = va_arg(more, mode_t); \
		va_end(more); \
		return open_as(#name, path, flags, mode); \
	}

OPEN(open)
OPEN(open64)
