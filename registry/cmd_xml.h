/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_XML_H
#define TOPIARY_REGISTRY_CMD_XML_H

#include "base/buf.h"
#include "base/err.h"
#include "topo/strings.h"

/* The strings of a topology in XML; name is for errors. 0, or -1 with out untouched. Free with strings_free. */
int xml_strings(const struct buf *xml, const char *name, struct strings *out, struct err *e);

/* The same of a file, be it of hwloc 2 or of hwloc 1, which hwloc itself translates, in a process of its own. */
int xml_file_strings(const char *file, struct strings *out, struct err *e);

#endif
