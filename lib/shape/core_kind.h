/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

/*
 * The kinds of a node's cores: performance and efficiency cores of hybrid x86 processors, big and LITTLE ones of ARM. A
 * kind is a number from 0, the most efficient.
 *
 * What hwloc states of one of its kinds of CPU (hwloc/cpukinds.h, hwloc/topology-linux.c). hwloc also distinguishes
 * cores by frequency alone, as of servers with favoured cores; these are of one kind here.
 */
struct core_kind_facts {
	const char *type, *capacity;	/* its infos CoreType and LinuxCapacity; NULL: none */
	bool frequency;			/* it has an info about its frequency */
	long efficiency;		/* -1: not known */
};

#define CORE_KINDS_MAX 8u	/* the last of more is of all that follow */
#define CORE_KINDS_HWLOC 64u	/* hwloc's kinds; if there are more, all cores are of one */

/*
 * The kind of each of n, into kinds[]: by IntelAtom and IntelCore if all are one of these, else by capacity, of which
 * differences below a tenth do not count, else by efficiency unless hwloc may have derived that from frequencies.
 * Returns the number of kinds, 1 if they cannot be ranked.
 */
unsigned core_kinds_rank(const struct core_kind_facts *facts, unsigned n, unsigned char *kinds);

/* Reads an info of hwloc's kind, of which only some matter. The value is borrowed. */
void core_kind_read(struct core_kind_facts *f, const char *name, const char *value);
