/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "score/score.h"

/*
 * A cache of how well a need fits some free cores of a shape: few nodes change between two decisions, and nodes bought
 * together are alike. The select plugin and the replay have one each; its size is limited, and callers lock it where
 * necessary. Entries found in `older` move to `recent`, so that many different requests of one user do not displace
 * those that others use. Initialise with {0}.
 */

/* An entry: a shape, its free cores, and a need of one or of all numbers of cores. */
struct node_fit;

struct fit_cache {
	struct fit_table {
		struct node_fit **slots;
		size_t nslots, used, bytes;
	} recent, older;
	unsigned long serial;
	unsigned turn, decision;	/* turn: grows when entries were freed, or became older */
	struct {
		unsigned costs, choices;
	} left;			/* that may still be computed */
	bool refused, failed;
};

/*
 * The cost; NULL when the need cannot be met, the allowance is used up (fit_cache_allow), or memory is short. The entry
 * in *fit is for fit_cores; both are valid until fit_cache_begin.
 */
const struct score_cost *fit_cost(struct fit_cache *c, const struct shape *shape, const uint64_t *free_cores,
				  const struct score_need *need, struct node_fit **fit);

/*
 * What the caller keeps of each node, {0} at first: the entry found there last and one of its costs. Most nodes are as
 * they were, and most requests differ by the number of cores alone, so that this entry is mostly the one to be found.
 * All that is compared is in the memo itself, because entries lie scattered in memory. Written at most once between two
 * calls of fit_cache_begin, so that a cost in it stays valid as long as those in the cache.
 */
#define FIT_MEMO_WORDS 4	/* nodes with more cores have no memo */

struct fit_memo {
	struct node_fit *fit;
	const struct shape *shape;
	unsigned turn, decision, task_cores, asked;	/* asked: the number of cores of the cost */
	struct score_task task;
	enum level level;
	bool has;					/* there is a cost */
	uint64_t cores[FIT_MEMO_WORDS];
	struct score_cost cost;
};

/* The same on a node, by its memo (or NULL): with the same result, without a search. */
const struct score_cost *fit_cost_on(struct fit_cache *c, const struct shape *shape, const uint64_t *free_cores,
				     const struct score_need *need, struct fit_memo *m, struct node_fit **fit);

/*
 * The same with the cores of one kind alone (struct shape), of which that with the lowest cost, of equal ones the most
 * performant, where the shape has several kinds and one is enough; otherwise with all. *mixes: the cores are of several
 * kinds. scratch: core_set_words(shape->cores) words.
 */
const struct score_cost *fit_cost_of_kind(struct fit_cache *c, const struct shape *shape, const uint64_t *free_cores,
					  const struct score_need *need, uint64_t *scratch, struct fit_memo *m,
					  struct node_fit **fit, bool *mixes);

/*
 * The cores that score_pick chooses for a need of so many cores whose cost fit_cost or fit_most returned with this
 * entry. Borrowed like the cost; NULL when the allowance is used up, or memory is short.
 */
const uint64_t *fit_cores(struct fit_cache *c, struct node_fit *fit, unsigned cores);

/*
 * The largest number of free cores that lie within one domain of the level, with cost and entry as above; with 0, these
 * are unchanged. Of the need, neither cores nor a path are read.
 */
unsigned fit_most(struct fit_cache *c, const struct shape *shape, const uint64_t *free_cores,
		  const struct score_need *need, const struct score_cost **cost, struct node_fit **fit);

/*
 * Call it before a decision. Frees entries that were not used recently when they use too much memory, and all entries
 * when serial changes: the shapes were read again.
 */
void fit_cache_begin(struct fit_cache *c, unsigned long serial);
void fit_cache_clear(struct fit_cache *c);

/*
 * Allows so many costs and choices of cores to be computed that are not in the cache. A need beyond that counts as one
 * that cannot be met, and sets refused. So a decision among nodes that all differ costs no more than others, and leaves
 * some of them to the next decision. Clears refused and failed (memory was short).
 */
void fit_cache_allow(struct fit_cache *c, unsigned scores);

/* The memory used by all entries, in bytes. */
size_t fit_cache_bytes(const struct fit_cache *c);
