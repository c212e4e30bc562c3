/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/* What an OpenMP runtime makes of its process's CPUs. */
#include <omp.h>
#include <stdio.h>

int main(void)
{
	printf("%d %d %d\n", omp_get_num_procs(), omp_get_max_threads(), omp_get_num_places());
	return 0;
}
