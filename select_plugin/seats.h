/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_SEATS_H
#define TOPIARY_SELECT_SEATS_H

#include "ask.h"
#include "near.h"

/* A node on which some of a job's tasks fit, and how well. */
struct seat {
	int node;
	uint32_t tasks;
	bool required;			/* the job names it */
	uint64_t weight;		/* the administrator's: the lighter node comes first whatever its shape */
	unsigned spare;			/* cores that a job of whole nodes gets and does not need: the smallest machine comes first */
	const struct score_cost *cost;	/* borrowed from fits.h */
};

/* All seats of one job among some nodes. */
struct seats {
	const job_record_t *job;
	struct ask *ask;
	const bitstr_t *nodes;		/* those in question */
	const slurm_exclusion_t *excluded;
	const uint64_t *taken;		/* occupancy_copy: the cores that are taken, all memory being free; NULL: as both are now */
	struct near_need near;
	struct seat *list;
	unsigned count, candidates;	/* candidates: nodes in question; a call of the inner plugin changes them */
	uint64_t *free_cores, *sets;	/* space for one node */
};

/*
 * Before the first seats_find, after known_begin; job, ask, nodes, excluded and taken are set by the caller. 0, or -1: memory
 * is short.
 */
int seats_begin(struct seats *s);
void seats_end(struct seats *s);

/*
 * Find all seats for `tasks` tasks, or, with 0, for as many as each node holds. The list is of these alone, in the order of
 * the nodes; not on nodes of `but`, which may be NULL.
 */
void seats_find(struct seats *s, uint32_t tasks, const bitstr_t *but);

/* One more node, for who knows that it has changed: whether there is a seat now. */
bool seats_find_on(struct seats *s, uint32_t tasks, int node, struct seat *out);

/* Whether there are nodes in question that are large enough, and of which the snapshot does not tell: these may have seats. */
bool seats_unknown(const struct seats *s);

/* Bring the best n to the front, in order; the rest is in any order. */
void seats_sort(struct seats *s, unsigned n);

/* As strcmp: below 0 when a is the better. */
int seat_compare(const struct seat *a, const struct seat *b);

/* The cores of a seat: chosen[] of score_words(glue_cores(node)) words. False when memory is short. */
bool seat_cores(struct seats *s, const struct seat *seat, uint64_t *chosen);

#endif
