/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_QUERY_H
#define TOPIARY_REGISTRY_HTTP_QUERY_H

#include "service.h"

/*
 * Add a parameter of the query string to the call: one of `known` (names separated by blanks), at most once, with a
 * value valid as in docs/openapi.yaml. 0, or -1 with the reply filled. value may hold NUL bytes; NULL when there is no
 * '='.
 */
int query_add_param(struct call *c, const char *known, const char *name, const char *value, size_t len);

/*
 * The parameter hosts as a PostgreSQL text[], appended to out, which stays empty without it. 0, or -1 with the reply
 * filled.
 */
int query_hosts(struct call *c, struct buf *out);

#endif
