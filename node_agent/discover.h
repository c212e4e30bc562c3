/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_AGENT_DISCOVER_H
#define TOPIARY_AGENT_DISCOVER_H

#include "base/buf.h"
#include "base/err.h"

/*
 * This machine's hardware as discovered by hwloc, including I/O devices, as XML in the format of ExportFormat. 0 or -1;
 * the caller frees out.
 */
int discover_xml(const char *format, struct buf *out, struct err *e);

/* /proc/sys/kernel/random/boot_id. 0 or -1. */
int discover_boot(char boot_id[static 37], struct err *e);

#endif
