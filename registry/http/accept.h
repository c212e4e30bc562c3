/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_ACCEPT_H
#define TOPIARY_REGISTRY_HTTP_ACCEPT_H

#include "service.h"

/*
 * POST /v1/nodes/NODE/accept: accept the node's present topology as a baseline. It becomes the baseline of a new
 * class, and the node no longer drifts. Nodes of its former class with the same drift, which differ from it in identity
 * alone, follow soon (rebase.h), so a change of the whole cluster is accepted once. Nodes that do not drift stay;
 * accepting one changes nothing.
 *
 * Signed by an administrator (admin.h) for CLAIM_ACCEPT with the hash of the accepted document. accept_admit is called
 * first: 0, or -1 with the reply filled.
 */
int accept_admit(struct call *c);
void accept_node(struct call *c);

#endif
