/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_PLAN_H
#define TOPIARY_SELECT_PLAN_H

#include "candidates.h"

/* The reason where plan_make finds nothing. */
#define NO_PLACEMENT "no topology-aware placement can start now"

/* A node selection: the best nodes for a job, each with its share of the tasks. */
struct plan {
	struct choice choice;
	bool given;		/* plan_given: Slurm chose the nodes */
	unsigned leaf;		/* plan_in_leaf: the first so many candidates are those of the leaf; else 0 */
};

/*
 * Chooses among all candidates (score/chooser.h). False when there is no choice, or one in which Slurm would start no
 * step of all tasks (s->no_steps), and for a job with a requirement no other. Afterwards s has all candidates for the
 * last share, the chosen ones first. Free with plan_end in any case.
 */
bool plan_make(struct plan *p, struct candidate_set *s);

/*
 * For several nodes in a network known to Slurm, or in a row: Slurm chooses them among all, near each other; and even
 * one node if the job is to have its part of the network alone.
 */
bool plan_slurm_picks_nodes(const struct candidate_set *s);

/*
 * After plan_make, for an even share: chooses the best nodes of one leaf switch or block, as Slurm would of
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

/*
 * Estimates when a required placement that is not available now will be. Running jobs are released one after another in
 * the order of their ends, and try() is called whenever there may be a place, until it returns true or the budget, a
 * new one, is used up; then once more, with `last` set, without all jobs. All of s except its budget is restored.
 */
typedef bool start_estimate_try_t(void *user, struct candidate_set *s, bool last);
bool start_estimate_find(struct candidate_set *s, start_estimate_try_t *try, void *user);

/* False when no distribution of the tasks lets the job ever run: on its nodes, if no other job were there. */
bool start_estimate_possible(struct candidate_set *s);

#endif
