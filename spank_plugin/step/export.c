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

static int add_online(hwloc_bitmap_t cpus)
{
	struct buf list = {0};
	int rc = 0;

	if (!file_read("/sys/devices/system/cpu/online", 65536, &list, NULL))
		rc = hwloc_bitmap_list_sscanf(cpus, list.data);
	buf_free(&list);
	return rc;
}

static int add_affinity(hwloc_bitmap_t cpus)
{
	hwloc_bitmap_t own = hwloc_bitmap_alloc();
	int rc = !own || affinity_get(own, NULL) || hwloc_bitmap_or(cpus, cpus, own);

	hwloc_bitmap_free(own);
	return rc ? -1 : 0;
}

/*
 * On real hardware the process's affinity adds nothing to the CPUs that are online; where a preloaded library emulates
 * hardware, it is the only source.
 */
hwloc_bitmap_t export_cpus_online(struct err *e)
{
	hwloc_bitmap_t online = hwloc_bitmap_alloc();

	if (online && !add_online(online) && !add_affinity(online))
		return online;
	hwloc_bitmap_free(online);
	err_set(e, "the CPUs that are online: %s", strerror(errno));
	return NULL;
}

/*
 * Each PU of the export must be online now, or bindings would fail, and each CPU that is online must be in the
 * export's complete cpuset, or the export is of another machine.
 */
bool export_is_local(const struct export *x, hwloc_const_bitmap_t online)
{
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc(), complete = hwloc_bitmap_alloc();
	bool local = online && cpus && complete && !hwloc_bitmap_list_sscanf(cpus, x->cpus) &&
		    !hwloc_bitmap_list_sscanf(complete, x->complete) && hwloc_bitmap_isincluded(cpus, online) &&
		    hwloc_bitmap_isincluded(online, complete);

	hwloc_bitmap_free(cpus);
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
