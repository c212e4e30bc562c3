/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_PLACE_H
#define TOPIARY_BIND_PLACE_H

#include <hwloc.h>

#include "base/err.h"
#include "bind/request.h"

/*
 * --topo-place: the PUs of each of a node's tasks, from a topology that is restricted to the step's cores. Called by
 * spank_plugin/task/masks.c.
 *
 * compact[:LEVEL]	consecutive tasks on consecutive cores in tree order, each with as many whole cores as it needs
 *			CPUs, or half as many with two SMT siblings each where there are not enough; with a level, no
 *			task crosses the boundary of one of its domains as long as there is room within one
 * scatter[:LEVEL]	tasks as far apart as possible: evenly over the domains of the level in turn, and on consecutive
 *			cores within a domain; without a level over NUMA nodes, and likewise over the objects in a NUMA
 *			node. Cores as above
 * mem			memory first, as mpibind does (Leon, MEMSYS 2017): tasks to NUMA nodes in proportion to their
 *			PUs, then to the objects of the first level that has enough of them, one PU of each (of all
 *			cores where cpus is not set); SMT siblings only where cores do not suffice. With fewer tasks
 *			than NUMA nodes each has whole nodes, or the largest of them if its CPUs fit into that. Where
 *			this would leave a task too few CPUs that has enough otherwise: compact:numa
 *
 * On nodes with several kinds of core (shape/core_kind.h) no task has cores of two, as long as they hold all tasks so:
 * tasks fill the most performant kind, in order, then the next; each kind as above. Tasks that share out all cores do
 * so in proportion to the cores of each kind.
 *
 * Cores are divided where whole ones do not suffice for all tasks. masks[0 .. ntasks-1] are the caller's, allocated
 * and empty. cpus: per task; 0: not set, which means 1, except for mem, where tasks then share out all cores. If more
 * CPUs are requested than there are, tasks share PUs evenly. 0, or -1 with an error: a level that this topology does
 * not have, memory.
 *
 * whole: a CPU is a core with all its PUs, as where slurm.conf has ThreadsPerCore=1 of a node whose cores have two.
 */
int place_tasks(hwloc_topology_t t, const struct bind_request *r, unsigned ntasks, unsigned cpus, bool whole,
	hwloc_bitmap_t *masks, struct err *e);

#endif
