/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwcmp/hwdiff.h"

#include <errno.h>
#include <hwloc.h>
#include <hwloc/diff.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define CPU_SECONDS 60

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

/* In the child, which the exit frees of all it holds. */
static int difference_write(const char *a, size_t alen, const char *b, size_t blen, int fd)
{
	hwloc_topology_diff_t diff = NULL;
	hwloc_topology_t x, y;
	char *xml;
	int len, rc;

	unsetenv("HWLOC_COMPONENTS");
	unsetenv("HWLOC_DEBUG_CHECK");
	setenv("HWLOC_HIDE_ERRORS", "2", 1);
	if (!(x = topology_load(a, alen)) || !(y = topology_load(b, blen)))
		return EXIT_NO_LOAD;
	rc = hwloc_topology_diff_build(x, y, 0, &diff);
	if (rc)
		return rc == 1 ? EXIT_COMPLEX : EXIT_NO_EXPORT;
	if (hwloc_topology_diff_export_xmlbuffer(diff, NULL, &xml, &len) || file_write(fd, xml, len - 1))
		return EXIT_NO_EXPORT;
	return EXIT_DIFF;
}

static int status_read(int status, struct err *e)
{
	if (WIFSIGNALED(status))
		return err_set(e, "hwloc crashed on these topologies: %s", strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status) <= EXIT_COMPLEX)
		return WEXITSTATUS(status);
	return err_set(e, "%s", WEXITSTATUS(status) <= EXIT_NO_EXPORT ? reasons[WEXITSTATUS(status)] :
		       "hwloc terminated the comparison");
}

static int output_read(int fd, struct buf *out)
{
	ssize_t n = 1;
	char *at;

	while (n && (at = buf_reserve(out, 65536))) {
		if ((n = read(fd, at, 65536)) < 0 && errno != EINTR)
			return -1;
		out->len += n > 0 ? n : 0;
	}
	if (!out->failed)
		out->data[out->len] = '\0';
	return out->failed ? -1 : 0;
}

int hwdiff_xml(const char *a, size_t alen, const char *b, size_t blen, struct buf *out, struct err *e)
{
	struct buf got = {0};
	int pipes[2], status = 0, rc;
	pid_t child;

	if (pipe(pipes))
		return err_set(e, "pipe: %s", strerror(errno));
	if ((child = fork()) < 0) {
		close(pipes[0]);
		close(pipes[1]);
		return err_set(e, "fork: %s", strerror(errno));
	}
	if (!child) {
		setrlimit(RLIMIT_CPU, &(struct rlimit){ CPU_SECONDS, CPU_SECONDS });
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		close(pipes[0]);
		_exit(difference_write(a, alen, b, blen, pipes[1]));
	}
	close(pipes[1]);
	rc = output_read(pipes[0], &got);
	close(pipes[0]);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	rc = rc ? err_set(e, "the output of hwloc: out of memory") : status_read(status, e);
	if (!rc)
		buf_add(out, got.data, got.len);
	buf_free(&got);
	return rc;
}
