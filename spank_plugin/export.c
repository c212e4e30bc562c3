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
#include "topo/canon.h"

enum {
	SETTLED = 2,		/* seconds: a file changed within the clock's tick keeps its times */
};

int export_open(const char *file, struct stat *st, struct err *e)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return err_set(e, "%s: %s", file, strerror(errno));
	if (!fstat(fd, st) && S_ISREG(st->st_mode) && st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH)))
		return fd;
	close(fd);
	return err_set(e, "%s: must be a regular file of root's that root alone may write", file);
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

static int list(hwloc_const_bitmap_t set, char *out, size_t size)
{
	int n = hwloc_bitmap_list_snprintf(out, size, set);

	return n > 0 && (size_t) n < size ? 0 : -1;
}

int export_look(hwloc_topology_t t, struct export *out)
{
	return list(hwloc_topology_get_topology_cpuset(t), out->cpus, sizeof(out->cpus)) ||
	       list(hwloc_topology_get_complete_cpuset(t), out->complete, sizeof(out->complete)) ? -1 : 0;
}

static void add_online(hwloc_bitmap_t cpus)
{
	struct buf list = {0};

	if (!file_read("/sys/devices/system/cpu/online", 65536, &list, NULL))
		hwloc_bitmap_list_sscanf(cpus, list.data);
	buf_free(&list);
}

static void add_affinity(hwloc_bitmap_t cpus)
{
	hwloc_bitmap_t own = hwloc_bitmap_alloc();

	if (own && !affinity_get(own, NULL))
		hwloc_bitmap_or(cpus, cpus, own);
	hwloc_bitmap_free(own);
}

/*
 * Our own affinity adds nothing to the CPUs online on real hardware; where the hardware is emulated by a preloaded library it is the
 * only place that shows.
 */
hwloc_bitmap_t export_cpus_now(void)
{
	hwloc_bitmap_t now = hwloc_bitmap_alloc();

	if (now) {
		add_online(now);
		add_affinity(now);
	}
	return now;
}

/*
 * The kernel is the judge. Each PU of the export must be a CPU that it has now, or bindings would fail, and each CPU that it
 * has must have been known to the export, or it is another machine's.
 */
bool export_is_here(const struct export *x, hwloc_const_bitmap_t now)
{
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc(), complete = hwloc_bitmap_alloc();
	bool here = now && cpus && complete && !hwloc_bitmap_list_sscanf(cpus, x->cpus) &&
		    !hwloc_bitmap_list_sscanf(complete, x->complete) && hwloc_bitmap_isincluded(cpus, now) &&
		    hwloc_bitmap_isincluded(now, complete);

	hwloc_bitmap_free(cpus);
	hwloc_bitmap_free(complete);
	return here;
}

static void identify(const struct stat *st, char *out, size_t size)
{
	snprintf(out, size, "%llx:%llu:%lld:%lld.%09ld:%lld.%09ld", (unsigned long long) st->st_dev, (unsigned long long) st->st_ino,
		 (long long) st->st_size, (long long) st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (long long) st->st_ctim.tv_sec,
		 st->st_ctim.tv_nsec);
}

/* One line: identity, hash, CPUs, all CPUs. */
static int note_read(int folder, char *id, struct export *out)
{
	char text[sizeof(*out) + 256];
	int fd = openat(folder, EXPORT_NOTE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0 || text[n - 1] != '\n')
		return -1;
	text[n] = '\0';
	return sscanf(text, "%159s %64s %2047s %2047s", id, out->hash, out->cpus, out->complete) == 4 ? 0 : -1;
}

int export_recall(int folder, const struct stat *st, struct export *out)
{
	char id[160], noted[160];
	struct export x;

	identify(st, id, sizeof(id));
	if (note_read(folder, noted, &x) || strcmp(id, noted))
		return 0;
	*out = x;
	return 1;
}

int export_recall_hash(int folder, struct export *out)
{
	char noted[160];
	struct export x;

	if (note_read(folder, noted, &x) || strcmp(out->hash, x.hash))
		return 0;
	*out = x;
	return 1;
}

void export_note(int folder, const struct stat *st, const struct export *x)
{
	char id[160], name[32];
	int fd;

	if (st->st_ctime + SETTLED > time(NULL))
		return;
	identify(st, id, sizeof(id));
	snprintf(name, sizeof(name), EXPORT_NOTE ".%d", (int) getpid());
	if ((fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)) < 0)
		return;
	if (dprintf(fd, "%s %s %s %s\n", id, x->hash, x->cpus, x->complete) < 0 || renameat(folder, name, folder, EXPORT_NOTE))
		unlinkat(folder, name, 0);
	close(fd);
}
