/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CAPTURE_COLLECTIVE_MODEL_H
#define TOPIARY_CAPTURE_COLLECTIVE_MODEL_H

#include <stdint.h>

#include "comm_ranks.h"

/*
 * The messages of a collective are not visible at the MPI interface; they are modelled by the usual algorithms
 * (Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005). Bytes are those
 * of one rank's contribution, which every rank knows. p may be NULL: nothing is counted. For collective.c and
 * wrap_collective.c.
 */
void model_broadcast(const struct comm_ranks *p, int root, uint64_t bytes);	/* binomial tree */
void model_reduce(const struct comm_ranks *p, int root, uint64_t bytes);	/* binomial tree */
void model_allreduce(const struct comm_ranks *p, uint64_t bytes);	/* recursive doubling */
void model_allgather(const struct comm_ranks *p, uint64_t bytes);	/* ring: bytes to the next rank */
void model_scan(const struct comm_ranks *p, uint64_t bytes);	/* chain: to the next rank, except from the last */
void model_send(const struct comm_ranks *p, int rank, uint64_t bytes);	/* one message: gather, scatter, alltoall */

#endif
