/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "map/engine/slots.h"
#include "map/matrix/matrix.h"

/* The method of partitioning: Scotch, or bisection with or without the external bias. */
enum split_by { SPLIT_BY_SCOTCH, SPLIT_BY_BISECTION, SPLIT_BY_BISECTION_UNBIASED };

/*
 * With fewer ranks than slots: each domain gets an equal share, or as few as possible get any, or whatever cuts least
 * (bisection only).
 */
enum split_sizes { SPLIT_EVEN, SPLIT_PACKED, SPLIT_FREE };

struct split_way {
	enum split_by by;
	enum split_sizes sizes;
	bool halved;
	bool quick;		/* of bisection.h */
	double loose;		/* of bisection.h */
};

/*
 * Maps from the top down, level by level: partitions the ranks of a domain among the domains in it, each getting
 * exactly its number (Goglin et al., Euro-Par 2017, section 5.2, the first strategy, with the weights that it lacked).
 * A torus is partitioned into its routers at once, or halved repeatedly. At most one rank a slot. slot[] holds
 * m->ranks. 0, or -1 with slot undefined.
 */
int split_map(const struct matrix *m, const struct slots *s, struct split_way way, uint64_t seed, unsigned *slot,
	      struct err *e);

/*
 * Maps again within each domain of a level but the last: ranks stay in their domain, and no domain becomes dearer. 0 or
 * -1, as split_map.
 */
int split_insides(const struct matrix *m, const struct slots *s, unsigned level, uint64_t seed, unsigned *slot,
		  struct err *e);

/* --- for neighbourhood.c --- */

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
