/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/tier.h"

#include "base/std.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const names[TIER_COUNT] = {
	[TIER_DRAM] = "dram", [TIER_HBM] = "hbm", [TIER_CXL] = "cxl", [TIER_NVM] = "nvm", [TIER_GPU] = "gpu",
};

int tier_parse(const char *name)
{
	for (int i = 0; i < TIER_COUNT; i++)
		if (!strcasecmp(name, names[i]))
			return i;
	return -1;
}

const char *tier_name(enum tier tier)
{
	return tier < TIER_COUNT ? names[tier] : "?";
}

/* hwloc's subtypes; those of CXL memory begin with "CXL-". */
static const struct {
	const char *subtype;
	enum tier tier;
} subtypes[] = {
	{ "DRAM", TIER_DRAM }, { "HBM", TIER_HBM }, { "MCDRAM", TIER_HBM }, { "NVM", TIER_NVM },
	{ "GPUMemory", TIER_GPU },
};

static int subtype_tier(const char *subtype)
{
	if (!subtype)
		return -1;
	if (!strncmp(subtype, "CXL", 3))
		return TIER_CXL;
	for (size_t i = 0; i < COUNT(subtypes); i++)
		if (!strcmp(subtype, subtypes[i].subtype))
			return subtypes[i].tier;
	return -1;
}

static bool is(const char *value, const char *word)
{
	return value && !strcmp(value, word);
}

int tier_is_plain(const struct tier_facts *f)
{
	int tier = subtype_tier(f->subtype);

	return tier == TIER_DRAM || (tier < 0 && !is(f->subtype, "SPM") && !f->dax);
}

enum tier tier_of(const struct tier_facts *f)
{
	bool known = f->bandwidth && f->other;
	int tier = subtype_tier(f->subtype);

	if (tier >= 0)
		return tier;
	if (is(f->dax, "NVM"))
		return TIER_NVM;
	if (is(f->subtype, "SPM") || is(f->dax, "SPM"))
		return known && f->bandwidth <= f->other ? TIER_CXL : TIER_HBM;
	return known && f->bandwidth / 2 > f->other ? TIER_HBM : TIER_DRAM;
}
