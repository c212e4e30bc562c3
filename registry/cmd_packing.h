/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_PACKING_H
#define TOPIARY_REGISTRY_CMD_PACKING_H

#include "base/err.h"
#include "base/hash.h"
#include "topo/inventory.h"

/*
 * Packing files as the registry packs nodes, with time to look at all of them before a choice is made. Files that differ in fields
 * alone are a group, whose form is learned from all of them. A group has a base of its own where that takes fewer bytes than to
 * keep each of its files as a patch against the base of another.
 */
enum packed_kind { PACKED_BASE, PACKED_FIELDS, PACKED_PATCH };

struct packed {
	const char *file;	/* borrowed */
	char sha256[HASH_HEX];
	char shape[SHAPE_NAME];	/* "-": XML of hwloc 1, of which no shape is read */
	size_t xml_bytes, bytes;
	enum packed_kind kind;
	int base;		/* index of its file, -1: none */
	int group;
};

struct packing {
	struct packed *files;	/* in the order given */
	size_t n;
	size_t form_bytes;	/* of the forms of all bases */
};

/*
 * Pack all, each turned back into its file and compared to the byte. Progress on stderr. 0, or -1 with an error naming the file. Free
 * with packing_free.
 */
int packing_run(char *const *files, size_t n, struct packing *out, struct err *e);
void packing_free(struct packing *p);

#endif
