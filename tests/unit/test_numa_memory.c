/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/numa_memory.h"
#include "table.h"

#define CORES 16

/* The limits as text: "first+cores<=most ...". used: MB of each job on a range of cores. */
struct row {
	const char *why, *shape;
	uint64_t capacity, wanted;
	unsigned cores;
	struct {
		unsigned first, cores;
		uint64_t memory;
	} jobs[3];
	uint64_t busy;		/* cores that are not free */
	const char *limits;
};

static const char two[] = "Package:2 [NUMANode(memory=8GiB)] Core:4 PU:1";
static const char four[] = "NUMANode:4(memory=4GiB) Core:4 PU:2";

static const struct row rows[] = {
	{ "all free", two, 16000, 8000, 4, .limits = "" },
	{ "more than one has", two, 16000, 12000, 4, .limits = "0+4<=2 4+4<=2 " },
	{ "more than the node has", two, 16000, 20000, 8, .limits = "0+4<=3 4+4<=3 " },
	{ "one is full", two, 16000, 4000, 2, { { 0, 1, 8000 } }, 0x1, "0+4<=0 " },
	{ "one has half of it", two, 16000, 4000, 2, { { 0, 1, 6000 } }, 0x1, "0+4<=1 " },
	{ "one has just enough", two, 16000, 4000, 2, { { 0, 1, 4000 } }, 0x1, "" },
	{ "too few free cores to matter", two, 16000, 4000, 4, { { 0, 3, 6000 } }, 0x7, "" },
	{ "a job in both", two, 16000, 4000, 2, { { 2, 4, 12000 } }, 0x3c, "0+4<=1 4+4<=1 " },
	{ "the excess of one is in the other", two, 16000, 4000, 2, { { 0, 1, 14000 } }, 0x1, "0+4<=0 4+4<=1 " },
	{ "jobs add up", two, 16000, 4000, 4, { { 0, 1, 3000 }, { 1, 1, 4000 }, { 4, 1, 1000 } }, 0x13,
	  "0+4<=1 " },
	{ "of cores that jobs share, too", two, 16000, 4000, 4, { { 0, 1, 2000 }, { 0, 1, 4000 } }, 0x1, "0+4<=2 " },
	{ "capacity is what Slurm may allocate", two, 8000, 4000, 2, .limits = "" },
	{ "with less of it", two, 7000, 4000, 2, .limits = "0+4<=1 4+4<=1 " },
	{ "no memory is wanted", two, 16000, 0, 2, { { 0, 1, 8000 } }, 0x1, "" },
	{ "the shape does not say", "Package:2 [NUMANode] Core:4 PU:1", 16000, 4000, 2, { { 0, 1, 8000 } }, 0x1, "" },
	{ "it says it of a part", "{ Package:1 [NUMANode(memory=8GiB)] Core:4 | Package:1 Core:4 }", 16000, 4000, 2,
	  { { 0, 1, 8000 } }, 0x1, "" },
	{ "one has none", "{ Package:1 [NUMANode(memory=8GiB)] Core:4 | Package:1 [NUMANode] Core:4 }", 8000, 4000, 4,
	  .limits = "4+4<=0 " },
	{ "half of them have none", "{ NUMANode:1 Core:4 | NUMANode:2(memory=4GiB) Core:4 | NUMANode:1 Core:4 }", 8000,
	  8000, 8, .limits = "0+4<=0 12+4<=0 " },
	{ "memory of cores whose own NUMA node has none", "Package:2 [NUMANode(memory=8GiB)] Group:2 [NUMANode] Core:2",
	  16000, 12000, 4, .limits = "0+4<=2 4+4<=2 " },
	{ "HBM where DRAM has none", "Package:2 [NUMANode] [NUMANode(memory=8GiB tier=hbm)] Core:4", 16000, 12000, 4,
	  .limits = "0+4<=2 4+4<=2 " },
	{ "one NUMA node", "[NUMANode(memory=8GiB)] Package:2 Core:4 PU:1",
	  8000, 4000, 2, { { 0, 1, 8000 } }, 0x1, "" },
	{ "a NUMA node around NUMA nodes", "[NUMANode(memory=1GiB)] Package:2 [NUMANode(memory=8GiB)] Core:4 PU:1",
	  16000, 4000, 2, { { 0, 1, 8000 } }, 0x1, "0+4<=0 " },
	{ "unequal ones", "{ Package:1 [NUMANode(memory=12GiB)] Core:4 | Package:1 [NUMANode(memory=4GiB)] Core:4 }",
	  16000, 8000, 4, .limits = "4+4<=2 " },
	{ "HBM is not for it", "Package:2 [NUMANode(memory=8GiB)] [NUMANode(memory=8GiB tier=hbm)] Core:4",
	  32000, 10000, 4, .limits = "0+4<=3 4+4<=3 " },
	{ "nor GPU memory of some", "{ Package:1 [NUMANode(memory=8GiB)] [NUMANode(memory=16GiB tier=gpu)] Core:4 | "
	  "Package:1 [NUMANode(memory=8GiB)] Core:4 }", 32000, 10000, 4, .limits = "0+4<=3 4+4<=3 " },
	{ "nor what is around NUMA nodes", "[NUMANode(memory=16GiB tier=nvm)] Package:2 [NUMANode(memory=8GiB)] Core:4",
	  32000, 10000, 4, .limits = "0+4<=3 4+4<=3 " },
	{ "HBM that Slurm does not count", "Package:2 [NUMANode(memory=8GiB)] [NUMANode(memory=8GiB tier=hbm)] Core:4",
	  16000, 10000, 4, .limits = "0+4<=3 4+4<=3 " },
	{ "HBM alone", "Package:2 [NUMANode(memory=8GiB tier=hbm)] Core:4", 16000, 10000, 4,
	  .limits = "0+4<=3 4+4<=3 " },
	{ "thirds", "NUMANode:3(memory=1GiB) Core:4", 1000, 333, 4, .limits = "" },
	{ "a whole node of thirds", "NUMANode:3(memory=1GiB) Core:4", 1000, 1000, 12, .limits = "" },
	{ "some of four", four, 16000, 8000, 4, { { 0, 2, 4000 }, { 4, 1, 1000 } }, 0x13,
	  "0+4<=0 4+4<=1 8+4<=2 12+4<=2 " },
};

