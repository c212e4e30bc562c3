/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_HUGE_H
#define TOPIARY_BIND_HUGE_H

#include <stddef.h>

#include "base/err.h"
#include "bind/request.h"

#define HUGE_VARIABLE "GLIBC_TUNABLES"

/*
 * Large pages for what malloc gives, by glibc's own tunables (glibc manual, "Memory Allocation Tunables":
 * glibc.malloc.hugetlb 1 or 2, since 2.35; an older one ignores them): the new value of HUGE_VARIABLE, from what it is now
 * or NULL. What is in it stays, and ours comes after it unless it names the same. 0, or -1 with out untouched: the node
 * has no such pages to give, and malloc would fall back in silence; or the value is too long.
 */
int huge_tunables(enum bind_huge huge, const char *now, char *out, size_t size, struct err *e);

#endif
