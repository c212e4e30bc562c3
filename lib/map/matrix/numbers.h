/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_MATRIX_NUMBERS_H
#define TOPIARY_MAP_MATRIX_NUMBERS_H

#include "base/err.h"

struct tree;

/*
 * The OS numbers of a node's PUs, by core in logical order, for launchers that bind by no other. They are not part of a
 * shape: machines of one model may be numbered differently.
 */
struct numbers {
	unsigned cores;
	unsigned *first;	/* PUs of core i: pu[first[i]] .. pu[first[i + 1] - 1] */
	unsigned *pu;
};

/* NULL with an error: a PU without a number, memory. Free with numbers_free, which accepts NULL. */
struct numbers *numbers_of(const struct tree *t, struct err *e);
void numbers_free(struct numbers *n);

#endif
