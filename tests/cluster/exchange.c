/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * An MPI program that sends in the ways its argument names: ways, often, groups, together; with more, it ends badly: `ways fail`.
 * What it sends differs from way to way and from pair to pair.
 */
#include <mpi.h>
#include <string.h>

enum { ROOM = 1 << 16 };

static char out[ROOM], in[ROOM];
static int rank, ranks;

/* Every send of the application's, to the next rank of comm; half of the messages return at once. */
static void send_in_every_way(MPI_Comm comm, int n)
{
	int me, size, to, from;
	static char attached[1 << 20];
	MPI_Request r[5];

	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &size);
	to = (me + 1) % size;
	from = (me + size - 1) % size;
	MPI_Buffer_attach(attached, sizeof(attached));
	for (int i = 0; i < 4; i++)
		MPI_Irecv(in + i * 4096, ROOM / 16, MPI_CHAR, from, i, comm, &r[i]);
	MPI_Barrier(comm);
	MPI_Send(out, n, MPI_CHAR, to, 0, comm);
	MPI_Bsend(out, n + 1, MPI_CHAR, to, 1, comm);
	MPI_Rsend(out, n + 2, MPI_CHAR, to, 2, comm);
	MPI_Issend(out, n + 3, MPI_CHAR, to, 3, comm, &r[4]);
	MPI_Waitall(5, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 3; i++)
		MPI_Irecv(in + i * 4096, ROOM / 16, MPI_CHAR, from, i, comm, &r[i]);
	MPI_Barrier(comm);
	MPI_Isend(out, n, MPI_CHAR, to, 0, comm, &r[3]);
	MPI_Wait(&r[3], MPI_STATUS_IGNORE);
	MPI_Irsend(out, n, MPI_CHAR, to, 1, comm, &r[3]);
	MPI_Ibsend(out, n, MPI_CHAR, to, 2, comm, &r[4]);
	MPI_Waitall(5, r, MPI_STATUSES_IGNORE);
	MPI_Sendrecv(out, n, MPI_INT, to, 0, in, n, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE);
	MPI_Sendrecv_replace(out, n, MPI_DOUBLE, to, 0, from, 0, comm, MPI_STATUS_IGNORE);
	MPI_Buffer_detach(&(void *){0}, &(int){0});
}

/* A request that is started three times, by itself and with others. */
static void send_often(void)
{
	MPI_Request r[2], again;

	MPI_Send_init(out, 700, MPI_CHAR, rank ^ 1, 5, MPI_COMM_WORLD, &r[0]);
	MPI_Recv_init(in, 700, MPI_CHAR, rank ^ 1, 5, MPI_COMM_WORLD, &r[1]);
	for (int i = 0; i < 2; i++) {
		MPI_Startall(2, r);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	}
	MPI_Start(&r[0]);
	MPI_Start(&r[1]);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
	/* The handle may be that of the one before. */
	MPI_Isend(out, 11, MPI_CHAR, rank ^ 1, 6, MPI_COMM_WORLD, &again);
	MPI_Recv(in, 11, MPI_CHAR, rank ^ 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Wait(&again, MPI_STATUS_IGNORE);
}

static void send_in_world_and_halves(void)
{
	MPI_Comm half;

	send_in_every_way(MPI_COMM_WORLD, 1000);
	MPI_Send(out, 999, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
	/* Ranks in another order than in the world. */
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	send_in_every_way(half, 300);
	MPI_Comm_free(&half);
}

/* Odd ranks to the first of the even ones, whose number in the other group is 0. */
static void send_between_groups(void)
{
	MPI_Comm half, both;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 7, &both);
	if (rank % 2)
		MPI_Send(out, 5000, MPI_CHAR, 0, 8, both);
	for (int i = 0; !rank && i < ranks / 2; i++)
		MPI_Recv(in, 5000, MPI_CHAR, MPI_ANY_SOURCE, 8, both, MPI_STATUS_IGNORE);
	MPI_Comm_free(&both);
	MPI_Comm_free(&half);
}

static void send_to_window(void)
{
	MPI_Win window;

	MPI_Win_create(in, ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	MPI_Put(out, 600, MPI_CHAR, (rank + 1) % ranks, 0, 600, MPI_CHAR, window);
	MPI_Accumulate(out, 60, MPI_INT, (rank + 1) % ranks, 1024, 60, MPI_INT, MPI_SUM, window);
	MPI_Win_fence(0, window);
	MPI_Get(out, 70, MPI_CHAR, (rank + 2) % ranks, 0, 70, MPI_CHAR, window);
	MPI_Win_fence(0, window);
	MPI_Win_free(&window);
}

/* Each part to its own pairs, or of its own size. */
static void send_together(void)
{
	MPI_Comm line;
	int at[64], counts[64], periodic = 0;

	for (int r = 0; r < ranks; r++)
		at[r] = counts[r] = r;
	MPI_Bcast(out, 1000, MPI_CHAR, 1, MPI_COMM_WORLD);
	MPI_Reduce(out, in, 100, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, in, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Gather(out, 20, MPI_CHAR, in, 20, MPI_CHAR, 2, MPI_COMM_WORLD);
	MPI_Scatterv(out, counts, at, MPI_CHAR, in, rank, MPI_CHAR, 0, MPI_COMM_WORLD);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_CHAR, in, 10, MPI_CHAR, MPI_COMM_WORLD);
	MPI_Alltoall(out, 50, MPI_CHAR, in, 50, MPI_CHAR, MPI_COMM_WORLD);
	MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &line);
	MPI_Neighbor_alltoall(out, 7, MPI_CHAR, in, 7, MPI_CHAR, line);
	MPI_Comm_free(&line);
}

static const struct {
	const char *name;
	void (*send)(void);
} ways[] = {
	{ "ways", send_in_world_and_halves }, { "often", send_often }, { "groups", send_between_groups },
	{ "window", send_to_window }, { "together", send_together },
};

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc > 2 && !strcmp(argv[2], "abort") && rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 3);
	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(argv[1], ways[i].name))
			ways[i].send();
	MPI_Finalize();
	return argc > 2 && !strcmp(argv[2], "fail") ? 7 : 0;
}
