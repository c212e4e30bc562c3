/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/core_kind.h"

#define CAPACITY_MAX (1L << 30)	/* Linux' is 1024 for the most performant */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A measure of a kind, greater for faster cores; -1: not known. */
typedef long measure_fn(const struct core_kind_facts *f);

static long by_type(const struct core_kind_facts *f)
{
	static const char *const types[] = { "IntelAtom", "IntelCore" };

	for (size_t i = 0; f->type && i < COUNT(types); i++)
		if (!strcmp(f->type, types[i]))
			return 2 * (i + 1);
	return -1;
}

static long by_capacity(const struct core_kind_facts *f)
{
	long capacity = f->capacity ? strtol(f->capacity, NULL, 10) : -1;

	return capacity < CAPACITY_MAX ? capacity : CAPACITY_MAX;
}

static long by_efficiency(const struct core_kind_facts *f)
{
	return f->frequency && !f->type ? -1 : f->efficiency;
}

static const struct {
	measure_fn *measure;
	unsigned slack;		/* differences of less than one in so many do not count; 0: all count */
} criteria[] = {
	{ by_type, 0 }, { by_capacity, 10 }, { by_efficiency, 0 },
};

/* The least measure above the last by more than the slack, or -1. */
static long next_above(const long *measure, unsigned n, long last, unsigned slack)
{
	long next = -1, above = last < 0 ? -1 : slack ? last + last / slack : last;

	for (unsigned i = 0; i < n; i++)
		if (measure[i] > above && (next < 0 || measure[i] < next))
			next = measure[i];
	return next;
}

static unsigned rank_by(const long *measure, unsigned n, unsigned slack, unsigned char *kinds)
{
	unsigned kind = 0;
	long from = next_above(measure, n, -1, slack);

	memset(kinds, 0, n);
	while (kind + 1 < CORE_KINDS_MAX && (from = next_above(measure, n, from, slack)) >= 0) {
		kind++;
		for (unsigned i = 0; i < n; i++)
			if (measure[i] >= from)
				kinds[i] = kind;
	}
	return kind + 1;
}

unsigned core_kinds_rank(const struct core_kind_facts *facts, unsigned n, unsigned char *kinds)
{
	long measure[CORE_KINDS_HWLOC];

	memset(kinds, 0, n);
	if (n > CORE_KINDS_HWLOC)
		return 1;
	for (size_t c = 0; c < COUNT(criteria); c++) {
		unsigned known = 0;

		for (unsigned i = 0; i < n; i++)
			known += (measure[i] = criteria[c].measure(&facts[i])) >= 0;
		if (n && known == n)
			return rank_by(measure, n, criteria[c].slack, kinds);
	}
	return 1;
}

void core_kind_read(struct core_kind_facts *f, const char *name, const char *value)
{
	if (!strcmp(name, "CoreType"))
		f->type = value;
	else if (!strcmp(name, "LinuxCapacity"))
		f->capacity = value;
	else if (!strncmp(name, "Frequency", strlen("Frequency")))
		f->frequency = true;
}
