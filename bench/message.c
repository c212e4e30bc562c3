/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * What a preloaded recorder of messages takes of a message of 8 bytes to oneself, the cheapest that MPI has:
 * nanoseconds of this thread's CPU time without it, by the profiling interface, and with it, for each pair of batches
 * in turn.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH = 2000 };

typedef int sendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm,
		     MPI_Status *);

static double nanoseconds(sendrecv *call)
{
	char out[8] = "", in[8];
	struct timespec from, to;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (int i = 0; i < BATCH; i++)
		call(out, 8, MPI_CHAR, 0, 0, in, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / BATCH;
}

int main(int argc, char **argv)
{
	int pairs = argc > 1 ? atoi(argv[1]) : 1;

	MPI_Init(&argc, &argv);
	for (int i = 0; i < pairs; i++) {
		double without = nanoseconds(PMPI_Sendrecv);

		printf("%.1f %.1f\n", without, nanoseconds(MPI_Sendrecv));
	}
	return MPI_Finalize();
}
