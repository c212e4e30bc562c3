/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_RECOGNISE_RECOGNISE_H
#define TOPIARY_FABRIC_RECOGNISE_RECOGNISE_H

#include "fabric/model/fabric.h"

/* Sets the kind and the levels of every plane, and the rank of every switch. 0 or -1 (memory). */
int fabric_recognise(struct fabric *f);

#endif
