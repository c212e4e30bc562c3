/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_ACCEPT_H
#define TOPIARY_REGISTRY_ACCEPT_H

#include "service.h"

/*
 * POST /v1/nodes/NODE/accept: the node, as it is now, is right. What it exports becomes the golden base of a class of its own, and it
 * drifts no more. Nodes of its former class that drift in the same way, so that they differ from it in identity alone, follow soon
 * (rebase.h): a change of the whole cluster is accepted once. Those that do not drift stay, and so does a node that does not.
 *
 * Signed as an export is, with the hash of the document that is meant, by root or the user who runs topiaryd. accept_admit is asked
 * first: 0, or -1 with the reply filled.
 */
int accept_admit(struct call *c);
void accept_node(struct call *c);

#endif
