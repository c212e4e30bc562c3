/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_LINEDIFF_H
#define TOPIARY_TOPO_LINEDIFF_H

#include <stddef.h>

#include "base/buf.h"

/*
 * What differs between two documents of as many lines, line by line: nodes bought together differ in serial numbers, addresses
 * and counts, each in the middle of a line. A record for each changed line, four varints (LEB128) and the bytes:
 *	lines between the last changed one and this, bytes kept at its start, bytes kept at its end, bytes in between; those bytes
 */

/* Append the difference to out. 0, or -1 when the documents have not as many lines, or memory is short; out is then unfit. */
int linediff_make(const char *base, size_t base_len, const char *doc, size_t len, struct buf *out);

/* Append the document to out. 0, or -1 when diff is no difference from this base or more than max bytes would come out. */
int linediff_apply(const char *base, size_t base_len, const char *diff, size_t diff_len, size_t max, struct buf *out);

#endif
