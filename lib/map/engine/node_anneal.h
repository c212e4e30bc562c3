/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_NODE_ANNEAL_H
#define TOPIARY_MAP_ENGINE_NODE_ANNEAL_H

#include <stdint.h>

#include "base/err.h"
#include "map/matrix/matrix.h"
#include "map/engine/slots.h"

/*
 * Simulated annealing of which ranks share a node: all distances within a node count as equal, so that a table has what
 * each rank would cost on each node (domain_costs.h) and a move is judged by two numbers per candidate; the best of
 * several random candidates is taken. A rank that enters a node takes a free slot in it; the inside of the nodes is
 * optimized afterwards. The first temperature is high, whatever the mapping given. Ends after about `work` edge
 * evaluations; slot[m->ranks] is then the mapping found, or unchanged if that is no cheaper. Where the table would be
 * too large it is of wider domains than nodes, or nothing is done. The same seed gives the same result. At most one
 * rank a slot, before and after. Returns 0, or -1 with an error, slot then unchanged. Called by improve.c.
 */
int node_anneal(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work, unsigned *slot,
		struct err *e);

#endif