TEST(limits_are_what_memory_allows)
{
	for (size_t r = 0; r < ROWS(rows); r++) {
		struct err e = {0};
		struct shape *s = shape_parse(rows[r].shape, &e);
		uint32_t used[CORES] = {0};
		uint64_t free_cores = ~rows[r].busy;
		struct numa_memory m = { .capacity = rows[r].capacity, .used = used, .wanted = rows[r].wanted };
		struct score_limit limits[CORES];
		char text[256] = "";
		unsigned n;

		if (!s)
			fail_msg("%s: %s", rows[r].why, e.text);
		for (size_t i = 0; i < ROWS(rows[r].jobs); i++) {
			m.held += rows[r].jobs[i].memory;
			for (unsigned c = 0; c < rows[r].jobs[i].cores; c++)
				used[rows[r].jobs[i].first + c] += rows[r].jobs[i].memory * NUMA_MEMORY_UNIT /
								   rows[r].jobs[i].cores;
		}
		n = numa_memory_limits(s, &m, rows[r].cores, &free_cores, limits, CORES);
		for (unsigned i = 0; i < n; i++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u+%u<=%u ", limits[i].first,
				 limits[i].cores, limits[i].most);
		if (strcmp(text, rows[r].limits))
			fail_msg("%s: wanted '%s', got '%s'", rows[r].why, rows[r].limits, text);
		shape_free(s);
	}
}

TESTS_MAIN(NULL, NULL)
