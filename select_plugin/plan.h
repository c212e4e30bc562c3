/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_PLAN_H
#define TOPIARY_SELECT_PLAN_H

#include "candidates.h"

/* A node selection: the best nodes for a job, each with its share of the tasks. */
struct plan {
	struct choice choice;
	bool given;		/* plan_given: Slurm chose the nodes */
	unsigned leaf;		/* plan_in_leaf: the first so many candidates are those of the leaf; else 0 */
};

/*
 * Chooses among all candidates (score/chooser.h). False when there is no choice. Afterwards s has all candidates for
 * the last share, the chosen ones first. Free with plan_end in any case.
 */
bool plan_make(struct plan *p, struct candidate_set *s);

/*
 * After plan_make, for an even share: chooses the best nodes of one leaf switch or block (leaf.h), as Slurm would of
 * the one with the fewest candidates of those with enough. Their order changes. False, with p as it was, if no leaf has
 * enough, or the job asks for more of its network than nearness.
 */
bool plan_in_leaf(struct plan *p, struct candidate_set *s);

/*
 * Chooses the best cores on the nodes that the job was just given, as many on each. False when there is no such choice.
 */
bool plan_given(struct plan *p, struct candidate_set *s);
void plan_end(struct plan *p);

/* Frees what is kept between decisions. */
void plans_clear(void);

/*
 * The exclusion passed by Slurm, and on each candidate all cores but its own. NULL when memory is short. Free with
 * exclusion_free.
 */
slurm_exclusion_t *plan_exclusion(struct candidate_set *s, const struct candidate_node *list, unsigned count);

#endif
