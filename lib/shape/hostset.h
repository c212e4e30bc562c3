/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_HOSTSET_H
#define TOPIARY_SHAPE_HOSTSET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * The names of a host list (shape/hostlist.h) as ranges that are never expanded, to ask whether a name is one of them:
 * memory by what the list's text has, not by what it stands for. Only a number with something behind it ("cn[1-9]-ib")
 * is a range for each value.
 */
struct hostset;

#define HOSTSET_MAX_BYTES (8u << 20)

/*
 * NULL with an error: no host list, more than HOSTLIST_MAX_NAMES names, ranges of more than HOSTSET_MAX_BYTES beyond
 * its text.
 */
struct hostset *hostset_parse(const char *list, struct err *e);
void hostset_free(struct hostset *s);	/* accepts NULL */

/* How many names the list told, doubles too. */
size_t hostset_names(const struct hostset *s);
bool hostset_has(const struct hostset *s, const char *name);

#endif
