/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * topology_make EXPORT CORES FOLDER: what a step with these cores has in its folder, and beside it whole.shm, an image
 * of the whole node by hwloc alone, whose address and length are told.
 */
#include <fcntl.h>
#include <hwloc/shmem.h>
#include <unistd.h>

#include "base/file.h"
#include "base/std.h"
#include "hwview/image.h"
#include "hwview/restrict.h"

static void check(int failed, const struct err *e)
{
	if (!failed)
		return;
	fprintf(stderr, "topology_make: %s\n", e->text);
	exit(1);
}

static int create(const char *folder, const char *name)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if ((fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644)) < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	struct buf whole = {0}, cut = {0};
	void *at = (void *) 0x300000000000;
	hwloc_topology_t t = NULL;
	struct err e = {0};
	size_t length;

	if (argc != 4)
		return 2;
	check(file_read(argv[1], 64 << 20, &whole, &e) || restrict_xml(whole.data, whole.len, argv[2], &cut, &e), &e);
	check(file_write(create(argv[3], IMAGE_XML), cut.data, cut.len), &e);
	check(!(t = image_load(cut.data, cut.len, true, &e)) || image_write(create(argv[3], IMAGE_SHM), t, 0, &e), &e);
	check(!(t = image_load(whole.data, whole.len, true, &e)), &e);
	if (hwloc_shmem_topology_get_length(t, &length, 0) ||
	    hwloc_shmem_topology_write(t, create(argv[3], "whole.shm"), 0, at, length, 0))
		return 1;
	printf("%lx %zu\n", (unsigned long) at, length);
	return 0;
}
