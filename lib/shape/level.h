/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

/*
 * The hardware levels, from the whole node down to the core. A NUMA node stands for the cores that are local to it,
 * wherever hwloc attaches it in its tree.
 */
enum level {
	LEVEL_NODE,
	LEVEL_PACKAGE,
	LEVEL_DIE,
	LEVEL_NUMA,
	LEVEL_L3,
	LEVEL_L2,
	LEVEL_CORE,
	LEVEL_COUNT,
};

/* Default cost of a unit of traffic between cores that are first in different domains of a level, from the node in. */
extern const double level_default_cost[LEVEL_COUNT];

#define LEVEL_NAMES "node, package, die, numa, l3, l2 or core"

/* The level of a name in any case ("l3", "L3Cache", "package", "socket", ...), or -1. */
int level_parse(const char *name);

/* "node", "package", "die", "numa", "l3", "l2", "core": a constant. */
const char *level_name(enum level level);

/* In a sentence, so many of them: "L3 cache", "NUMA nodes"; a constant. */
const char *level_noun(enum level level, unsigned long n);
