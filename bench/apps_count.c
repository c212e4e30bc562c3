/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
/*
 * Linked into each program of bench/apps.py, which is compiled with -fsanitize-coverage=trace-pc: time of
 * computation in the simulation, 1 ns for each basic block that a rank executes, whatever else this machine is doing.
 */
#include <smpi/smpi.h>

#define QUANTUM 5000	/* blocks between two calls of the simulator: 5 us */

static unsigned blocks;		/* of this rank: SMPI loads the program once for each */

void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
	if (++blocks < QUANTUM)
		return;
	blocks = 0;
	smpi_execute(QUANTUM * 1e-9);
}
