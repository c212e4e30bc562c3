/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_FITS_H
#define TOPIARY_SELECT_FITS_H

#include "score/score.h"

/*
 * How well a need fits some free cores of a shape, remembered: from one decision to the next hardly a node changes, and
 * nodes bought together are alike. What is remembered is bounded; callers take turns by themselves.
 */

/*
 * The cost, valid until fits_begin; NULL when the need cannot be met, is not scored any more (fits_allow), or memory is
 * short.
 */
const struct score_cost *fits_cost(const struct shape *shape, const uint64_t *free_cores,
				   const struct score_need *need);

/* The cores that score_pick chooses: false when it has none, or memory is short; chosen is untouched then. */
bool fits_pick(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need, uint64_t *chosen);

/*
 * The most of the free cores that lie within one domain of the level, and their cost, as above; with 0, that is
 * untouched. What holds some cores holds fewer, too. Of the need, neither cores nor a path are read.
 */
unsigned fits_most(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need,
		   const struct score_cost **cost);

/*
 * Before a decision. What was not used lately is freed when there is too much of it, and everything when serial is
 * another one: shapes were read anew.
 */
void fits_begin(unsigned long serial);
void fits_forget(void);

/*
 * Work out at most so many more costs, and choices of cores, that are not remembered; what is beyond counts as not to
 * be met, and sets fits_refused(). So a decision among nodes of which none is alike and none is remembered costs no
 * more than others, and leaves some of them to the next decision.
 */
void fits_allow(unsigned scores);
bool fits_refused(void);

/* What is remembered takes so many bytes. */
size_t fits_bytes(void);

#endif
