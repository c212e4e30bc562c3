/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "shape/level.h"
#include "shape/tier.h"

/*
 * The shape of a node: its hardware without serial numbers and addresses. Nodes bought together have one shape.
 *
 * It is written as hwloc's synthetic string (hwloc manual, "Synthetic topologies") wherever that can express it:
 *	Package:2 [NUMANode] L3Cache:4 L2Cache:8 Core:1 PU:2
 * Each element multiplies: Type:N is N objects of that type under each object of the element before. [NUMANode]
 * attaches memory there. Children that differ, which hwloc's syntax cannot express, are listed in logical order in
 * braces, in runs of equal ones; this is the only extension:
 *	{ Package:1 Core:8 PU:2 | Package:1 Core:4 PU:2 }
 * Types that are not a level (Group, L1Cache) are allowed and ignored. Every core has at least one PU; cores are
 * numbered from 0 in the order of the text, which is hwloc's logical order.
 *
 * Allocation needs more, which is optional: of the attributes in parentheses, three are read and the others ignored:
 * memory=N of a NUMA node, with hwloc's units (kB is 1000 bytes, KiB 1024, and so on to TB and TiB), tier=WORD of a
 * NUMA node (shape/tier.h), dram without it, and kind=N of a core, from 0, the most efficient. After the tree, devices
 * follow with the cores that they are near:
 *	Package:2 [NUMANode(memory=64GiB)] Core:16 PU:2 + GPU0@16-31 GPU1@0-15 NIC@3
 *	Package:2 [NUMANode(memory=64GiB)] [NUMANode(memory=16GiB tier=hbm)] Core:16 PU:2
 *	Package:1 { L2Cache:8 Core:1(kind=1) PU:2 | L2Cache:4 Core:4 PU:1 }
 * topiary-shape(7) is the reference for users.
 *
 * Independent of Slurm, hwloc and XML: slurmctld reads shapes.
 */
struct shape_domain {
	enum level level : 16;
	enum tier tier : 16;	/* of its memory */
	unsigned first, cores;	/* the cores first .. first+cores-1 */
	int parent;		/* index of the parent domain, -1 for the node */
	unsigned long long memory;	/* bytes, of the first tier that its NUMA nodes have; 0: not in the text */
};

/*
 * The NUMA nodes of the cores: those with memory and no other such inside, and those without memory that are in none,
 * in order. None unless there are at least two, each of several cores, together they have all cores, and one has
 * memory.
 */
struct shape_numas {
	unsigned *domains;	/* indexes into the shape's domains */
	unsigned count;
	unsigned long long least, all;	/* bytes of the smallest, of all */
	unsigned long long others;	/* bytes of other tiers on the node, which are not the cores' normal memory */
};

struct shape_device {
	char type[8];		/* "GPU", "NIC" */
	int number;		/* the driver's and Slurm's (shape/gpu_number.h); -1: not known */
	unsigned first, cores;	/* near the cores first .. first+cores-1 */
};

struct shape {
	char *text;		/* as given */
	unsigned cores, pus;
	unsigned *threads;	/* PUs of each core: threads[cores] */
	unsigned char *kinds;	/* the kind of each core; NULL if all are of one */
	unsigned nkinds;	/* at least 1: the greatest kind and 1 */
	struct shape_domain *domains;	/* in preorder, the node first, cores included */
	size_t ndomains;
	struct shape_numas numas;
	struct shape_device *devices;	/* in the order of the text */
	size_t ndevices;
};

#define SHAPE_MAX_CORES 65536u
#define SHAPE_MAX_DEVICES 4096u
#define SHAPE_MAX_DEPTH 32
#define SHAPE_MAX_KINDS 8u

/* Parses a shape. NULL with an error that quotes the text there. Free with shape_free, which accepts NULL. */
struct shape *shape_parse(const char *text, struct err *e);

/* The same hardware with its first cores alone, of which it has more: as Slurm sees a node that has fewer there. */
struct shape *shape_first_cores(const struct shape *of, unsigned cores, struct err *e);
void shape_free(struct shape *s);
