/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <hwloc/bitmap.h>

#include "base/std.h"
#include "hwcmp/compare.h"
#include "hwxml/tree.h"

/*
 * Matches the objects of two trees, for compare.c. Packages match when they share the OS index of a PU; within them so
 * do dies, caches, cores and groups, and the remaining ones of a type in a package are paired in order: they were
 * renumbered. NUMA nodes match by OS index, PCI devices by bus ID and model, OS devices by the device that they belong
 * to, else by name.
 */
struct compare_side {
	const struct tree *t;
	int *partner;		/* an index into the other side's objects, or -1 */
	int *package;		/* the package an object is in or is, else the root */
	bool *vacant;		/* has no matched PU */
	bool *offline;		/* has unmatched PUs that the other machine has but does not use */
};

struct compare_match {
	struct compare_side side[2];
	int newer;	/* the side that a later hwloc exported, or in a later format; -1: neither */
};

/* 0, or -1 when memory is short. The trees are borrowed. Free with compare_match_free. */
int compare_match_make(const struct tree *a, const struct tree *b, struct compare_match *out);
void compare_match_free(struct compare_match *m);

/* The version of hwloc that exported a topology, "" if unknown. */
const char *compare_match_exporter(const struct tree *t);

/*
 * Whether an info differs only because of the exporting hwloc: a later major version reports more, and hwloc 3 replaced
 * some infos of hwloc 2. An info that only the earlier one has is a difference.
 */
bool compare_match_by_format(const struct compare_match *m, const char *name, const char *from, const char *to);

/* A set of CPUs or NUMA nodes as hwloc writes it, empty for NULL. Freed by the caller; NULL when memory is short. */
hwloc_bitmap_t compare_set_parse(const char *text);

/* The index after the last object of the subtree that begins at object. */
size_t compare_tree_end(const struct tree *t, size_t object);

static inline bool compare_tree_is(const struct tree *t, size_t object, const char *type)
{
	const char *name = t->objects[object].type->name;

	return name[0] == type[0] && !__builtin_strcmp(name, type);
}

/* The part of a sentence after the object: ": memory 64 GiB -> 48 GiB". Appended to out. */
#define SIZE_TEXT 32
void compare_size_format(unsigned long long bytes, char out[static SIZE_TEXT]);	/* "1.25 MiB" */
void compare_size_tail(const char *what, unsigned long long from, unsigned long long to, struct buf *out);
void compare_value_tail(const char *what, const char *from, const char *to, struct buf *out);
void compare_fact_tail(const char *name, const char *from, const char *to, struct buf *out);

/* Equal as text, or as numbers of which one has hwloc 3's unit: "4194304" and "4194304KiB". */
bool compare_fact_equal(const char *from, const char *to);
enum severity compare_fact_severity(const char *name, const char *from, const char *to);
enum change_direction compare_fact_direction(const char *name, const char *from, const char *to);
/* Compares numbers; a value that is empty on one side is new or gone. */
enum change_direction compare_value_direction(const char *from, const char *to);

/*
 * Differences as they are found. Equal ones of cores 16, 17, 18 and 19 are merged into one of "cores 16-19" at the end.
 */
struct compare_remark {
	struct change c;	/* words: the part after the object */
	const char *kind;	/* "core": what number counts; NULL when the object's name is not a number */
	unsigned long number;
	size_t order;		/* in the document */
};

struct compare_remarks {
	struct compare_remark *list;
	size_t n;
	bool failed;
};

/* label: the object's; kind may be NULL. Copies the strings, takes ownership of tail and empties it. */
void compare_remark_add(struct compare_remarks *r, enum severity s, enum change_direction d, size_t order,
			const char *kind, const char *label, const char *what, const char *from, const char *to,
			struct buf *tail);

/* State of a comparison. Each part adds remarks; r.failed is set when memory is short. */
struct comparison {
	struct compare_match m;
	struct compare_remarks r;
	bool *reported;		/* packages of side 0, and its root, whose renumbering was reported */
	struct buf scratch;
};

/* Add a remark on an object of t, one of the two trees; takes ownership of tail. */
void comparison_remark(struct comparison *c, const struct tree *t, size_t object, enum severity s,
		       enum change_direction d, const char *what, const char *from, const char *to, struct buf *tail);

/* Objects that are new, or gone: cores, memory, devices and others without a gone or new parent. */
void compare_presence(struct comparison *c, bool gone);

/*
 * Pairs by name, of which several may have one; those are compared in order. A value that one side lacks is "". 0, or
 * -1 when memory is short.
 */
int compare_pairs(const struct tree_pair *x, size_t nx, const struct tree_pair *y, size_t ny,
		  void (*report)(void *user, const char *name, const char *from, const char *to), void *user);

/* The locality of two matched objects. */
void compare_place(struct comparison *c, size_t a, size_t b);

/*
 * Distances, memory attributes and CPU kinds between objects that are in both trees: one remark each, with the first
 * value that differs and the number of others.
 */
void compare_extras(const struct compare_match *m, struct compare_remarks *r);

/* The OS device after which a PCI device is named, or the PCI device itself. */
size_t compare_device_known_by(const struct tree *t, size_t pci);
