/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "hwxml/xml_grammar.h"

/* hwloc's numbers of objects (gp_index), each with its position in document order, from 1. {0} is an empty set. */
struct xml_ids {
	struct xml_id {
		uint64_t gp;
		unsigned place;
	} *ids;
	size_t n;
};

/* The position of the object, or 0 if there is none. */
unsigned xml_ids_find(const struct xml_ids *s, uint64_t gp);
void xml_ids_free(struct xml_ids *s);

/*
 * The canonical form of hwloc's topology XML (hwloc 2.x and 3.0, hwloc2.dtd), and the strict validation before it.
 *
 * One element a line, two spaces for each level, attributes in their order, one form of escapes; gp_index and hwloc 3's
 * id renumbered from 1 in document order together with every reference to them, because hwloc numbers in the order of
 * discovery. The canonical form of a canonical document is itself, of the same version, and hwloc loads both as the
 * same topology. Everything else is unchanged.
 *
 * Refused, with the line: an internal DTD subset or own entities, elements or attributes that hwloc does not write,
 * more than 64 levels or 200,000 objects, an object of the tree without its four cpusets and nodesets (hwloc 2.9
 * crashes on those), a core without PU.
 */
struct canon {
	struct buf xml;
	char *host;		/* the HostName in the document, or NULL */
	struct xml_ids ids;	/* of its objects */
};

/* An attribute as libxml2 passes it, with '&' written as "&#38;". */
struct canon_attr {
	const struct xml_attr *is;
	const char *value;
	size_t len;
};

/* Copies the value, unescaped and with a NUL, to where there is space for len + 1 bytes. Returns the copy's end. */
char *canon_attr_copy(const struct canon_attr *a, char *to);

/*
 * For tree.c, which builds its objects while the document is validated: the elements that were accepted, from the
 * outside in; `at` is the offset of the end of the start tag, `text` the text or a part of it. start: 0, or -1 when
 * memory is short.
 */
struct canon_sink {
	int (*start)(void *user, const struct xml_element *el, long at, const struct canon_attr *attrs, size_t n);
	void (*text)(void *user, const char *text, size_t len);
	void (*end)(void *user);
	void *user;
};

#define CANON_MAX_BYTES (16u << 20)

/*
 * name is for errors. With a sink the document is validated and out->xml stays empty. 0, or -1 with out untouched. Free
 * with canon_free.
 */
int canon_read(const char *xml, size_t len, const char *name, const struct canon_sink *sink, struct canon *out,
	       struct err *e);
static inline int canon_parse(const char *xml, size_t len, const char *name, struct canon *out, struct err *e)
{
	return canon_read(xml, len, name, NULL, out, e);
}
void canon_free(struct canon *c);
