/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwxml/tree_hwloc3.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* "0200 [15b3:1017] [15b3:0003] 00": class, vendor and device twice, revision. */
#define PCI_TYPE 31
#define NONE "99"	/* of no known type: hwloc 2 omits it */

/* hwloc_obj_osdev_types_t of hwloc 3 */
enum {
	STORAGE = 1 << 0, MEMORY = 1 << 1, GPU = 1 << 2, COPROC = 1 << 3, NETWORK = 1 << 4, OPENFABRICS = 1 << 5,
	DMA = 1 << 6,
};

/* As hwloc 3.0 exports them in the format of hwloc 2 (hwloc/topology-xml.c); the first match counts. */
static const struct {
	unsigned long types;		/* any of them */
	const char *attr, *begins;	/* NULL: any */
	const char *type;		/* hwloc_obj_osdev_type_t of hwloc 2 */
} osdev_types[] = {
	{ STORAGE | MEMORY, NULL, NULL, "0" },
	{ OPENFABRICS, NULL, NULL, "3" },
	{ NETWORK, "subtype", "BXI", "3" },
	{ NETWORK, NULL, NULL, "2" },
	{ DMA, NULL, NULL, "4" },
	{ COPROC, "name", "nvml", "1" },
	{ COPROC, "name", "rsmi", "1" },
	{ COPROC, NULL, NULL, "5" },
	{ GPU, NULL, NULL, "1" },
};

static bool attr_begins(const struct tree_pair *attrs, size_t n, const char *name, const char *with)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(attrs[i].name, name))
			return !strncmp(attrs[i].value, with, strlen(with));
	return false;
}

static const char *osdev_type(const struct tree_pair *attrs, size_t n, unsigned long types)
{
	for (size_t i = 0; i < COUNT(osdev_types); i++)
		if (types & osdev_types[i].types &&
		    (!osdev_types[i].attr || attr_begins(attrs, n, osdev_types[i].attr, osdev_types[i].begins)))
			return osdev_types[i].type;
	return NONE;
}

void tree_attrs_translate(struct tree_pair *attrs, size_t n, bool hwloc3)
{
	for (size_t i = 0; i < n; i++) {
		struct tree_pair *a = &attrs[i];

		if (!strcmp(a->name, "pci_type") && strlen(a->value) > PCI_TYPE)
			((char *)a->value)[PCI_TYPE] = '\0';
		else if (hwloc3 && !strcmp(a->name, "osdev_type"))
			a->value = osdev_type(attrs, n, strtoul(a->value, NULL, 10));
	}
}
