/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwview/draw.h"

#include <spawn.h>
#include <sys/wait.h>

#include "base/file.h"
#include "hwview/machine.h"

#define LSTOPO "lstopo-no-graphics"
#define MAX_SVG (64u << 20)

/* lstopo(1), "CUSTOM COLORS". A dark box with light text is visible among lstopo's greys. */
static const char *const chosen = "Background=#0b6e4f;Text=#ffffff";

static void objects_colour(hwloc_obj_t o)
{
	hwloc_obj_add_info(o, "lstopoStyle", chosen);
	for (unsigned i = 0; i < o->arity; i++)
		objects_colour(o->children[i]);
}

static int colour_cores(hwloc_topology_t t, const char *cores, struct err *e)
{
	unsigned count;
	unsigned char *wanted = machine_select(t, cores, &count, e);

	if (!wanted)
		return -1;
	for (unsigned i = 0; i < count; i++)
		if (wanted[i])
			objects_colour(hwloc_get_obj_by_type(t, machine_core_type(t), i));
	free(wanted);
	return 0;
}

/* An unlinked temporary file with these bytes, open. */
static int unnamed_file(const struct buf *b, struct err *e)
{
	char path[] = "/tmp/topiary.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0)
		return err_set(e, "%s: %s", path, strerror(errno));
	unlink(path);
	if ((b && write(fd, b->data, b->len) != (ssize_t) b->len) || lseek(fd, 0, SEEK_SET)) {
		err_set(e, "%s: %s", path, strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * Draws the levels that matter to jobs: packages, memory, L3 and L2 caches, cores, PUs and devices. The size of an L2
 * cache is left out, so that all cores have the same width. lstopo gets none of the caller's environment:
 * HWLOC_THISSYSTEM and the like would change the picture.
 */
static int run_lstopo(int in, int out, const char *const *caption, struct err *e)
{
	static char *const fixed[] = {
		LSTOPO, "--input", "/dev/stdin", "--input-format", "xml", "--output-format", "nativesvg",
		"--disallowed", "--logical", "--no-factorize", "--no-default-legend", "--no-icaches", "--ignore", "L1",
		"--no-attrs=L2", "--no-bridges", "--ignore", "Misc",
	};
	char *argv[sizeof(fixed) / sizeof(fixed[0]) + 2 * DRAW_LINES + 1] = {0};
	char **to = argv + sizeof(fixed) / sizeof(fixed[0]);
	static char *const env[] = { "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", NULL };
	posix_spawn_file_actions_t files;
	int status, rc;
	pid_t pid;

	memcpy(argv, fixed, sizeof(fixed));
	for (int i = 0; i < DRAW_LINES && caption[i]; i++) {
		*to++ = "--append-legend";
		*to++ = (char *) caption[i];
	}
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	rc = posix_spawnp(&pid, LSTOPO, &files, NULL, argv, env);
	posix_spawn_file_actions_destroy(&files);
	if (rc)
		return err_set(e, LSTOPO ": %s", strerror(rc));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(e, LSTOPO ": %s", strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_set(e, LSTOPO " could not draw the topology");
	return 0;
}

/*
 * hwloc 2.9 writes viewBox='0 0 900px 600px', but SVG 1.1 (7.7) requires numbers without units there, and some viewers
 * otherwise show nothing.
 */
static void repair_view(struct buf *svg)
{
	static const char key[] = "viewBox='";
	char *from = strstr(svg->data, key), *to, *end;

	if (!from || !(end = strchr(from + strlen(key), '\'')))
		return;
	to = from += strlen(key);
	for (; from < end; from++)
		if (*from != 'p' && *from != 'x')
			*to++ = *from;
	memmove(to, end, svg->data + svg->len + 1 - end);
	svg->len -= end - to;
}

int draw_svg(const char *xml, size_t len, const char *cores, const char *const caption[static DRAW_LINES],
	     struct buf *out, struct err *e)
{
	hwloc_topology_t t = machine_load(xml, len, e);
	struct buf styled = {0};
	int rc = -1;

	if (!t)
		return -1;
	if ((!cores || colour_cores(t, cores, e) == 0) && machine_export(t, &styled, e) == 0) {
		char path[32];
		int in = unnamed_file(&styled, e), svg = in < 0 ? -1 : unnamed_file(NULL, e);

		snprintf(path, sizeof(path), "/proc/self/fd/%d", svg);
		if (svg >= 0 && run_lstopo(in, svg, caption, e) == 0 && (rc = file_read(path, MAX_SVG, out, e)) == 0)
			repair_view(out);
		if (in >= 0)
			close(in);
		if (svg >= 0)
			close(svg);
	}
	buf_free(&styled);
	hwloc_topology_destroy(t);
	return rc;
}
