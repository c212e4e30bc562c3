/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_SEATS_H
#define TOPIARY_SELECT_SEATS_H

#include "ask.h"
#include "budget.h"
#include "near.h"

/* All seats of one job among some nodes. */
struct seats {
	const job_record_t *job;
	struct ask *ask;
	const bitstr_t *nodes;		/* those in question */
	const slurm_exclusion_t *excluded;
	const uint64_t *taken;		/* occupancy_copy: the cores that are taken, all memory being free; NULL: as both are now */
	struct near_need near;
	bool near_only;			/* no seat but near to the devices */
	struct candidate_node *list;
	unsigned count, candidates;	/* candidates: nodes in question; a call of the inner plugin changes them */
	unsigned room;			/* of these, where the job could have what it wants now: for the verdict */
	struct budget budget;
	uint64_t *free_cores, *sets;	/* space for one node */
};

/* The cache of costs: BUDGET_SCORES more of them in each decision. */
extern struct fit_cache seats_cache;

/*
 * Before the first seats_find, after known_begin; job, ask, nodes, excluded and taken are set by the caller. 0, or -1:
 * memory is short.
 */
int seats_begin(struct seats *s);
void seats_end(struct seats *s);

/* A new budget, and what may be scored; seats_begin sets the first. */
void seats_budget(struct seats *s);

/*
 * Find all seats for `tasks` tasks, or, with 0, for as many as each node holds. The list is of these alone, in the
 * order of the nodes; not on nodes in `but`, by node, which may be NULL.
 */
void seats_find(struct seats *s, uint32_t tasks, const bool *but);

/*
 * What is required, without sharing tasks: of each node the largest free domain that keeps it, all of its cores. What
 * these could hold at the most.
 */
struct holding seats_domains(struct seats *s);

/* The same of one node; out untouched when there is none. */
bool seats_domain_on(struct seats *s, int node, struct candidate_node *out);

/* A node of which the job was just given so many cores: the best of that number. False when there is no seat. */
bool seats_given_on(struct seats *s, int node, unsigned cores, struct candidate_node *out);

/* One more node, for who knows that it has changed: whether there is a seat now. */
bool seats_find_on(struct seats *s, uint32_t tasks, int node, struct candidate_node *out);

/*
 * The most tasks that a node has a seat for, or 0, and the least: 1 but for a path, which has seats for just so many
 * cores. No node has one for more than seats_capacity.
 */
uint32_t seats_range_on(struct seats *s, int node, uint32_t *least);
uint32_t seats_capacity(const struct seats *s);

/*
 * Whether there are nodes in question that are large enough, and of which the snapshot does not tell: these may have
 * seats.
 */
bool seats_unknown(const struct seats *s);

/*
 * The cores of a seat, valid as long as its cost. NULL when memory is short or they may not be scored. Nothing is scored
 * that was scored when the seat was found.
 */
const uint64_t *seat_cores(struct seats *s, const struct candidate_node *seat);

#endif
