/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)
#include "topiary.h"
#pragma GCC visibility pop

#include "hwview/image.h"

static _Thread_local struct err reason;

static bool env_has(void *, const char *name)
{
	return getenv(name);
}

static const char *xml_file(void)
{
	return image_overruled(env_has, NULL) ? NULL : secure_getenv("HWLOC_XMLFILE");
}

/* The image stands beside the XML that the environment names: another file there is the user's own choice. */
static int from_shmem(hwloc_topology_t *t)
{
	const char *xml = xml_file(), *name = xml ? strrchr(xml, '/') : NULL;
	char file[4096];

	if (!xml)
		return err_set(&reason, "no step topology in the environment (HWLOC_XMLFILE)");
	if (!name || strcmp(name + 1, IMAGE_XML))
		return err_set(&reason, "HWLOC_XMLFILE=%s is not a step topology", xml);
	if ((size_t) (name - xml) + sizeof(IMAGE_SHM) + 1 > sizeof(file))
		return err_set(&reason, "HWLOC_XMLFILE is too long");
	memcpy(file, xml, name + 1 - xml);
	strcpy(file + (name + 1 - xml), IMAGE_SHM);
	return image_from_shm(file, t, &reason);
}

static int image_load_step(hwloc_topology_t *out, const char *xml)
{
	hwloc_topology_t t;
	int saved;

	if (hwloc_topology_init(&t))
		return -1;
	if (!hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) &&
	    !(xml && hwloc_topology_set_xml(t, xml)) && !hwloc_topology_load(t)) {
		*out = t;
		return 0;
	}
	saved = errno;
	hwloc_topology_destroy(t);
	errno = saved;
	return -1;
}

static int from_xml(hwloc_topology_t *t)
{
	const char *xml = xml_file();

	if (!xml)
		return -1;
	return image_load_step(t, xml) ? err_set(&reason, "HWLOC_XMLFILE=%s: %s", xml, strerror(errno)) : 0;
}

static int from_discovery(hwloc_topology_t *t)
{
	return image_load_step(t, NULL);
}

/* What stands in shared memory cannot be changed. */
static int make_writable(hwloc_topology_t *t)
{
	hwloc_topology_t adopted = *t;
	int rc = hwloc_topology_dup(t, adopted), saved = errno;

	hwloc_topology_destroy(adopted);
	errno = saved;
	return rc;
}

int topiary_topology_load(hwloc_topology_t *topology, unsigned long flags)
{
	static int (*const from[])(hwloc_topology_t *t) = {
		[TOPIARY_SHMEM] = from_shmem, [TOPIARY_XML] = from_xml, [TOPIARY_DISCOVERY] = from_discovery,
	};
	hwloc_topology_t t;
	int source = TOPIARY_SHMEM;

	if (flags & ~TOPIARY_WRITABLE) {
		errno = EINVAL;
		return -1;
	}
	*reason.text = '\0';
	while (from[source](&t))
		if (++source > TOPIARY_DISCOVERY)
			return -1;
	if (source == TOPIARY_SHMEM && (flags & TOPIARY_WRITABLE) && make_writable(&t))
		return -1;
	*topology = t;
	return source;
}

const char *topiary_topology_reason(void)
{
	return reason.text;
}
