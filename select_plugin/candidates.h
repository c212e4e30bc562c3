/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_CANDIDATES_H
#define TOPIARY_SELECT_CANDIDATES_H

#include "job_request.h"
#include "budget.h"
#include "device_locality.h"

/* All candidates of one job among some nodes. */
struct candidate_set {
	const job_record_t *job;
	struct job_request *req;
	const bitstr_t *nodes;		/* those in question */
	const slurm_exclusion_t *excluded;
	const uint64_t *taken;		/* allocated cores (occupancy_copy), all memory free; NULL: both as now */
	struct device_need devices;
	bool gpus;			/* it may have the cores of RestrictedCoresPerGPU */
	bool local_only;			/* no candidate but near to the devices */
	struct candidate_node *list;
	unsigned count, candidates;	/* candidates: nodes in question; a call of the inner plugin changes them */
	unsigned room;			/* of these, where the job could have what it wants now: for the verdict */
	struct budget budget;
	uint64_t *free_cores, *sets;	/* space for one node */
};

/* The cache of costs: BUDGET_SCORES more of them in each decision. */
extern struct fit_cache candidates_cache;

/*
 * Before the first candidates_find, after node_shapes_begin; job, req, nodes, excluded and taken are set by the caller.
 * 0, or -1: memory is short.
 */
int candidates_begin(struct candidate_set *s);
void candidates_end(struct candidate_set *s);

/* A new budget, and what may be scored; candidates_begin sets the first. */
void candidates_budget(struct candidate_set *s);

/*
 * Find all candidates for `tasks` tasks, or, with 0, for as many as each node holds. The list is of these alone, in the
 * order of the nodes; not on nodes in `but`, by node, which may be NULL.
 */
void candidates_find(struct candidate_set *s, uint32_t tasks, const bool *but);

/*
 * What is required, without sharing tasks: of each node the largest free domain that keeps it, all of its cores. What
 * these could hold at the most.
 */
struct holding candidates_domains(struct candidate_set *s);

/* The same of one node; out untouched when there is none. */
bool candidates_domain_on(struct candidate_set *s, int node, struct candidate_node *out);

/* A node of which the job was just given so many cores: the best of that number. False when there is no candidate. */
bool candidates_given_on(struct candidate_set *s, int node, unsigned cores, struct candidate_node *out);

/* One more node, for who knows that it has changed: whether there is a candidate now. */
bool candidates_find_on(struct candidate_set *s, uint32_t tasks, int node, struct candidate_node *out);

/*
 * The most tasks that a node has a candidate for, or 0, and the least: 1 but for a path, which has candidates for just
 * so many cores. No node has one for more than candidates_capacity.
 */
uint32_t candidates_range_on(struct candidate_set *s, int node, uint32_t *least);
uint32_t candidates_capacity(const struct candidate_set *s);

/*
 * Whether there are nodes in question that are large enough, and of which the snapshot does not tell: these may have
 * candidates.
 */
bool candidates_unknown(const struct candidate_set *s);

/*
 * The cores of a candidate, valid as long as its cost. NULL when memory is short or they may not be scored. Nothing is
 * scored that was scored when the candidate was found.
 */
const uint64_t *candidate_cores(struct candidate_set *s, const struct candidate_node *candidate);

#endif
