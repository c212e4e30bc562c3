/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_FITS_H
#define TOPIARY_SELECT_FITS_H

#include "fit/score.h"

/*
 * How well a need fits some free cores of a shape, remembered: from one decision to the next hardly a node changes, and nodes bought
 * together are alike. What is remembered is bounded; callers take turns by themselves.
 */

/* The cost, valid until fits_begin; NULL when the need cannot be met, or memory is short. */
const struct score_cost *fits_cost(const struct shape *shape, const uint64_t *free_cores, const struct score_need *need);

/* Before a decision: all that was remembered goes when it has become too much, or when serial is another: shapes were read anew. */
void fits_begin(unsigned long serial);
void fits_forget(void);

/* What is remembered takes so many bytes. */
size_t fits_bytes(void);

#endif
