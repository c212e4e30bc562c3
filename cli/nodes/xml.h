/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_NODES_XML_H
#define TOPIARY_CLI_NODES_XML_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "shape/strings.h"

/*
 * The synthetic strings of an XML topology; name is used in errors. 0, or -1 with out untouched. Free with
 * strings_free.
 */
int xml_strings(const struct buf *xml, const char *name, struct strings *out, struct err *e);

/* XML of hwloc 1 has no version, or a version of its own. */
bool xml_is_of_hwloc1(const struct buf *xml);

/* The same as xml_strings for a file of hwloc 2 or hwloc 1; hwloc itself converts the latter, in a child process. */
int xml_file_strings(const char *file, struct strings *out, struct err *e);

#endif
