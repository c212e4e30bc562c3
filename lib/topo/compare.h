/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_COMPARE_H
#define TOPIARY_TOPO_COMPARE_H

#include "topo/tree.h"

/*
 * What changed between two topologies, in words that a person uses: "NUMA node 3: memory 64 GiB -> 48 GiB", "mlx5_1 gone", "core 17
 * offline" (when the machine still has its PUs, but does not let use them).
 *
 * Objects are the same in both when they have the same name of their own: processors and caches by the OS indexes of their PUs, memory
 * by its OS index, PCI devices by bus id, OS devices by where they are plugged in, else by name; what was only numbered anew is said to
 * be so. A thing that goes takes what is in it along: a package that is gone is one change, not a hundred, and a PCI device is called
 * by its OS device. Equal changes of several things of a kind are one: "cores 16-19 offline". gp_index and userdata are no changes.
 */
enum severity {
	SEVERITY_IDENTITY,	/* what tells one node from its twin: names, serial numbers, addresses, some pages of memory */
	SEVERITY_COSMETIC,	/* kernel, BIOS, firmware and driver versions, steppings, unknown infos; nothing a job would feel */
	SEVERITY_WIRING,	/* the same parts elsewhere: bus, locality, link speed and state, numbering, distances, groups */
	SEVERITY_CAPACITY,	/* less, more or other to compute with: cores, memory, caches, GPUs, NICs, disks, models */
	SEVERITY_COUNT,
};

/* "identity", "cosmetic", "wiring", "capacity": constants; severity_parse gives -1 for another name. */
const char *severity_name(enum severity s);
int severity_parse(const char *name);

enum direction { CHANGE_GONE, CHANGE_EXTRA, CHANGE_CHANGED, DIRECTION_COUNT };
const char *direction_name(enum direction d);	/* "gone", "extra", "changed" */

struct change {
	enum severity severity;
	enum direction direction;	/* memory that shrank, a core offline are GONE: there is less; memory that grew is EXTRA */
	char *object;			/* as tree_label has it, in the second tree when it is new there; "cores 3,16-19" */
	char *what;			/* "memory", "link speed", an info's name, ...; empty when the object itself came or went */
	char *from, *to;		/* as the XML has them, bytes for memory; empty for none; of several objects the first's */
	char *words;			/* the sentence */
};

struct changes {
	struct change *list;		/* gravest first, then in the order of the document */
	size_t n;
};
void changes_free(struct changes *c);

/* From a to b. 0, or -1 when memory is short. */
int compare_trees(const struct tree *a, const struct tree *b, struct changes *out, struct err *e);

/* The severity of a change in the value of an <info> (or "memory", "pages 4096") by its name alone, for texts that differ in fields. */
enum severity compare_fact(const char *name);

/* The changes from a to b of one such value as a change, in its words. 0 or -1. */
int change_of_fact(const char *object, const char *name, const char *from, const char *to, struct change *out, struct err *e);
void change_free(struct change *c);

/*
 * Expectation and reality, as Flux's resource.verify has it: allow-extra forgives what is there beyond the expected, allow-missing what
 * is not there, strict neither, ignore everything. The gravest severity that is not forgiven, or -1 when nothing is left; identity is
 * always forgiven.
 */
enum verify_mode { VERIFY_STRICT, VERIFY_ALLOW_EXTRA, VERIFY_ALLOW_MISSING, VERIFY_IGNORE };
int verify_mode_parse(const char *name);	/* "strict", "allow-extra", ...; -1 */
int changes_verdict(const struct changes *c, enum verify_mode mode);

#endif
