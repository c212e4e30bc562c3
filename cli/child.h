/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_CHILD_H
#define TOPIARY_CLI_CHILD_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Run work(given, out) in a child process with stderr closed: hwloc 2.9 can abort or crash on documents and strings
 * from elsewhere. The bytes that work appended are returned in *out, which the caller frees. 0, or -1 with out
 * untouched when work returned -1 (its error is then in e) or the child died.
 */
int cmd_child(int (*work)(const void *given, struct buf *out, struct err *e), const void *given, struct buf *out,
	      struct err *e);

#endif
