/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BENCH_CLONES_H
#define TOPIARY_BENCH_CLONES_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Many nodes out of one: what differs between machines of one order differs here too. Host name, serial numbers, UUIDs,
 * addresses (one node's move together, so that a GUID is the same wherever it stands and the ports of a card stay
 * neighbours), LIDs, and the pages that the kernel left. A base that lacks these gets what a real node has: serial
 * numbers, and two network cards a package.
 */
enum variant { VARIANT_NONE, VARIANT_NIC, VARIANT_CORE, VARIANT_DIMM, VARIANT_PCI, VARIANT_COUNT };

/*
 * "nic" (one is missing), "core" (one is offline), "dimm" (one NUMA node has half its memory), "pci" (a card sits
 * elsewhere, at half its speed); -1 for another name.
 */
int variant_parse(const char *name);

struct clones_how {
	size_t pad;			/* grow the document with PCI devices to about so many bytes */
	bool distinct;			/* each number has a set of PCI devices of its own, below 2^20 numbers */
	enum variant variant;
	unsigned which;			/* of the network cards, cores, ...: any number */
};

struct clones;

/* xml is as hwloc writes it, one element a line. NULL with an error that begins with name; free with clones_free. */
struct clones *clones_new(const char *xml, size_t len, const char *name, const struct clones_how *how, struct err *e);
void clones_free(struct clones *c);

/*
 * Node `number` (below 2^24), "cn" and six digits; another generation of it has other serial numbers and pages of
 * memory, as after a repair. The same to the byte each time. Replaces what is in out; out->failed when memory is short.
 */
void clones_make(const struct clones *c, unsigned number, unsigned generation, struct buf *out);

#endif
