/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_SOLVE_H
#define TOPIARY_MAP_SOLVE_H

#include "base/err.h"
#include "map/matrix.h"
#include "map/places.h"

/*
 * Which rank goes to which place. Source: Goglin et al., Euro-Par 2017, section 5.2 (Scotch on the tree), with the repair and
 * the guard that it lacks: at most one rank a place, never worse than block or cyclic. The same input and seed give the same
 * bytes.
 *
 * Block and cyclic are as Slurm has them (srun(1), --distribution; slurm_step_layout.c): both give the nodes equal shares as far
 * as their cores go; block deals ranks out node after node, cyclic one a node in turn; on a node they take cores in order.
 */
struct mapping {
	unsigned ranks;
	unsigned *place;	/* place[rank] */
	double cost;		/* sum over pairs of weight x distance */
	double block, cyclic;	/* cost of those two */
	double scotch;		/* cost of Scotch's own mapping after the repair, before the polish */
	const char *method;	/* what won: "block", "cyclic", "scotch", "scotch+swaps", ... a constant */
	double seconds;
};

double mapping_cost(const struct matrix *m, const struct places *p, const unsigned *place);

/* 0, or -1 (fewer places than ranks, memory, Scotch). Free with mapping_free. */
int mapping_solve(const struct matrix *m, const struct places *p, unsigned seed, struct mapping *out, struct err *e);
void mapping_free(struct mapping *m);

#endif
