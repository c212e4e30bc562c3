/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_MODEL_PLANES_H
#define TOPIARY_FABRIC_MODEL_PLANES_H

#include "fabric/model/fabric.h"

/*
 * Numbers the planes of a fabric with complete nodes and links, most hosts first, and fills in everything but their
 * kind. 0 or -1 (memory).
 */
int planes_find(struct fabric *f);

#endif
