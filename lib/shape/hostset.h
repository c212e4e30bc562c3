/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_HOSTSET_H
#define TOPIARY_SHAPE_HOSTSET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * The names of a host list (shape/hostlist.h) as ranges that are not expanded, to test whether a name is in it: memory
 * depends on the length of the text, not on the number of names. Only numbers followed by more text ("cn[1-9]-ib") need
 * a range for each value.
 */
struct hostset;

#define HOSTSET_MAX_BYTES (8u << 20)

/*
 * NULL with an error: an invalid host list, more than HOSTLIST_MAX_NAMES names, ranges that exceed its text by more
 * than HOSTSET_MAX_BYTES.
 */
struct hostset *hostset_parse(const char *list, struct err *e);
void hostset_free(struct hostset *s);	/* accepts NULL */

/* The number of names in the list, including duplicates. */
size_t hostset_names(const struct hostset *s);
bool hostset_has(const struct hostset *s, const char *name);

#endif
