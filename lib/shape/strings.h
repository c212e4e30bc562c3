/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_STRINGS_H
#define TOPIARY_SHAPE_STRINGS_H

#include "hwxml/tree.h"

/*
 * A topology as a line of text, at three precisions (Goglin 2017, sections IV-B and V-A, tables II and III), and the
 * one for allocation. In hwloc's synthetic syntax where possible, otherwise with the braces and devices of
 * shape/shape.h.
 *
 *	cores		NUMANode:2 Core:16 PU:2
 *	hierarchy	Package:2 [NUMANode] L3Cache:2 Core:8 PU:2
 *	detail		Package:2 [NUMANode(memory=67108864000)] L3Cache:2(size=33554432) Core:8 PU:2(indexes=2*32:1*2)
 *	allocation	the hierarchy, the nominal memory of each NUMA node (memory_nominal) and its tier unless it is
 *			DRAM, the kind of each core if there are several, the devices and the cores near each:
 *			Package:2 [NUMANode(memory=68719476736)] L3Cache:2 Core:8 PU:2 + GPU@0-15 NIC@16-31
 *
 * See shape/cells.h, outline.h, indexes.h and devices.h.
 */
struct strings {
	char *cores, *hierarchy, *detail, *allocation;
	unsigned ncores, npus;
};

/* 0, or -1 with out untouched: a tree without PU, or memory is short. Free with strings_free. */
int strings_make(const struct tree *t, struct strings *out, struct err *e);
void strings_free(struct strings *s);

#endif
