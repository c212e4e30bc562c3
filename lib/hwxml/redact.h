/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWXML_REDACT_H
#define TOPIARY_HWXML_REDACT_H

#include <stdbool.h>

#include "base/buf.h"

/*
 * What Linux shows to root alone (the files of mode 0400 in /sys/class/dmi/id, and dmi-sysfs for memory modules), by
 * the names that hwloc gives it (hwloc 2.9: hwloc/topology-linux.c): infos that are in no document for everybody. A
 * regular expression of POSIX and of PostgreSQL alike.
 */
#define REDACTED "^(DMI.*(Serial|UUID)|SerialNumber|AssetTag)$"

bool redact_applies(const char *name);

/* The document without these infos, lines of their own whole; all else to the byte. Appended to out. */
void redact_xml(const char *xml, size_t len, struct buf *out);

#endif
