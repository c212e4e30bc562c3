/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/gpu_own.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind/gpu.h"

enum access { UNKNOWN, ALLOWED, DENIED };

/*
 * Opening the device of an idle GPU may start it, which takes seconds; access(2) asks the devices cgroup as open(2)
 * does (devcgroup_inode_permission in Linux's fs/namei.c). EACCES is the file's mode, and says nothing of the cgroup.
 */
static enum access file_access(const char *path)
{
	if (!access(path, R_OK | W_OK))
		return ALLOWED;
	return errno == EPERM ? DENIED : UNKNOWN;
}

/* NVIDIA's driver says the number of /dev/nvidiaN, which need not be in the order of the bus. */
static enum access nvidia_access(const char *root, const char *address)
{
	char path[PATH_MAX], line[256];
	int minor = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/driver/nvidia/gpus/%s/information", root, address);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "Device Minor: %d", &minor) != 1)
		;
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "%s/dev/nvidia%d", root, minor);
	return minor < 0 ? UNKNOWN : file_access(path);
}

/* The device files of the kernel's Direct Rendering Manager: card0, renderD128. One that is denied decides. */
static enum access drm_access(const char *root, const char *address)
{
	enum access found = UNKNOWN;
	char path[PATH_MAX];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/drm", root, address);
	dir = opendir(path);
	while (dir && found != DENIED && (d = readdir(dir))) {
		enum access file;

		snprintf(path, sizeof(path), "%s/dev/dri/%s", root, d->d_name);
		file = *d->d_name == '.' ? UNKNOWN : file_access(path);
		found = file == UNKNOWN ? found : file;
	}
	if (dir)
		closedir(dir);
	return found;
}

static enum access gpu_access(const char *root, hwloc_obj_t function)
{
	const struct hwloc_pcidev_attr_s *p;
	enum access nvidia, drm;
	char address[32];

	if (!function)
		return UNKNOWN;
	p = &function->attr->pcidev;
	snprintf(address, sizeof(address), "%04x:%02x:%02x.%x", p->domain, p->bus, p->dev, p->func);
	nvidia = nvidia_access(root, address);
	drm = drm_access(root, address);
	return nvidia > drm ? nvidia : drm;
}

/* Bits by the numbers of a list that are below n. 0: one is not, or is no number. */
static uint64_t by_index(const char *list, unsigned n)
{
	uint64_t which = 0;
	unsigned i;
	int used;

	for (; sscanf(list, "%5u%n", &i, &used) == 1 && i < n && (!list[used] || list[used] == ',');
	     list += used + !!list[used]) {
		which |= UINT64_C(1) << i;
		if (!list[used])
			return which;
	}
	return 0;
}

static bool is_mig(const char *list)
{
	return !strncmp(list, "MIG-", strlen("MIG-"));
}

int gpu_own(hwloc_topology_t node, const char *root, const struct gpu_lists *l, char *out, size_t size, struct err *e)
{
	unsigned n = gpu_count(l->step);
	uint64_t denied = 0, unknown = 0, which;
	char allowed[GPU_LIST_SIZE];

	/* Of MIG instances Slurm's numbers are those of instances. */
	if (!*l->task || is_mig(l->visible)) {
		snprintf(out, size, "%s", l->visible);
		return 0;
	}
	for (unsigned i = 0; node && i < n; i++) {
		enum access found = gpu_access(root, gpu_function(node, l->step, i));

		denied |= (uint64_t) (found == DENIED) << i;
		unknown |= (uint64_t) (found == UNKNOWN) << i;
	}
	which = by_index(l->visible, n);
	if (!which || (!denied && !strcmp(l->step, l->step_visible))) {
		snprintf(out, size, "%s", l->task);
		return 0;
	}
	if (!denied && (!node || unknown) && strcmp(l->visible, l->step_visible))
		return err_set(e, "cannot tell which of the step's GPUs %.40s Slurm gave to this task: their device "
			       "files are not known", l->step);
	gpu_subset(l->step, ~denied, allowed, sizeof(allowed));
	which = by_index(l->visible, gpu_count(allowed));
	return gpu_subset(allowed, which ? which : UINT64_MAX, out, size) ? err_set(e, "too many GPUs") : 0;
}
