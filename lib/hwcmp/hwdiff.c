/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwcmp/hwdiff.h"

#include <hwloc.h>
#include <hwloc/diff.h>
#include <sys/resource.h>

#include "base/child.h"
#include "base/file.h"

#define CPU_SECONDS 60
#define SECONDS 600		/* whatever else the machine does */
#define MAX_BYTES (64u << 20)

enum { EXIT_DIFF, EXIT_COMPLEX, EXIT_NO_LOAD, EXIT_NO_EXPORT };

/* Exit statuses of the child process that are errors. */
static const char *const reasons[] = {
	[EXIT_NO_LOAD] = "hwloc cannot load these topologies",
	[EXIT_NO_EXPORT] = "hwloc cannot export the difference",
};

static hwloc_topology_t topology_load(const char *xml, size_t len)
{
	struct buf copy = {0};
	hwloc_topology_t t;

	buf_add(&copy, xml, len);
	if (copy.failed || hwloc_topology_init(&t))
		return NULL;
	hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL);
	hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	return hwloc_topology_set_xmlbuffer(t, copy.data, copy.len + 1) || hwloc_topology_load(t) ? NULL : t;
}

struct difference {
	const char *a, *b;
	size_t alen, blen;
};

/* In the child, which the exit frees of all it holds. */
static int difference_write(int fd, void *arg)
{
	const struct difference *d = arg;
	hwloc_topology_diff_t diff = NULL;
	hwloc_topology_t x, y;
	char *xml;
	int len, rc;

	setrlimit(RLIMIT_CPU, &(struct rlimit){ CPU_SECONDS, CPU_SECONDS });
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	unsetenv("HWLOC_COMPONENTS");
	unsetenv("HWLOC_DEBUG_CHECK");
	setenv("HWLOC_HIDE_ERRORS", "2", 1);
	if (!(x = topology_load(d->a, d->alen)) || !(y = topology_load(d->b, d->blen)))
		return EXIT_NO_LOAD;
	rc = hwloc_topology_diff_build(x, y, 0, &diff);
	if (rc)
		return rc == 1 ? EXIT_COMPLEX : EXIT_NO_EXPORT;
	if (hwloc_topology_diff_export_xmlbuffer(diff, NULL, &xml, &len) || file_write(fd, xml, len - 1))
		return EXIT_NO_EXPORT;
	return EXIT_DIFF;
}

int hwdiff_xml(const char *a, size_t alen, const char *b, size_t blen, struct buf *out, struct err *e)
{
	struct difference d = { a, b, alen, blen };
	struct buf got = {0};
	int rc = child_run(difference_write, &d, SECONDS, MAX_BYTES, &got, e);

	if (rc < 0)
		return err_within(e, "hwloc, on these topologies");
	if (rc > EXIT_COMPLEX)
		rc = err_set(e, "%s", rc <= EXIT_NO_EXPORT ? reasons[rc] : "hwloc terminated the comparison");
	if (!rc)
		buf_add(out, got.data, got.len);
	buf_free(&got);
	return rc;
}
