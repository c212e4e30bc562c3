/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/engine/patience.h"

#include <math.h>

void patience_fill(struct patience *p)
{
	for (unsigned i = 0; i < PATIENCE; i++)
		p->warmths[i] = -log((i + 0.5) / PATIENCE);
}
