/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_SPLIT_PARTS_H
#define TOPIARY_MAP_ENGINE_SPLIT_PARTS_H

/* What split.c, the two who part for it, and renew.c share. */

#include "map/engine/split.h"

struct split {
	const struct matrix *m;
	const struct slots *s;
	struct split_way way;
	uint64_t seed;
	unsigned *slot;			/* of each rank */
	unsigned *at;			/* of each rank: a slot in the middle of the domains that it is in by now */
	/*
	 * Of each rank, a slot of its own where it was; NULL: none was anywhere. With it domains are parted as they
	 * were, those who came to one taking what is free in it, and refined: cheap, and never worse than that.
	 */
	unsigned *was_at;
	bool *taken, *second;		/* of each slot, of each rank: beside was_at, to write to */
	unsigned *local;		/* by rank: its index among those being partitioned, else SLOT_NONE */
	unsigned long long work;	/* of bisection.h, so far */
	struct err *err;
};

/* Every rank is in the middle of all at first. 0, or -1 with an error; split_close does also after that. */
int split_open(struct split *x, const struct matrix *m, const struct slots *s, struct split_way way, uint64_t seed,
	       unsigned *slot, struct err *e);
void split_close(struct split *x);
/* Room for was_at, which split_close frees. 0, or -1 with an error. */
int split_remember(struct split *x);
int split_no_memory(struct split *x);

/* Map these ranks on the slots first .. end-1, which are in one domain of the level above. 0 or -1. */
int split_domain(struct split *x, unsigned level, unsigned first, unsigned end, unsigned *rank, unsigned n);

/*
 * Some ranks, and the domains of a level among which they are partitioned: size[] of each is how many it gets, part[]
 * of each rank.
 */
struct cut {
	unsigned *rank, n;
	unsigned level, domain, parts;	/* domain: the first */
	unsigned *room, *size, *part;
};

/* 0, or -1 with an error. */
int split_by_scotch(struct split *x, struct cut *c);
int split_by_halves(struct split *x, struct cut *c);

/* Where there are halves already: they are of no account, or to be beaten, or only to be refined. */
enum pair_from { PAIR_ANEW, PAIR_BEAT, PAIR_MEND };

/*
 * n ranks to be partitioned between two ranges of slots, of which these are in the middle; the first is to get least ..
 * most of them. inner: what a pair costs in one of them. second: of each rank, is it in the second range so far. size:
 * how many each got.
 */
struct pair {
	unsigned n, least, most, middle[2], size[2];
	double inner;
	enum pair_from from;
	const bool *second;
};

/*
 * rank[n] comes to have those of the first range first. quick as in bisect.h. 1, or 0 where nothing beats the halves
 * that were, rank[] being as it was, or -1 with an error.
 */
int split_pair(struct split *x, struct pair *p, unsigned *rank, bool quick);

#endif
