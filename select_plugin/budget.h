/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_BUDGET_H
#define TOPIARY_SELECT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Limits the work that one decision may cause beside Slurm's own decision, so that no request makes a decision cost
 * much more than twice as much.
 *
 * Slurm's work grows with the nodes that it is offered. All attempts of a decision together offer it little more nodes
 * than there are candidates. Each attempt also counts as a sixteenth of the candidates, because Slurm's tables cover
 * all nodes. Attempts without a substitute (Slurm's own decision; a required placement on all nodes at once) are made
 * even if the budget is used up.
 *
 * Computing the cost of one set of free cores takes several times what Slurm spends on a node. BUDGET_SCORES is the
 * number of costs that a decision may add to the cache (fit_cache_allow).
 */
struct budget {
	uint64_t offers, attempt;	/* nodes that may still be offered; what an attempt costs besides its nodes */
	bool refused;			/* an attempt was not made */
};

/* On small clusters a decision is cheap whatever it tries. */
#define BUDGET_LEAST 128
#define BUDGET_SCORES(candidates) (512 + (candidates) / 16)

static inline struct budget budget_new(unsigned candidates)
{
	return (struct budget){ .offers = (uint64_t) candidates * 5 / 4 + BUDGET_LEAST, .attempt = candidates / 16 };
}

static inline bool budget_exhausted(const struct budget *b)
{
	return b->offers <= b->attempt;
}

/* Whether the budget allows one more attempt with so many nodes; if so, they are charged to it. */
static inline bool budget_draw(struct budget *b, unsigned nodes)
{
	uint64_t cost = nodes + b->attempt;

	if (cost > b->offers) {
		b->refused = true;
		return false;
	}
	b->offers -= cost;
	return true;
}

#endif
