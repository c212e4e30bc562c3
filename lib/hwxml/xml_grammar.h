/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

/*
 * Exactly what hwloc 2.x and 3.0 write: the elements, where they may be, their attributes and the types of their
 * objects (hwloc/topology-xml.c and hwloc/hwloc2.dtd of 2.9 and 3.0, which share the document type).
 */
enum xml_format { XML_HWLOC2, XML_HWLOC3, XML_FORMATS };

enum xml_tag {
	TAG_TOPOLOGY,
	TAG_OBJECT,
	TAG_INFO,
	TAG_PAGE_TYPE,
	TAG_USERDATA,
	TAG_DISTANCES,
	TAG_DISTANCES_HETERO,
	TAG_INDEXES,
	TAG_VALUES,
	TAG_SUPPORT,
	TAG_MEMATTR,
	TAG_MEMATTR_VALUE,
	TAG_CPUKIND,
	TAG_MEMTIER,
	TAG_PCI_LOCALITY,
};

enum xml_value {
	VALUE_TEXT,
	VALUE_NUMBER,
	VALUE_SIZE,	/* a number of bytes or pages: not negative, below 2^64 */
	VALUE_SET,	/* a bitmap of CPUs or NUMA nodes */
	VALUE_TYPE,	/* the type of an object */
	VALUE_GP,	/* the number hwloc gave the object */
	VALUE_REF,	/* the number of another object */
	VALUE_ID,	/* "obj" and the object's own number */
};

enum xml_required { XML_OPTIONAL, XML_REQUIRED, XML_REQUIRED_SET /* of objects of the tree and of memory */ };

struct xml_attr {
	const char *name;
	enum xml_value value;
	enum xml_required required;
};

struct xml_element {
	const char *name;
	enum xml_tag tag;
	unsigned inside[XML_FORMATS];	/* bit 1 << tag of each possible parent element; 0 for the root */
	bool text;		/* contains text, not elements */
	const struct xml_attr *attrs;
	size_t nattrs;
};

/*
 * Objects of the tree contain processors, those of memory contain memory, devices are the I/O tree; Misc may be
 * anywhere.
 */
enum xml_family { FAMILY_TREE, FAMILY_MEMORY, FAMILY_DEVICE, FAMILY_MISC };

struct xml_type {
	const char *name;
	enum xml_family family;
	bool level;		/* a level of shapes */
};

/* Each returns NULL for a name that hwloc does not have. */
const struct xml_element *xml_element_find(const char *name);
const struct xml_type *xml_type_find(const char *name, size_t len);

/* Searches from attribute *at on, where the last call ended: hwloc writes attributes in the order of the table. */
const struct xml_attr *xml_attr_find(const struct xml_element *el, const char *name, size_t *at);

/* Whether an object of family child may be directly below one of family parent. */
bool xml_family_fits(enum xml_family parent, enum xml_family child);

/*
 * The '>' of the tag that begins at xml, before end; *attrs is set to the number of its attributes. NULL if there is
 * none. Needs no parser.
 */
const char *xml_tag_end(const char *xml, const char *end, unsigned *attrs);

/* Whether two documents have the same format and were exported by the same major version of hwloc. Needs no parser. */
bool xml_same_exporter(const char *a, size_t alen, const char *b, size_t blen);

/* Whether value[len] is valid for an attribute of this kind. */
bool xml_value_fits(enum xml_value kind, const char *value, size_t len);
