/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* spawn N: all ranks together spawn N more of this program. Each of either kind tells its rank and host. */
int main(int argc, char **argv)
{
	char host[256] = "", word[32], *none[] = { NULL };
	MPI_Comm parent, children;
	int rank, sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_get_parent(&parent);
	gethostname(host, sizeof(host) - 1);
	if (parent == MPI_COMM_NULL) {
		MPI_Comm_spawn(argv[0], none, atoi(argv[1]), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
			       MPI_ERRCODES_IGNORE);
		MPI_Reduce(NULL, &sum, 1, MPI_INT, MPI_SUM, rank ? MPI_PROC_NULL : MPI_ROOT, children);
		parent = children;
		snprintf(word, sizeof(word), "parent");
	} else {
		MPI_Reduce(&rank, NULL, 1, MPI_INT, MPI_SUM, 0, parent);
		snprintf(word, sizeof(word), "child");
	}
	printf("%s %d on %s\n", word, rank, host);
	fflush(stdout);
	MPI_Comm_disconnect(&parent);
	MPI_Finalize();
	return 0;
}
