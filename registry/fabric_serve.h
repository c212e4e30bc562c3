/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_FABRIC_SERVE_H
#define TOPIARY_REGISTRY_FABRIC_SERVE_H

#include "service.h"

/*
 * PUT /v1/fabric: this is the fabric now (fabric/json.h). Kept as a new version where it differs from what is known. Signed as an
 * export is, for FABRIC_CLAIM in the place of a node, by root or the user who runs topiaryd. fabric_admit is asked first: 0, or -1 with
 * the reply filled.
 */
#define FABRIC_CLAIM "fabric"
int fabric_admit(struct call *c);
void fabric_put(struct call *c);

/* What anyone may read. Each fills the reply. */
void read_fabric(struct call *c);
void read_fabric_levels(struct call *c);
void read_fabric_history(struct call *c);

#endif
