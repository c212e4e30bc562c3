/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_CHILD_H
#define TOPIARY_REGISTRY_CMD_CHILD_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Run work(given, out) in a process of its own, without a word on stderr: hwloc 2.9 can abort or crash on documents and strings that
 * others wrote. The bytes it appended come back in *out, which the caller frees. 0, or -1 with out untouched when work gave -1 (its
 * own error is then in e) or the process did not live to the end.
 */
int cmd_child(int (*work)(const void *given, struct buf *out, struct err *e), const void *given, struct buf *out, struct err *e);

#endif
