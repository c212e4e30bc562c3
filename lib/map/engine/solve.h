/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "map/matrix/matrix.h"
#include "map/places/places.h"

/*
 * Maps ranks to places: both strategies of Goglin et al., Euro-Par 2017, section 5.2 (Scotch on the whole tree, and
 * level by level), made exact, at most one rank a place; then pairwise exchange and annealing. The result never
 * costs more than block or, of a matrix without messages, than cyclic. Of a matrix with messages it is block unless a
 * mapping is expected to gain over it (traffic.h). EFFORT_FAST omits the first strategy, which takes most of the time.
 * The same input, effort and seed give the same bytes.
 *
 * Block and cyclic are those of Slurm (srun(1), --distribution; slurm_step_layout.c): both give the nodes equal shares
 * as far as their places suffice; block assigns ranks node after node, cyclic one to each node in turn; on a node they
 * use places in order.
 */
enum mapping_effort { EFFORT_FAST, EFFORT_NORMAL, EFFORT_HIGH };

/* "fast", "normal", "high", or -1. */
int mapping_effort_parse(const char *name);

struct mapping {
	unsigned ranks;
	unsigned *place;	/* place[rank], index into the places */
	double cost;		/* sum over pairs of weight x distance */
	double block, cyclic;	/* cost of those two */
	double cheapest;	/* of mapping_solve, the least cost found: less than cost where messages decided */
	double scotch;		/* of Scotch's own mapping, as netloc calls it, repaired; NAN: not computed */
	double nic, nic_block;	/* communication of the node that exchanges most with others; the same for block */
	char method[48];	/* of the result: "block", "scotch+swaps", "split+swaps+annealing", ... */
	double seconds;
};

/* By the definition, place by place: slow. */
double mapping_cost(const struct matrix *m, const struct places *p, const unsigned *place);

/* 0, or -1 (fewer places than ranks, memory, Scotch) with out untouched. Free with mapping_free. */
int mapping_solve(const struct matrix *m, const struct places *p, enum mapping_effort effort, unsigned seed,
		  struct mapping *out, struct err *e);
/* Also runs Scotch's own mapping, and fills in its cost. 0, or -1 with out untouched. */
int mapping_compare(const struct matrix *m, const struct places *p, unsigned seed, struct mapping *out, struct err *e);
void mapping_free(struct mapping *m);

/*
 * For launchers that number ranks node after node, as MPICH's and Intel MPI's do within Slurm: each rank stays on its
 * host of the block mapping, and the place of each rank is solved host by host. The cost of pairs on two hosts is then
 * fixed, so the hosts are independent problems. Of out, only ranks, place, cost and block are set. 0, or -1 with out
 * untouched. Free with mapping_free.
 */
int mapping_blocks(const struct matrix *m, const struct places *p, enum mapping_effort effort, unsigned seed,
		   struct mapping *out, struct err *e);

/*
 * Without a matrix, for libraries that make rings and trees of the ranks as they are numbered (NCCL, RCCL): ranks node
 * after node, as many on each as block has, and the nodes in an order of the network, in which neither the ring nor the
 * two binary trees through them cost more than in the job's order: that of the job, where none is found that costs
 * less. Of out, only ranks, place, cost and block are set. 0, or -1 with out untouched. Free with mapping_free.
 */
struct mapping_order {
	unsigned hosts;				/* that have ranks */
	double ring, trees;			/* the sum of the costs between neighbours */
	double ring_before, trees_before;	/* in the job's order of nodes */
};
int mapping_order(const struct places *p, unsigned ranks, struct mapping *out, struct mapping_order *order,
		  struct err *e);
