/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "hwxml/xml_grammar.h"

/*
 * A topology's XML as a tree of objects in document order, which for objects of the tree is hwloc's logical order.
 * Independent of hwloc: registries and people compare what the document states. Reads only what canon_read, which it
 * calls, accepts. All strings belong to the tree.
 *
 * Attributes have the form of hwloc 2; those of hwloc 3 are translated: its infos of the topology
 * become infos of the root, and values that hwloc derives (memory tiers, PCI localities) are left out. Values of infos
 * remain as in the text, because fields of it are decoded into them.
 */
struct tree_pair {
	const char *name, *value;	/* unescaped */
	unsigned line;			/* of the XML as given, from 0: the line of the start tag */
};

struct tree_object {
	const struct xml_type *type;
	int parent;			/* index, -1 for the root; parents come before their children */
	unsigned depth;
	unsigned logical;		/* from 0, among objects of its type (L2Cache and L3Cache are two) */
	long os_index;			/* -1: none */
	unsigned line;
	struct tree_pair *attrs;	/* all attributes of the XML, including os_index and type */
	size_t nattrs;
	struct tree_pair *infos;	/* <info>; <page_type> as "pages 4096" and the count ("0" without one) */
	size_t ninfos;
};

/*
 * An element outside the objects: distances, memory attributes, kinds of CPU and their contents; each is followed by
 * its children.
 */
struct tree_extra {
	const struct xml_element *element;
	unsigned line;
	struct tree_pair *attrs;
	size_t nattrs;
	const char *text;		/* "" if empty */
};

struct tree {
	const char *version;		/* "2.0", "3.0" */
	struct tree_object *objects;
	size_t n;
	struct tree_extra *extras;	/* without <support> */
	size_t nextras;
	struct tree_own *own;
};

/* name is for errors. NULL on error; free with tree_free, which accepts NULL. */
struct tree *tree_parse(const char *xml, size_t len, const char *name, struct err *e);
void tree_free(struct tree *t);

/* The value of an attribute or an info, NULL if there is none; the first of several with the name. */
const char *tree_attr(const struct tree_object *o, const char *name);
const char *tree_info(const struct tree_object *o, const char *name);
const char *tree_extra_attr(const struct tree_extra *x, const char *name);
/* The number in an attribute, or other if there is none. */
unsigned long long tree_number(const struct tree_object *o, const char *name, unsigned long long other);

/* The object with this gp_index, to which elements outside the objects refer, or -1. */
long tree_by_gp(const struct tree *t, unsigned long long gp);

/*
 * An object's label for messages: "machine", "package 1", "NUMA node 3", "core 17" (logical number within the node),
 * "PU 34" (the OS index for PU and NUMA node, hwloc's P#), "L3 cache 2", "PCI 0000:41:00.0", "mlx5_1" (an OS device by
 * its name), "memory module DIMM_A1". Appended to out.
 */
void tree_label(const struct tree *t, size_t object, struct buf *out);
/* "core", "L3 cache", ...: the beginning of such an object's label. A constant. */
const char *tree_kind(const struct tree_object *o);

/*
 * All values that fields (delta/field_layout.h) may have, and other facts of interest, a line each:
 * "LINE\tOBJECT\tNAME\tVALUE\n", LINE from 0 in the XML as given, OBJECT as in tree_label ("CPU kind 0" for kinds of
 * CPU), NAME the info's name, "memory" for local_memory, "pages 4096" for a page_type's count. Tabs, line ends and
 * other control characters become spaces. Appended to out.
 */
void tree_facts(const struct tree *t, struct buf *out);

/*
 * What each object of a tree contains: cores, PUs, the objects of its subtree. For lib/shape and lib/map/matrix. A
 * PU outside any core counts as a core of its own.
 */
struct tree_extent {
	size_t next;		/* the first object after its subtree */
	long core;		/* the core that it is or belongs to, -1 */
	unsigned pus, cores;	/* number in its subtree, itself included */
	unsigned first;		/* logical index of its first core */
};

/* One per object, freed by the caller; NULL when memory is short. */
struct tree_extent *tree_extents(const struct tree *t);

bool tree_object_is(const struct tree *t, size_t object, const char *type);

/* The nearest ancestor of a device or memory that has cores, the object itself if it has; the root when none has. */
size_t tree_extent_around(const struct tree *t, const struct tree_extent *s, size_t object);
