/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_PLAN_H
#define TOPIARY_SELECT_PLAN_H

#include "seats.h"

/* The best nodes for a job, each with its share of the tasks. */
struct plan {
	struct choice choice;
	bool given;		/* plan_given: the nodes are Slurm's choice */
};

/*
 * Choose among all seats (score/chooser.h). False when there is no choice. Afterwards s has all seats of the last share,
 * its own first. Free with plan_end in any case.
 */
bool plan_make(struct plan *p, struct seats *s);

/* The nodes that the job has just been given, of each as many cores, the best. False when there is no such choice. */
bool plan_given(struct plan *p, struct seats *s);
void plan_end(struct plan *p);

/*
 * The best seat of the last share that was not chosen, of those of equal weight: only their costs were compared. Or
 * NULL.
 */
const struct candidate_node *plan_beside(const struct plan *p, const struct seats *s);

/* The worst of the seats chosen. */
const struct candidate_node *plan_worst(const struct plan *p);

/* What came in, and on each seat all cores but its own; NULL when memory is short. Free with exclusion_free. */
slurm_exclusion_t *plan_exclusion(struct seats *s, const struct candidate_node *list, unsigned count);

#endif
