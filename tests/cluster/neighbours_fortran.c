/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/* What a compiler makes of a Fortran program that asks for a ring of all ranks: the first prints who is where in it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

void mpi_init_(MPI_Fint *error);
void mpi_cart_create_(MPI_Fint *comm, MPI_Fint *dims, MPI_Fint *dim, MPI_Fint *period, MPI_Fint *reorder,
		      MPI_Fint *made, MPI_Fint *error);
void mpi_finalize_(MPI_Fint *error);

int main(void)
{
	MPI_Fint error, world, made, one = 1, yes = 1, n;
	int rank, ranks, own, former[64];
	char node[32];

	mpi_init_(&error);
	world = MPI_Comm_c2f(MPI_COMM_WORLD);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	n = ranks;
	sprintf(node, "n%d", rank % 2);
	setenv("SLURMD_NODENAME", node, 1);
	mpi_cart_create_(&world, &one, &n, &yes, &yes, &made, &error);
	MPI_Comm_rank(MPI_Comm_f2c(made), &own);
	MPI_Gather(&rank, 1, MPI_INT, former, 1, MPI_INT, 0, MPI_Comm_f2c(made));
	for (int i = 0; !own && i < ranks; i++)
		printf("%s%d", i ? " " : "ring: ", former[i]);
	if (!own)
		puts("");
	mpi_finalize_(&error);
	return error;
}
