/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
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
 * strings.c writes them; what is of the allocation alone is found by strings_allocation.c.
 */
struct strings {
	char *cores, *hierarchy, *detail, *allocation;
	unsigned ncores, npus;
};

/* 0, or -1 with out untouched: a tree without PU, or memory is short. Free with strings_free. */
int strings_make(const struct tree *t, struct strings *out, struct err *e);
void strings_free(struct strings *s);

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
int strings_devices(const struct tree *t, const struct tree_extent *extents, struct buf *out);

/*
 * The kind of each core of a tree (shape/core_kind.h), by the index of its object, 0 for other objects, and for all
 * cores unless each has a kind. Malloc'ed; NULL when memory is short.
 */
unsigned char *strings_core_kinds(const struct tree *t, const struct tree_extent *extents);

/*
 * The tier of each NUMA node of a tree, by the index of its object, and TIER_DRAM for other objects. Bandwidths are the
 * document's memory attributes, the greatest from any cores. Malloc'ed; NULL when memory is short.
 */
unsigned char *strings_tiers(const struct tree *t, const struct tree_extent *extents);
