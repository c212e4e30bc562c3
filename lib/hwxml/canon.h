/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWXML_CANON_H
#define TOPIARY_HWXML_CANON_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

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
};

#define CANON_MAX_BYTES (16u << 20)

/* name is for errors. 0, or -1 with out untouched. Free with canon_free. */
int canon_parse(const char *xml, size_t len, const char *name, struct canon *out, struct err *e);
void canon_free(struct canon *c);

#endif
