/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_FABRIC_SERVE_H
#define TOPIARY_REGISTRY_HTTP_FABRIC_SERVE_H

#include "service.h"

/*
 * PUT /v1/fabric: import the present fabric (fabric/model/json.h); stored as a new version when it differs from the
 * last. Signed by an administrator (admin.h) with FABRIC_CLAIM in place of a node. fabric_admit is called first: 0, or
 * -1 with the reply filled.
 */
#define FABRIC_CLAIM "fabric"
int fabric_admit(struct call *c);
void fabric_put(struct call *c);

/* Open to every reader. Each fills the reply. */
void read_fabric(struct call *c);
void read_fabric_levels(struct call *c);
void read_fabric_history(struct call *c);

#endif
