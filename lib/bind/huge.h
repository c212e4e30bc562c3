/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_HUGE_H
#define TOPIARY_BIND_HUGE_H

#include <stddef.h>

#include "base/err.h"
#include "bind/request.h"

#define HUGE_VARIABLE "GLIBC_TUNABLES"

/*
 * Huge pages for malloc(3) by glibc's tunables (glibc manual, "Memory Allocation Tunables": glibc.malloc.hugetlb 1, 2
 * or the size of a page, since 2.35; older ones ignore it). Sets out to the new value of HUGE_VARIABLE from its current
 * one or NULL: the tunable is appended unless it is set already. Called by spank_plugin/task/task.c. 0, or -1 with an
 * error: the node has no such pages, so that malloc would silently use small ones, or the value is too long.
 */
int huge_tunables(enum bind_huge huge, const char *now, char *out, size_t size, struct err *e);

#endif
