/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_ENGINE_ORDER_H
#define TOPIARY_MAP_ENGINE_ORDER_H

/* order[n] comes to be 0 .. n-1 by key[n], the least first; of equals the lower number. */
void order_by(const double *key, unsigned n, unsigned *order);

#endif
