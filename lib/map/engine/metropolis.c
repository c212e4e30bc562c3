/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/metropolis.h"

#include <math.h>

void metropolis_fill(struct metropolis *p)
{
	for (unsigned i = 0; i < METROPOLIS_STEPS; i++)
		p->warmths[i] = -log((i + 0.5) / METROPOLIS_STEPS);
}
