/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CAPTURE_MODEL_H
#define TOPIARY_CAPTURE_MODEL_H

#include <stdint.h>

#include "peers.h"

/*
 * What this rank sends in a collective is the library's affair and hidden from us; it is reckoned by the algorithm that is usual
 * (Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005). Bytes are those of one
 * rank's part, which every rank knows. p may be NULL: nothing is told.
 */
void model_down(const struct peers *p, int root, uint64_t bytes);	/* binomial tree: broadcast */
void model_up(const struct peers *p, int root, uint64_t bytes);		/* the same upwards: reduce */
void model_doubling(const struct peers *p, uint64_t bytes);		/* recursive doubling: allreduce */
void model_ring(const struct peers *p, uint64_t bytes);			/* that much to the next rank, in a ring: allgather */
void model_chain(const struct peers *p, uint64_t bytes);		/* to the next rank, but the last: scan */
void model_to(const struct peers *p, int rank, uint64_t bytes);		/* straight: gather, scatter, all to all */

#endif
