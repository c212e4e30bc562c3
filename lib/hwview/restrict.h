/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWVIEW_RESTRICT_H
#define TOPIARY_HWVIEW_RESTRICT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct hwloc_topology;

/*
 * Parse "0-3,8,10-11", core indices as Slurm gives them in S_STEP_ALLOC_CORES, into a bitmap of max bits: wanted[i] is
 * 1 for a core in the list. At least one core must be named. 0, or -1 with wanted undefined on anything else, or an
 * index of max or more.
 */
int cores_parse(const char *list, unsigned char *wanted, size_t max, struct err *e);

/*
 * Restrict a node's topology, as machine_load gives it, to some of its cores: those PUs, their NUMA nodes, and the I/O
 * devices that stay local, as hwloc_topology_restrict(3) has it. cores is a list as above, of hwloc's logical core
 * indices. OS indices stay; logical ones are counted anew from 0. 0, or -1 with t good for hwloc_topology_destroy only.
 */
int restrict_topology(struct hwloc_topology *t, const char *cores, struct err *e);

/*
 * The same from XML to XML, which must be our own node's export: hwloc is not proof against hostile XML.
 * 0, or -1 with out untouched. The caller frees out.
 */
int restrict_xml(const char *xml, size_t len, const char *cores, struct buf *out, struct err *e);

#endif
