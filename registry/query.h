/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_QUERY_H
#define TOPIARY_REGISTRY_QUERY_H

#include "service.h"

/*
 * Take a parameter of the query string: one of `known`, names with a space between them, at most once, with a value as
 * docs/openapi.yaml has it. 0, or -1 and the reply says why. value may hold NUL bytes; NULL when there is no '='.
 */
int query_take(struct call *c, const char *known, const char *name, const char *value, size_t len);

/* The parameter hosts as a text[] of PostgreSQL, appended to out, which stays empty without it. 0, or -1 and the reply says why. */
int query_hosts(struct call *c, struct buf *out);

#endif
