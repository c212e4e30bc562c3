/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "clip.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "child.h"
#include "topo/canon.h"
#include "topo/machine.h"
#include "topo/restrict.h"

enum { SECONDS = 20, MAX_CPUS = 65536 };

static int read_export(const char *file, struct buf *out, struct err *e)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY), rc = -1;
	char self[32];
	struct stat st;

	if (fd < 0)
		return err_set(e, "%s: %s", file, strerror(errno));
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		err_set(e, "%s: must be a regular file of root's that root alone may write", file);
	else if (file_read(self, CANON_MAX_BYTES, out, e))
		err_within(e, "%s", file);
	else
		rc = 0;
	close(fd);
	return rc;
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
	cpu_set_t *set = CPU_ALLOC(MAX_CPUS);
	size_t size = CPU_ALLOC_SIZE(MAX_CPUS);

	if (set && !sched_getaffinity(0, size, set))
		for (unsigned i = 0; i < MAX_CPUS; i++)
			if (CPU_ISSET_S(i, size, set))
				hwloc_bitmap_set(cpus, i);
	CPU_FREE(set);
}

/*
 * The kernel is the judge. Each PU of the export must be a CPU that it has now, or bindings would fail, and each CPU that it
 * has must have been known to the export, or it is another machine's. Our own affinity adds nothing to the CPUs online on
 * real hardware; where the hardware is emulated by a preloaded library it is the only place that shows.
 */
static bool is_here(const char *xml, size_t len)
{
	hwloc_topology_t t = machine_load(xml, len, NULL);
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	bool here = false;

	if (t && cpus) {
		add_online(cpus);
		add_affinity(cpus);
		here = hwloc_bitmap_isincluded(hwloc_topology_get_topology_cpuset(t), cpus) &&
		       hwloc_bitmap_isincluded(cpus, hwloc_topology_get_complete_cpuset(t));
	}
	hwloc_bitmap_free(cpus);
	if (t)
		hwloc_topology_destroy(t);
	return here;
}

struct clip {
	const struct buf *xml;
	const char *cores;
};

/* What the child says begins with one of these. */
enum { SAYS_ERROR = '!', SAYS_HERE = '1', SAYS_ELSEWHERE = '0' };

static int say(int fd, char what, const char *data, size_t len)
{
	ssize_t n = write(fd, &what, 1);

	for (; n > 0 && len; data += n, len -= n)
		n = write(fd, data, len);
	return n <= 0;
}

/* hwloc is told a topology by the environment, too, and slurmd's may name another. */
static int clip_child(int fd, void *arg)
{
	const struct clip *c = arg;
	struct buf out = {0};
	struct err e = {0};

	clearenv();
	if (restrict_xml(c->xml->data, c->xml->len, c->cores, &out, &e))
		return say(fd, SAYS_ERROR, e.text, strlen(e.text));
	return say(fd, is_here(c->xml->data, c->xml->len) ? SAYS_HERE : SAYS_ELSEWHERE, out.data, out.len);
}

static int hear(struct buf *said, bool *here, struct err *e)
{
	if (!said->len)
		return err_set(e, "no answer from the process that restricts it");
	if (said->data[0] == SAYS_ERROR)
		return err_set(e, "%s", said->data + 1);
	*here = said->data[0] == SAYS_HERE;
	memmove(said->data, said->data + 1, said->len--);
	return 0;
}

int clip_export(const char *file, const char *cores, struct buf *out, bool *here, struct err *e)
{
	struct buf xml = {0}, said = {0};
	struct clip c = { &xml, cores };
	int rc;

	if (read_export(file, &xml, e))
		return -1;
	rc = child_run(clip_child, &c, SECONDS, CANON_MAX_BYTES, &said, e);
	if (rc > 0)
		rc = err_set(e, "the process that restricts it failed");
	if (rc || hear(&said, here, e)) {
		buf_free(&said);
		buf_free(&xml);
		return err_within(e, "%s", file);
	}
	buf_free(&xml);
	*out = said;
	return 0;
}
