/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_STRINGS_PARTS_H
#define TOPIARY_SHAPE_STRINGS_PARTS_H

#include "base/buf.h"
#include "hwxml/tree.h"
#include "shape/core_kind.h"
#include "shape/tier.h"

/* The parts of strings.c, each in a file of its own: PART.c has PART_append or PART_find. */

/*
 * A tree as one line of text (shape/shape.h), appended to out, beginning with a blank. Contains the levels of
 * shape/level.h and other objects with memory, because otherwise a shape would have its memory in the wrong place; or
 * all objects, and the sizes of caches. A PU outside any core counts as a core. An object without PU is left out, and
 * its memory is that of the object around. All memory within a core is the core's. 0, or -1 when memory is short.
 */
struct outline {
	bool all;
	/* The attributes of a NUMA node, appended to out without parentheses; NULL for none. */
	void (*memory)(const struct tree *t, size_t numa, struct buf *out);
	const unsigned char *tiers;	/* by object: write those of NUMA nodes (tiers_find); NULL for none */
	const unsigned char *kinds;	/* by object: write those of cores (core_kinds_find); NULL for none */
};

int outline_append(const struct tree *t, const struct tree_extent *extents, const struct outline *how, struct buf *out);

/*
 * Appends a tree reduced to memory and cores to out: " NUMANode:2 Core:16 PU:2". NUMA nodes with the same cores count
 * as one, and of several around a core the innermost counts. If a core has no memory, or the cores of a memory are not
 * contiguous, only cores and PUs are written. 0, or -1 when memory is short.
 */
int cells_append(const struct tree *t, const struct tree_extent *extents, struct buf *out);

/*
 * Inserts OS indexes into a synthetic description of the tree where they are not 0, 1, 2, ...: indexes= at the first PU
 * for all PUs of the node in logical order, and at the first NUMA node for all NUMA nodes, those inside an object
 * before its own. As loops where possible (hwloc manual, "Synthetic topologies"): "2*8:1*2" counts 0,8,1,9,... 0, or -1
 * when memory is short.
 */
int indexes_append(const struct tree *t, const struct tree_extent *extents, struct buf *text);

/*
 * The devices that can be allocated, each a PCI device, by type and then by core: " + GPU@0-15 GPU@16-31 NIC@0-15"
 * appended to out, nothing when there are none.
 *
 * GPU: a PCI device with an OS device of hwloc's type CoProc (CUDA, OpenCL, Level Zero; other accelerators too), or of
 * type GPU (NVML, RSMI, a DRM render node) unless it is only a display, or with the PCI class of a compute device, if
 * the node has no driver that hwloc queries. The display of a management controller is none.
 *
 * NIC: if the node has a fabric (OS devices of type OpenFabrics), its PCI devices; Ethernet beside it is for
 * management. Otherwise PCI devices of network class with an OS device of type Network whose link is at least a quarter
 * as fast as the fastest. A USB port to the management controller is not of network class.
 *
 * The cores are those of the nearest object around the device that has some. 0, or -1 when memory is short.
 */
int devices_append(const struct tree *t, const struct tree_extent *extents, struct buf *out);

/*
 * The kind of each core of a tree (shape/core_kind.h), by the index of its object, 0 for other objects, and for all
 * cores unless each has a kind. Malloc'ed; NULL when memory is short.
 */
unsigned char *core_kinds_find(const struct tree *t, const struct tree_extent *extents);

/*
 * The tier of each NUMA node of a tree, by the index of its object, and TIER_DRAM for other objects. Bandwidths are the
 * document's memory attributes, the greatest from any cores. Malloc'ed; NULL when memory is short.
 */
unsigned char *tiers_find(const struct tree *t, const struct tree_extent *extents);

/*
 * The children of one object as text; adjacent equal ones are counted: "Core:8 PU:2", or in braces where they differ.
 */
struct runs {
	unsigned n, count;	/* runs before the last one; children in the last */
	const char *type;	/* of the last one, NULL if there is none; borrowed */
	struct buf done, last;
};

/* Adds a child of this type, with the text that follows its count: attributes and everything below it. */
void runs_add(struct runs *r, const char *type, const struct buf *body);

/* Appends " Core:8 PU:2" or " { Core:6 PU:2 | Core:8 PU:1 }" to out, nothing if there was no child, and empties r. */
void runs_append(struct runs *r, struct buf *out);

void runs_free(struct runs *r);

#endif
