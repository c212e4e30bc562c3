/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_RECOGNISE_GIVEN_H
#define TOPIARY_FABRIC_RECOGNISE_GIVEN_H

#include "fabric/model/fabric.h"

/*
 * The fabric of levels that a file states: a switch for each group. Takes ownership of h, which is freed on failure,
 * too. NULL: memory.
 */
struct fabric *fabric_given(struct hierarchy *h, struct err *e);

#endif
