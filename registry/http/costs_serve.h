/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_COSTS_SERVE_H
#define TOPIARY_REGISTRY_HTTP_COSTS_SERVE_H

#include "service.h"

/*
 * PUT /v1/nodes/NODE/costs: what `topiary bench node --json` printed on the node, or would have. A false
 * measurement marks nodes as slow and misplaces ranks, so that it is accepted as an export is, from root of the
 * node itself, or from an administrator (admin.h). The admit functions are called first: 0, or -1 with the reply
 * filled.
 */
#define COSTS_ZSTD_MAX (256u << 10)	/* bytes of the body */
int costs_admit(struct call *c);
int costs_admit_peer(struct call *c);
void costs_put(struct call *c);

/* CostsFile. The values of a node are read by view_reads.h. */
void costs_read(struct call *c);

#endif
