/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "affinity.h"
#include "base/file.h"
#include "hwview/machine.h"
#include "hwxml/canon.h"

enum {
	SETTLED = 2,		/* seconds: a file changed twice within one clock tick has the same times */
};

int export_open(const char *file, struct stat *st, struct err *e)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return err_set(e, "%s: %s", file, strerror(errno));
	if (!fstat(fd, st) && S_ISREG(st->st_mode) && st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH)))
		return fd;
	close(fd);
	return err_set(e, "%s: must be a regular file owned by root and writable by root only", file);
}

int export_read(int fd, struct buf *xml, struct export *out, struct err *e)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (file_read(self, CANON_MAX_BYTES, xml, e))
		return -1;
	hash_hex(xml->data, xml->len, out->hash);
	return 0;
}

static int format_list(hwloc_const_bitmap_t set, char *out, size_t size)
{
	int n = hwloc_bitmap_list_snprintf(out, size, set);

	return n > 0 && (size_t) n < size ? 0 : -1;
}

int export_list_cpus(hwloc_topology_t t, struct export *out)
{
	return format_list(hwloc_topology_get_topology_cpuset(t), out->cpus, sizeof(out->cpus)) ||
	       format_list(hwloc_topology_get_complete_cpuset(t), out->complete, sizeof(out->complete)) ? -1 : 0;
}

/*
 * On real hardware the process's affinity adds nothing to the CPUs that are online; where a preloaded library emulates
 * hardware, it is the only source.
 */
int export_cpus_read(struct export_cpus *out, struct err *e)
{
	hwloc_bitmap_t own = hwloc_bitmap_alloc();
	int rc = -1;

	*out = (struct export_cpus){0};
	if (!own)
		err_set(e, "out of memory");
	else if ((out->present = machine_cpus("present", e)) && (out->online = machine_cpus("online", e)) &&
		 !affinity_get(own, e))
		rc = hwloc_bitmap_or(out->online, out->online, own) ||
		     hwloc_bitmap_or(out->present, out->present, out->online) ? err_set(e, "out of memory") : 0;
	hwloc_bitmap_free(own);
	return rc;
}

void export_cpus_free(struct export_cpus *cpus)
{
	hwloc_bitmap_free(cpus->present);
	hwloc_bitmap_free(cpus->online);
}

/*
 * Each PU of the export must be a CPU that the kernel has, and each CPU that is online must be in the export's complete
 * cpuset, or the export is of another machine. CPUs may go offline after the export: a machine without SMT, or a fault.
 */
bool export_is_local(const struct export *x, const struct export_cpus *cpus, bool *offline)
{
	hwloc_bitmap_t own = hwloc_bitmap_alloc(), complete = hwloc_bitmap_alloc();
	bool local = own && complete && !hwloc_bitmap_list_sscanf(own, x->cpus) &&
		     !hwloc_bitmap_list_sscanf(complete, x->complete) && hwloc_bitmap_isincluded(own, cpus->present) &&
		     hwloc_bitmap_isincluded(cpus->online, complete);

	*offline = local && !hwloc_bitmap_isincluded(own, cpus->online);
	hwloc_bitmap_free(own);
	hwloc_bitmap_free(complete);
	return local;
}

static void format_identity(const struct stat *st, char *out, size_t size)
{
	snprintf(out, size, "%llx:%llu:%lld:%lld.%09ld:%lld.%09ld", (unsigned long long) st->st_dev,
		(unsigned long long) st->st_ino,
		 (long long) st->st_size, (long long) st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
		 (long long) st->st_ctim.tv_sec,
		 st->st_ctim.tv_nsec);
}

/* One line: identity, hash, CPUs, all CPUs. */
static int record_read(int dir, char *id, struct export *out)
{
	char text[sizeof(*out) + 256];
	int fd = openat(dir, EXPORT_RECORD, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0 || text[n - 1] != '\n')
		return -1;
	text[n] = '\0';
	return sscanf(text, "%159s %64s %2047s %2047s", id, out->hash, out->cpus, out->complete) == 4 ? 0 : -1;
}

int export_recall(int dir, const struct stat *st, struct export *out)
{
	char id[160], recorded[160];
	struct export x;

	format_identity(st, id, sizeof(id));
	if (record_read(dir, recorded, &x) || strcmp(id, recorded))
		return 0;
	*out = x;
	return 1;
}

int export_recall_hash(int dir, struct export *out)
{
	char recorded[160];
	struct export x;

	if (record_read(dir, recorded, &x) || strcmp(out->hash, x.hash))
		return 0;
	*out = x;
	return 1;
}

void export_record(int dir, const struct stat *st, const struct export *x)
{
	char id[160], name[32];
	int fd;

	if (st->st_ctime + SETTLED > time(NULL))
		return;
	format_identity(st, id, sizeof(id));
	snprintf(name, sizeof(name), EXPORT_RECORD ".%d", (int) getpid());
	if ((fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)) < 0)
		return;
	if (dprintf(fd, "%s %s %s %s\n", id, x->hash, x->cpus, x->complete) < 0 ||
	    renameat(dir, name, dir, EXPORT_RECORD))
		unlinkat(dir, name, 0);
	close(fd);
}
