/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/* What a compiler makes of a Fortran program, in which each rank sends 700 bytes to its partner. */
#include <mpi.h>

void mpi_init_(MPI_Fint *error);
void mpi_comm_rank_(MPI_Fint *comm, MPI_Fint *rank, MPI_Fint *error);
void mpi_sendrecv_replace_(void *data, MPI_Fint *n, MPI_Fint *type, MPI_Fint *to, MPI_Fint *tag, MPI_Fint *from,
			   MPI_Fint *in_tag, MPI_Fint *comm, MPI_Fint *status, MPI_Fint *error);
void mpi_finalize_(MPI_Fint *error);

int main(void)
{
	MPI_Fint error, rank, other, n = 700, tag = 0, status[64], world, byte;
	char data[700] = "";

	mpi_init_(&error);
	world = MPI_Comm_c2f(MPI_COMM_WORLD);
	byte = MPI_Type_c2f(MPI_BYTE);
	mpi_comm_rank_(&world, &rank, &error);
	other = rank ^ 1;
	mpi_sendrecv_replace_(data, &n, &byte, &other, &tag, &other, &tag, &world, status, &error);
	mpi_finalize_(&error);
	return error;
}
