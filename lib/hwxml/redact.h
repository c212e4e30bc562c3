/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"

/*
 * Redaction: infos that Linux shows to root alone (the files of mode 0400 in /sys/class/dmi/id, and dmi-sysfs for
 * memory modules), by hwloc's names (hwloc 2.9: hwloc/topology-linux.c). A regular expression for both POSIX and
 * PostgreSQL.
 */
#define REDACTED "^(DMI.*(Serial|UUID)|SerialNumber|AssetTag)$"

bool redact_applies(const char *name);

/* Appends the document without these infos to out, including their lines; everything else is unchanged. */
void redact_xml(const char *xml, size_t len, struct buf *out);
