/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/level.h"

#include "base/std.h"

const double level_default_cost[LEVEL_COUNT] = {
	[LEVEL_NODE] = 100,
	[LEVEL_PACKAGE] = 20,
	[LEVEL_DIE] = 14,
	[LEVEL_NUMA] = 12,
	[LEVEL_L3] = 8,
	[LEVEL_L2] = 4,
	[LEVEL_CORE] = 2,
};

/* The first name of each level is the one that is printed; the others are those of hwloc and Slurm. */
static const struct {
	const char *name;
	enum level level;
} names[] = {
	{ "node", LEVEL_NODE }, { "machine", LEVEL_NODE },
	{ "package", LEVEL_PACKAGE }, { "socket", LEVEL_PACKAGE }, { "pack", LEVEL_PACKAGE },
	{ "die", LEVEL_DIE },
	{ "numa", LEVEL_NUMA }, { "numanode", LEVEL_NUMA },
	{ "l3", LEVEL_L3 }, { "l3cache", LEVEL_L3 },
	{ "l2", LEVEL_L2 }, { "l2cache", LEVEL_L2 },
	{ "core", LEVEL_CORE },
};

int level_parse(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcasecmp(name, names[i].name))
			return names[i].level;
	return -1;
}

const char *level_name(enum level level)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].level == level)
			return names[i].name;
	return "?";
}

const char *level_noun(enum level level, unsigned long n)
{
	static const char *const nouns[LEVEL_COUNT][2] = {
		[LEVEL_NODE] = { "node", "nodes" }, [LEVEL_PACKAGE] = { "package", "packages" },
		[LEVEL_DIE] = { "die", "dies" }, [LEVEL_NUMA] = { "NUMA node", "NUMA nodes" },
		[LEVEL_L3] = { "L3 cache", "L3 caches" }, [LEVEL_L2] = { "L2 cache", "L2 caches" },
		[LEVEL_CORE] = { "core", "cores" },
	};

	return nouns[level][n != 1];
}
