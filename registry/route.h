/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_ROUTE_H
#define TOPIARY_REGISTRY_ROUTE_H

#include "service.h"

/* What can be asked: docs/openapi.yaml in C. */
struct route {
	const char *method, *pattern;	/* '*' in the pattern is one segment of the path: a node's name */
	const char *params;		/* that the query string may have (query.h), or NULL */
	int (*admit)(struct call *);	/* before the body is read, or NULL */
	int (*admit_peer)(struct call *);
	void (*handle)(struct call *);
	size_t body_max;
};

/* The route, with the name from the path in c->node; HEAD goes where GET goes. NULL, and the reply says why. */
const struct route *route_find(struct call *c, const char *method, const char *path);

/* The i-th, NULL behind the last; the number of one, that of all for NULL. */
const struct route *route_at(size_t i);
size_t route_number(const struct route *r);

#endif
