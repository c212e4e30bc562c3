/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

/*
 * The tiers of memory, DRAM and whatever is not marked first. The order is that in which memory counts as the normal
 * memory of cores that have several kinds (tier_normal): a job's memory is counted there, and tasks get it by default.
 */
enum tier {
	TIER_DRAM,
	TIER_HBM,
	TIER_CXL,
	TIER_NVM,
	TIER_GPU,
	TIER_COUNT,
};

/* "dram", "hbm", "cxl", "nvm", "gpu" in any case, or -1; and the constant of a tier. */
int tier_parse(const char *name);
const char *tier_name(enum tier tier);

/*
 * What a topology states of a NUMA node. The names are those of hwloc 2.0 to 3.0 (hwloc/topology-linux.c, memattrs.c):
 * HBM, MCDRAM, NVM, GPUMemory, CXL-DRAM and so on; SPM is memory that firmware reserves for special purposes.
 */
struct tier_facts {
	const char *subtype, *dax;	/* its subtype and its info DAXType; NULL: none */
	unsigned long long bandwidth;	/* its own; 0: not known */
	unsigned long long other;	/* the least of other memory of these cores without a subtype or DAXType */
};

/*
 * The tier of a NUMA node: what hwloc calls it; SPM is HBM unless it is known to be no faster than the memory beside
 * it, and then CXL; memory without a name is HBM if it has more than twice the bandwidth of the memory beside it
 * (hwloc's own rule, memattrs.c); else DRAM.
 */
enum tier tier_of(const struct tier_facts *f);

/* Whether a node has no name of its own, so that its bandwidth counts as `other` of its neighbours. */
int tier_is_plain(const struct tier_facts *f);
