/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_PLACE_H
#define TOPIARY_BIND_PLACE_H

#include <hwloc.h>

#include "base/err.h"
#include "bind/request.h"

/*
 * The PUs of each of a node's tasks, out of those of a topology that is restricted to the job's cores.
 *
 * compact[:LEVEL]	tasks side by side in tree order, each so many whole cores as it needs CPUs, or half of them with two
 *			SMT siblings each where there are no more; with a level, a task does not reach over the end of a
 *			domain of it as long as there is room within one
 * scatter[:LEVEL]	tasks as far apart as possible over the domains of the level, evenly, and side by side within a domain;
 *			when none is named, over NUMA nodes, and likewise over all that a NUMA node holds. Cores as above
 * mem			memory first, as mpibind (Leon, MEMSYS 2017) has it: NUMA nodes in proportion to their PUs, then down to
 *			the first level with enough objects, one PU of each; SMT siblings only where cores do not suffice.
 *			Fewer tasks than NUMA nodes: each has whole ones, or the largest of them where its CPUs go into that.
 *			Where all this leaves tasks short that need not be: compact:numa
 *
 * Cores are split where whole ones do not suffice for all tasks. masks[0 .. ntasks-1] are the caller's, allocated and
 * empty. cpus: of a task; 0: nobody said, which is 1 but for mem, where tasks then share out all cores. More CPUs asked than
 * there are: tasks share PUs evenly. 0, or -1 with an error: a level that this topology does not have, memory.
 */
int place_tasks(hwloc_topology_t t, const struct bind_request *r, unsigned ntasks, unsigned cpus, hwloc_bitmap_t *masks, struct err *e);

#endif
