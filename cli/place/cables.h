/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <jansson.h>

#include "fabric/model/fabric.h"

/* The cables of a network, for cli/place/fabric.c: between two hosts, as a host's tool finds them, and their drift. */

/*
 * A row for each switch that the host `from` is on: a shortest path from there to the host `to`, of several the first
 * by name. NULL: memory.
 */
json_t *cables_routes(const struct fabric *f, unsigned from, unsigned to);
int cables_print_route(const json_t *route, const char *from, const char *to, struct err *e);

struct cables_tool {
	const char *name, *const commands[2][6];
	bool alone;		/* it knows the links of this host alone */
};

/* The first tool that this host has and that succeeds, and what it printed; freed by the caller. NULL with an error. */
const struct cables_tool *cables_discover(struct buf *out, struct err *e);

/* The differences, with severities as those of a node's drift. NULL: memory. */
json_t *cables_drift(const struct fabric *before, const struct fabric *now);
int cables_print_drift(const json_t *drift, struct err *e);
