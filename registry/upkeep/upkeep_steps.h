/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "run.h"

/* Steps of upkeep, called by upkeep.c. Each returns 0, or -1 with an error; what was changed until then stays. */

/*
 * --- rebase.c and its parts: choose bases again, with more nodes known than when each was stored ---
 *
 * Documents, their times and their drift do not change.
 */

/*
 * Move documents from old field layouts of a base to the latest, unless its diffs are larger by more than the old
 * layout's rows cost. It saves queries, not bytes: the latest layout is cached, any other is read for each node that
 * boots again after a restart of topiaryd.
 */
int rebase_layouts(struct upkeep_run *p, struct err *e);

/*
 * Nodes that differ from their base in the same way are stored as patches; enough of them get a base of their own in
 * the same class, and become its fields.
 */
int rebase_patches(struct upkeep_run *p, struct err *e);

/*
 * The baseline vote (baseline_vote.c). The first node of a purchase to boot may be the odd one. A first export is no
 * change, and what most nodes of a purchase are is what was ordered: when enough of them are stored against another
 * base of their class, that one becomes the baseline, and the drift of the class's nodes is determined anew. Nodes that
 * exported something else before have no vote, so that a fault of most nodes stays drift. Accepted baselines are left
 * alone.
 */
int baseline_vote_run(struct upkeep_run *p, struct err *e);

/*
 * Classes are related when one was accepted from the other (http/admin.c). A node that drifts from its class, and
 * matches the baseline of a related one but for identity, moves there and no longer drifts.
 */
int rebase_accepted(struct upkeep_run *p, struct err *e);

/* Delete layouts, bases and classes that no document uses, an hour after they were made. */
int rebase_delete_unused(struct upkeep_run *p, struct err *e);

/* Follow other topiaryd: cache bases and layouts that they added, drop those they deleted. Needs no lock. */
int rebase_refresh(struct upkeep_run *p, struct err *e);

/* --- drift_hook.c --- */

/*
 * Runs DriftHook once for each node that newly drifts from its class, most severe first: DriftHook NODE SEVERITY, the
 * changes as JSON on standard input (parser_compare), and TOPIARY_NODE, TOPIARY_SEVERITY and TOPIARY_CLASS in an
 * otherwise empty environment. Its output is logged. When it fails or takes more than half a minute, it is run again in
 * later runs of upkeep, three times in all. Marked as reported only afterwards: a hook interrupted by topiaryd's stop
 * is run again. An error: the program is missing, or writable by others.
 */
int drift_hook_run(struct upkeep_run *p, struct err *e);
