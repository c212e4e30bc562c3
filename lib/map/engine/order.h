/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_ORDER_H
#define TOPIARY_MAP_ENGINE_ORDER_H

/* Sorts order[n], 0 .. n-1, by key[n] ascending; of equal keys the lower number first. */
void order_by(const double *key, unsigned n, unsigned *order);

#endif
