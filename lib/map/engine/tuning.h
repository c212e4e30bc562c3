/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

/*
 * The numbers that trade the quality of mappings for time. Tables of their own are the work for a number of ranks and
 * the efforts (solve.c), the shares of the stages and the work of the starts (search.c). Judge a change of any of
 * them by `make bench-map-table` and `make bench-map-time` (quality at equal time); compare means of two seeds, since
 * one moves by 0.1 points from seed to seed.
 *
 * Work is in edge evaluations: the time to read one weight of the matrix and the distance of its two ranks, 2 to 3 ns.
 */

/* --- The work of what is no edge evaluation, by measured time: wrong, it shifts time from one stage to another. */

#define WORK_GATHER 4		/* gathering an edge of a part of the ranks, or updating the gain of its end */
#define WORK_VALUE 8		/* smoothing a value of a vector; moving a rank between halves */
#define WORK_RANK 12		/* a rank in a start, besides its edges */
#define WORK_SORT 40		/* sorting a rank into the order of a cut */
#define WORK_MATCH 6		/* matching and contracting an edge */
#define WORK_MOVE 24		/* a move of annealing, besides the slots that it looks at */
#define WORK_DRAW 100		/* drawing two domains for repartition */
#define CELLS_AN_EDGE 8		/* entries of a cost table that are updated or read in the time of one edge */

/* --- Distribution of work among starts: search.c. All are shares. */

#define SHARE_POLISH (1.0 / 256)	/* the most for polishing one mapping once */
#define SHARE_REST 0.25		/* of all work, reserved for improvement if the starts took more than expected */
#define SHARE_LAYOUT 0.08	/* of what is left, for rearranging the domains of all starts before any is dropped */
#define SHARE_ROUND 0.25	/* of what is left, for each round with several mappings: more: later choice */
#define ROUND_KEEPS 3		/* one in so many mappings is kept after a round */
#define TRIAL_MOST 1.2		/* and none that costs more than so many times the cheapest */

/* --- Bisection: bisection.c, split.c. */

/* Directions tried, the first three eigenvectors; cuts fully refined; each of these in the inner loop of a search. */
#define CUT_DIRECTIONS 8
#define CUT_REFINED 4
#define CUT_QUICK 3
/* Exchanges without gain after which a pass of refinement ends: more finds deeper gains; the most passes. */
#define CUT_IDLE 8
#define CUT_PASSES 12
/* Differences below this share of the total are rounding errors, which could recur for ever. */
#define ROUNDING 1e-12
/* A bisection that is to differ from others may be dearer by up to this share. */
#define LOOSE 0.2
/* The least share of the distance of two halves by which a pair that is separated counts as dearer. */
#define LEAST_APART 0.125
/* Graphs of so few vertices are not contracted, nor those where contraction would keep more than this share. */
#define CONTRACT_FEW 8
#define CONTRACT_LEFT 0.85
/* Rounds of smoothing: of random vectors, and of those from a contracted graph. More: nearer to the eigenvectors. */
#define SMOOTH_DRAWN 60
#define SMOOTH_CONTRACTED 3

/* --- Annealing: anneal.c. */

/* The first temperature of domains, that of ranks, and the last, relative to the average change of a move; steps. */
#define ANNEAL_WARM 0.5
#define ANNEAL_WARM_RANKS 0.1
#define ANNEAL_COLD 0.003
#define ANNEAL_STEPS 200
/* The number of random moves whose average sets the first temperature. */
#define ANNEAL_SAMPLES 512
/* The resolution of random thresholds and distances. */
#define ANNEAL_CHANCES 1024
/*
 * The probability that a rank moves to a partner's own domain; otherwise the nearest other is as likely as the next two
 * together, or the next four, and so on.
 */
#define ANNEAL_THERE 0.5
/* The number of slots tried in that domain. */
#define ANNEAL_LOOKS 16
/* The least average number of slots in a domain that is annealed; of levels of domains, the number annealed. */
#define ANNEAL_SLOTS 3
#define ANNEAL_LEVELS 3
/* Entries of the largest cost table, 2 MiB: beyond this, updates from memory are too slow. */
#define COST_TABLE (1u << 18)

/* --- Large-neighbourhood search: neighbourhood.c. */

/*
 * Ranks of a pair of domains: larger pairs take too long, and the gain of smaller ones is found by moving single ranks,
 * unless they are one in PAIR_PART of all or more.
 */
#define PAIR_MOST 256
#define PAIR_LEAST 8
#define PAIR_PART 4
/* After so many draws in a row without a pair to try, the search has converged, and a random pair is repartitioned. */
#define PAIR_IDLE 40
/* The pairs remembered as tried. */
#define PAIR_MEMORY 4096
/* The share of the cost that is initially assumed as the gain of each level for so much work; the work of a draw. */
#define LEVEL_GAIN 1e-3
#define LEVEL_WORK 1e6
#define LEVEL_DRAW 1000

/* --- The choice by messages: traffic.c. */

/* The least share of the messages' time that a mapping must save: less, and some programs run slower than by block. */
#define TIME_GAIN 0.1

/* A message of so many bytes between the farthest places takes twice its latency: of fabrics today 8 to 64 KiB. */
#define HALF_SPEED_BYTES 16384.0

/* --- The call of Scotch: scotch.c. */

/* Leaves of the largest tree: padded further, its finest levels cost Scotch more time than they are worth. */
#define SCOTCH_LEAVES (1u << 18)
/* netloc's. */
#define SCOTCH_IMBALANCE 0.01
