/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_SPLIT_PARTS_H
#define TOPIARY_MAP_ENGINE_SPLIT_PARTS_H

/* Shared by split.c, the two methods of partitioning, and neighbourhood.c. */

#include "map/engine/split.h"

struct split {
	const struct matrix *m;
	const struct slots *s;
	struct split_way way;
	uint64_t seed;
	unsigned *slot;			/* by rank */
	unsigned *at;			/* by rank: a slot in the middle of its domain so far */
	/*
	 * By rank, its previous slot; NULL: none. If set, domains are partitioned as they were, ranks from elsewhere
	 * get free slots, and the result is refined: cheap, and never worse than before.
	 */
	unsigned *was_at;
	bool *taken, *second;		/* by slot, by rank: scratch space for was_at */
	unsigned *local;		/* by rank: its index among those being partitioned, else SLOT_NONE */
	unsigned long long work;	/* of bisection.h, in total */
	struct err *err;
};

/*
 * Initially every rank is in the middle of all slots. 0, or -1 with an error; split_close may be called in either case.
 */
int split_open(struct split *x, const struct matrix *m, const struct slots *s, struct split_way way, uint64_t seed,
	       unsigned *slot, struct err *e);
void split_close(struct split *x);
/* Allocates was_at, which split_close frees. 0, or -1 with an error. */
int split_remember(struct split *x);
int split_no_memory(struct split *x);

/* Maps these ranks on the slots first .. end-1, which are in one domain of the level above. 0 or -1. */
int split_domain(struct split *x, unsigned level, unsigned first, unsigned end, unsigned *rank, unsigned n);

/*
 * Some ranks, and the domains of a level among which they are partitioned: size[] is the number for each domain, part[]
 * the domain of each rank.
 */
struct split_cut {
	unsigned *rank, n;
	unsigned level, domain, parts;	/* domain: the first */
	unsigned *room, *size, *part;
};

/* 0, or -1 with an error. */
int split_by_scotch(struct split *x, struct split_cut *c);
int split_by_bisection(struct split *x, struct split_cut *c);

/* The use of existing halves: ignored, to be beaten, or only refined. */
enum split_from { SPLIT_ANEW, SPLIT_BEAT, SPLIT_MEND };

/*
 * n ranks to be partitioned between two ranges of slots, whose middle slots are given; the first range gets least ..
 * most of them. inner: the cost of a pair within one range. second: by rank, whether it is in the second range at
 * present. size: how many each got.
 */
struct split_halves {
	unsigned n, least, most, middle[2], size[2];
	double inner;
	enum split_from from;
	const bool *second;
};

/*
 * Orders rank[n] so that those of the first range come first. quick as in bisection.h. Returns 1; 0 when nothing beats
 * the existing halves, rank[] then unchanged; or -1 with an error.
 */
int split_pair(struct split *x, struct split_halves *p, unsigned *rank, bool quick);

#endif
