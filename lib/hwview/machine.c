/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwview/machine.h"

#include <sched.h>

#include "base/file.h"
#include "hwview/restrict.h"

/*
 * The explicit buffer overrides HWLOC_XMLFILE, HWLOC_SYNTHETIC and HWLOC_FSROOT, which hwloc reads only if no source
 * was set (hwloc_topology_load), and the XML source excludes all others. The rest of hwloc's environment
 * (HWLOC_PLUGINS_PATH, HWLOC_LIBXML) is that of the process: in slurmstepd it is slurmd's, which root wrote.
 */
static int xml_load(hwloc_topology_t t, const char *buffer, int size)
{
	return hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL) ||
	       hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) ||
	       hwloc_topology_set_xmlbuffer(t, buffer, size) ||
	       hwloc_topology_load(t);
}

#define HWLOC_MAJOR (HWLOC_API_VERSION >> 16)

hwloc_topology_t machine_load(const char *xml, size_t len, struct err *e)
{
	hwloc_topology_t t;
	char *copy;

	if (!len || len >= INT_MAX || memchr(xml, '\0', len))
		return err_null(e, "not topology XML (%zu bytes)", len);
	/* hwloc's own parser requires the size to include a NUL at the end; libxml2 accepts it. */
	if (!(copy = strndup(xml, len)) || hwloc_topology_init(&t)) {
		err_set(e, "out of memory");
		free(copy);
		return NULL;
	}
	if (xml_load(t, copy, len + 1)) {
		/* hwloc reports everything that it cannot load as an invalid argument: finds the reason. */
		static const char version[] = "<topology version=\"";
		const char *reason = strerror(errno), *root = strstr(copy, version);
		unsigned long format = root ? strtoul(root + strlen(version), NULL, 10) : 0;

		if (format > HWLOC_MAJOR)
			err_set(e, "XML of hwloc %lu, and this is hwloc %d: set ExportFormat=%d in topiary.conf and "
				"restart topiary-agent", format, HWLOC_MAJOR, HWLOC_MAJOR);
		else
			err_set(e, "hwloc cannot load the XML: %s", reason);
		hwloc_topology_destroy(t);
		t = NULL;
	}
	free(copy);
	return t;
}

/* hwloc's flag for each format that it writes besides its own. */
static const struct { unsigned format; unsigned long flag; } formats[] = {
	{ HWLOC_MAJOR, 0 },
#if HWLOC_API_VERSION >= 0x00030000
	{ 2, HWLOC_TOPOLOGY_EXPORT_XML_FLAG_V2 },
#endif
};

int machine_export(hwloc_topology_t topology, struct buf *out, struct err *e)
{
	return machine_export_as(topology, 2, out, e);
}

int machine_export_as(hwloc_topology_t topology, unsigned format, struct buf *out, struct err *e)
{
	size_t n = sizeof(formats) / sizeof(formats[0]), i = 0;
	struct buf b = {0};
	char *xml;
	int size;

	while (format && i < n && formats[i].format != format)
		i++;
	if (i == n)
		return err_set(e, "hwloc %d cannot export XML of hwloc %u", HWLOC_MAJOR, format);
	if (hwloc_topology_export_xmlbuffer(topology, &xml, &size, formats[i].flag))
		return err_set(e, "hwloc cannot export the topology: %s", strerror(errno));
	buf_add(&b, xml, strnlen(xml, size));
	hwloc_free_xmlbuffer(topology, xml);
	if (b.failed) {
		buf_free(&b);
		return err_set(e, "out of memory");
	}
	*out = b;
	return 0;
}

hwloc_obj_type_t machine_core_type(hwloc_topology_t topology)
{
	return hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
}

hwloc_bitmap_t machine_cpus(const char *state, struct err *e)
{
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	struct buf list = {0};
	char path[64];
	int rc;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s", state);
	rc = file_read(path, 65536, &list, e);
	/* hwloc loses a last CPU that is alone ("0,2\n") before a line break. */
	if (rc == 0 && list.len)
		list.data[strcspn(list.data, "\n")] = '\0';
	if (rc == 0 && (!cpus || hwloc_bitmap_list_sscanf(cpus, list.len ? list.data : "")))
		rc = err_set(e, "%s: not a list of CPUs", path);
	buf_free(&list);
	if (!rc)
		return cpus;
	hwloc_bitmap_free(cpus);
	return NULL;
}

int machine_nearest(hwloc_obj_t pu, hwloc_bitmap_t nodes)
{
	while (pu && !hwloc_bitmap_intersects(pu->nodeset, nodes))
		pu = pu->parent;
	return pu ? hwloc_bitmap_and(nodes, nodes, pu->nodeset) : 0;
}

unsigned char *machine_select(hwloc_topology_t topology, const char *cores, unsigned *count, struct err *e)
{
	int n = hwloc_get_nbobjs_by_type(topology, machine_core_type(topology));
	unsigned char *wanted = n > 0 ? calloc(n, 1) : NULL;

	if (!wanted)
		return err_null(e, n > 0 ? "out of memory" : "the topology has no cores");
	if (cores_parse(cores, wanted, n, e)) {
		free(wanted);
		return NULL;
	}
	*count = n;
	return wanted;
}

enum { MAX_CPUS = 65536, WORDS = MAX_CPUS / (sizeof(long) * CHAR_BIT) };

int machine_bound(pid_t pid, hwloc_bitmap_t out, struct err *e)
{
	unsigned long words[WORDS] = {0};
	unsigned n = WORDS;

	if (sched_getaffinity(pid, sizeof(words), (cpu_set_t *) words))
		return err_set(e, "CPU affinity: %s", strerror(errno));
	while (n && !words[n - 1])
		n--;
	return hwloc_bitmap_from_ulongs(out, n, words) ? err_set(e, "out of memory") : 0;
}

int machine_bind(hwloc_const_bitmap_t cpus, struct err *e)
{
	unsigned long words[WORDS] = {0};

	if (hwloc_bitmap_to_ulongs(cpus, WORDS, words) || sched_setaffinity(0, sizeof(words), (cpu_set_t *) words))
		return err_set(e, "CPU affinity: %s", strerror(errno));
	return 0;
}
