/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWXML_TREE_H
#define TOPIARY_HWXML_TREE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "hwxml/xml_grammar.h"

/*
 * A topology's XML as a tree to be looked at: objects in document order, which for objects of the tree is hwloc's
 * logical order. No hwloc in it: what registries and people compare is what the document says. Read only what
 * canon_parse accepts; tree_parse calls it first. All strings are the tree's.
 *
 * Attributes are those of hwloc 2: of hwloc 3 they are translated (tree_hwloc3.c), its infos of the topology are infos
 * of the root, and what hwloc derives (memory tiers, PCI localities) is left out. Values of infos stay as they are in
 * the text, because fields of it are decoded into them.
 */
struct tree_pair {
	const char *name, *value;	/* escapes undone */
	unsigned line;			/* of the XML as it was given, from 0: where the start tag begins */
};

struct tree_object {
	const struct xml_type *type;
	int parent;			/* index, -1 for the root; a parent comes before its children */
	unsigned depth;
	unsigned logical;		/* from 0, among the objects of its type (L2Cache and L3Cache are two) */
	long os_index;			/* -1: none */
	unsigned line;
	struct tree_pair *attrs;	/* all of them as the XML has them, os_index and type too */
	size_t nattrs;
	struct tree_pair *infos;	/* <info>; <page_type> as "pages 4096" and the count ("0" without one) */
	size_t ninfos;
};

/*
 * An element beside the objects: distances, memory attributes, kinds of CPU and what is in them; each is followed by
 * its children.
 */
struct tree_extra {
	const struct xml_element *element;
	unsigned line;
	struct tree_pair *attrs;
	size_t nattrs;
	const char *text;		/* "" when it holds none */
};

struct tree {
	const char *version;		/* "2.0", "3.0" */
	struct tree_object *objects;
	size_t n;
	struct tree_extra *extras;	/* without <support> */
	size_t nextras;
	struct buf canonical;		/* the canonical form, from canon_parse */
	struct tree_own *own;
};

/* name is for errors. NULL on error; free with tree_free, which accepts NULL. */
struct tree *tree_parse(const char *xml, size_t len, const char *name, struct err *e);
void tree_free(struct tree *t);

/* An attribute's or an info's value, NULL when there is none; of several of a name the first. */
const char *tree_attr(const struct tree_object *o, const char *name);
const char *tree_info(const struct tree_object *o, const char *name);
const char *tree_extra_attr(const struct tree_extra *x, const char *name);
/* A number from an attribute, or other when there is none. */
unsigned long long tree_number(const struct tree_object *o, const char *name, unsigned long long other);

/* The object with this gp_index, as elements beside the objects refer to it, or -1. */
long tree_by_gp(const struct tree *t, unsigned long long gp);

/*
 * How people call an object: "machine", "package 1", "NUMA node 3", "core 17" (logical number within the node), "PU 34"
 * (the OS index for PU and NUMA node, hwloc's P#), "L3 cache 2", "PCI 0000:41:00.0", "mlx5_1" (an OS device by its
 * name), "memory module DIMM_A1". Appended to out.
 */
void tree_label(const struct tree *t, size_t object, struct buf *out);
/* "core", "L3 cache", ...: what the label of such an object begins with. A constant. */
const char *tree_kind(const struct tree_object *o);

/*
 * All values that fields (delta/field_layout.h) may hold, and what else people ask of a node, a line each:
 * "LINE\tOBJECT\tNAME\tVALUE\n", LINE from 0 in the XML as given, OBJECT as tree_label has it ("CPU kind 0" for kinds
 * of CPU), NAME the info's name, "memory" for local_memory, "pages 4096" for a page_type's count. Tabs, line ends and
 * other control characters become spaces. Appended to out.
 */
void tree_facts(const struct tree *t, struct buf *out);

#endif
