/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_REBASE_H
#define TOPIARY_REGISTRY_REBASE_H

#include "pass.h"

/*
 * The choice of bases, made again when more is known than when each node came: steps of a pass. Each is 0, or -1 with an error; what
 * was moved until then stays so. What nodes export, when they did, and what they drift by is the same before and after.
 */

/* Documents in old forms of a base move to its latest, unless that keeps so much more of them that the old form is worth its rows. */
int rebase_forms(struct pass *p, struct err *e);

/* Nodes that differ alike from their base stand as patches; enough of them get a base in the same class, and become its fields. */
int rebase_patches(struct pass *p, struct err *e);

/*
 * The first node of an order to boot may be the odd one. What a node exports first is no change, and what most nodes of an order are
 * is what it was meant to be: when enough of them stand on another base of their class, that one becomes golden, and what each node of
 * the class drifts by is told anew. Nodes that were something else before do not vote: a fault that hits most nodes stays one. What
 * somebody accepted is left alone.
 */
int rebase_golden(struct pass *p, struct err *e);

/*
 * Classes are kin when one was accepted from the other (accept.h). A node that drifts from its class and is what the golden base of a
 * kin one is, but for its identity, moves there, and drifts no more.
 */
int rebase_accepted(struct pass *p, struct err *e);

/* Forms and bases of which nothing is made any more are deleted, an hour after they were made. */
int rebase_unused(struct pass *p, struct err *e);

/* See what another topiaryd did: bases and forms that it made are at hand, those that it deleted no more. Needs no lock. */
int rebase_refresh(struct pass *p, struct err *e);

#endif
