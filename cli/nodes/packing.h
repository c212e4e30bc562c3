/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_NODES_PACKING_H
#define TOPIARY_CLI_NODES_PACKING_H

#include "base/err.h"
#include "base/hash.h"
#include "shape/inventory.h"

/*
 * Encode files as the registry encodes nodes, but with all of them known beforehand. Files that differ only in fields
 * form a group, whose field layout is learned from all of them. A group gets a base of its own where that takes fewer
 * bytes than storing each file as a patch against another base. Called by pack.c.
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
	size_t layout_bytes;	/* of the field layouts of all bases */
};

/*
 * Encode all files, rebuild each and compare it to the byte. Progress on stderr. 0, or -1 with an error naming the
 * file. Free with packing_free.
 */
int packing_run(char *const *files, size_t n, struct packing *out, struct err *e);
void packing_free(struct packing *p);

#endif
