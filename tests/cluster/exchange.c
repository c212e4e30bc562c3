/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * An MPI program that sends in the ways its arguments name, to the end that the last may be: `ways often abort`. What
 * it sends differs from way to way and from pair to pair. It ends with 77 when its MPI does not have one.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if MPI_VERSION >= 4
#define HAS_LARGE_COUNTS
#endif
#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
#define HAS_STANDING_COLLECTIVES
#endif

enum { ROOM = 1 << 16 };

static char out[ROOM], in[ROOM];
static int rank, ranks;
static char *self;

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

/* With requests, and what sends and gets at once. */
static void send_to_window_and_back(void)
{
	int to = (rank + 1) % ranks;
	MPI_Request r[4];
	MPI_Win window;

	MPI_Win_create(in, ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_lock_all(0, window);
	MPI_Rput(out, 500, MPI_CHAR, to, 0, 500, MPI_CHAR, window, &r[0]);
	MPI_Raccumulate(out, 50, MPI_INT, to, 1024, 50, MPI_INT, MPI_SUM, window, &r[1]);
	MPI_Rget(out + 8192, 30, MPI_CHAR, to, 0, 30, MPI_CHAR, window, &r[2]);
	MPI_Rget_accumulate(out, 20, MPI_INT, out + 4096, 20, MPI_INT, to, 2048, 20, MPI_INT, MPI_SUM, window, &r[3]);
	MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
	MPI_Get_accumulate(out, 7, MPI_INT, out + 4096, 7, MPI_INT, to, 2048, 7, MPI_INT, MPI_SUM, window);
	MPI_Fetch_and_op(out, out + 4096, MPI_INT, to, 4096, MPI_SUM, window);
	MPI_Compare_and_swap(out, out + 64, out + 128, MPI_INT, to, 8192, window);
	MPI_Win_unlock_all(window);
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

static void wait_for(MPI_Request *r, int n)
{
	MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
}

/* Those that return at once, in a graph where each rank has the next as its neighbour twice. */
static void send_together_later(void)
{
	int at[64], counts[64], next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, weights[2] = { 1, 1 };
	static char here[8][8192], there[8][8192];
	MPI_Request r[8];
	MPI_Comm graph;

	for (int i = 0; i < ranks; i++)
		at[i] = counts[i] = i;
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, (int[]){ last, last }, weights, 2, (int[]){ next, next },
				       weights, MPI_INFO_NULL, 0, &graph);
	MPI_Ibcast(here[0], 1000, MPI_CHAR, 1, MPI_COMM_WORLD, &r[0]);
	MPI_Iallreduce(here[1], there[1], 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[1]);
	MPI_Igather(here[2], 20, MPI_CHAR, there[2], 20, MPI_CHAR, 2, MPI_COMM_WORLD, &r[2]);
	MPI_Iscatterv(here[3], counts, at, MPI_CHAR, there[3], rank, MPI_CHAR, 0, MPI_COMM_WORLD, &r[3]);
	MPI_Iallgather(here[4], 10, MPI_CHAR, there[4], 10, MPI_CHAR, MPI_COMM_WORLD, &r[4]);
	MPI_Ialltoall(here[5], 50, MPI_CHAR, there[5], 50, MPI_CHAR, MPI_COMM_WORLD, &r[5]);
	MPI_Ireduce(here[6], there[6], 100, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, &r[6]);
	MPI_Ineighbor_alltoallv(here[7], (int[]){ 70, 7 }, (int[]){ 0, 100 }, MPI_CHAR, there[7], (int[]){ 70, 7 },
				(int[]){ 0, 100 }, MPI_CHAR, graph, &r[7]);
	wait_for(r, 8);
	MPI_Comm_free(&graph);
}

/*
 * Evens and odds: the first even rank has something for all odd ones, all odd ones have something for it; and all for
 * all.
 */
static void send_together_across(void)
{
	int root = rank % 2 ? 0 : rank ? MPI_PROC_NULL : MPI_ROOT;
	MPI_Comm half, both;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 7, &both);
	MPI_Bcast(out, 1000, MPI_CHAR, root, both);
	MPI_Reduce(out, in, 100, MPI_INT, MPI_SUM, root, both);
	MPI_Allreduce(out, in, 10, MPI_INT, MPI_SUM, both);
	MPI_Scatter(out, 30, MPI_CHAR, in, 30, MPI_CHAR, root, both);
	MPI_Gather(out, 3, MPI_CHAR, in, 3, MPI_CHAR, root, both);
	MPI_Alltoall(out, 50, MPI_CHAR, in, 50, MPI_CHAR, both);
	MPI_Allgather(out, 5, MPI_CHAR, in, 5, MPI_CHAR, both);
	MPI_Comm_free(&both);
	MPI_Comm_free(&half);
}

/* With the rank that is half of all ranks away. */
static void send_far(void)
{
	int other = (rank + ranks / 2) % ranks;

	MPI_Sendrecv(out, 4000, MPI_CHAR, other, 0, in, 4000, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A plane of ranks: much along its first side, little along its second. */
static void send_in_plane(void)
{
	int dims[2] = {0}, periods[2] = {0}, from, to;
	MPI_Comm plane;

	MPI_Dims_create(ranks, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &plane);
	for (int d = 0; d < 2; d++)
		for (int step = -1; step < 2; step += 2) {
			MPI_Cart_shift(plane, d, step, &from, &to);
			MPI_Sendrecv(out, d ? 400 : 4000, MPI_CHAR, to, 0, in, d ? 400 : 4000, MPI_CHAR, from, 0,
				     plane, MPI_STATUS_IGNORE);
		}
	MPI_Comm_free(&plane);
}

static void say_where(void)
{
	printf("rank %d of %d on %s%s\n", rank, ranks, getenv("SLURMD_NODENAME"),
	       getenv("TOPIARY_CAPTURE") ? " recorded" : "");
}

/* More bytes than an int counts, out of few and into few. */
static void send_great(void)
{
	MPI_Datatype great;

	MPI_Type_create_hvector(50000, 1 << 16, 0, MPI_CHAR, &great);
	MPI_Type_commit(&great);
	if (rank == 0)
		MPI_Send(out, 1, great, 1, 0, MPI_COMM_WORLD);
	if (rank == 1)
		MPI_Recv(in, 1, great, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Type_free(&great);
}

/* For longer than a second and a half. */
static void send_long(void)
{
	double start = MPI_Wtime();
	int more;

	do {
		more = MPI_Wtime() - start < 1.5;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
		MPI_Sendrecv(out, 8, MPI_CHAR, rank ^ 1, 0, in, 8, MPI_CHAR, rank ^ 1, 0, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		usleep(10000);
	} while (more);
}

/* Two more of the program, which send among themselves, and to and fro. */
static void send_to_spawned(void)
{
	static char *way[] = { "spawned", NULL };
	MPI_Comm born;

	MPI_Comm_spawn(self, way, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &born, MPI_ERRCODES_IGNORE);
	if (rank < 2)
		MPI_Send(out, 40, MPI_CHAR, rank, 0, born);
	MPI_Sendrecv(out, 400, MPI_CHAR, rank ^ 1, 0, in, 400, MPI_CHAR, rank ^ 1, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Comm_disconnect(&born);
}

static void send_spawned(void)
{
	MPI_Comm parent;

	MPI_Comm_get_parent(&parent);
	MPI_Recv(in, 40, MPI_CHAR, rank, 0, parent, MPI_STATUS_IGNORE);
	MPI_Sendrecv(out, 4000, MPI_CHAR, rank ^ 1, 0, in, 4000, MPI_CHAR, rank ^ 1, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Comm_disconnect(&parent);
}

#ifdef HAS_STANDING_COLLECTIVES
static void start_times(int times, MPI_Request *r, int n)
{
	while (times--) {
		MPI_Startall(n, r);
		wait_for(r, n);
	}
	for (int i = 0; i < n; i++)
		MPI_Request_free(&r[i]);
}

/* Collectives that are started twice; a message in five parts, thrice. */
static void send_together_often(void)
{
	static char here[2][1000], there[2][1000];
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
	MPI_Request r[2];

	MPI_Bcast_init(here[0], 1000, MPI_CHAR, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
	MPI_Alltoall_init(here[1], 50, MPI_CHAR, there[1], 50, MPI_CHAR, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
	start_times(2, r, 2);
	MPI_Psend_init(out, 5, 64, MPI_CHAR, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
	MPI_Precv_init(in, 5, 64, MPI_CHAR, last, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
	for (int i = 0; i < 3; i++) {
		MPI_Startall(2, r);
		MPI_Pready_range(0, 4, r[0]);
		wait_for(r, 2);
	}
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
}
#endif

#ifdef HAS_LARGE_COUNTS
static void send_large(void)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	MPI_Comm world = MPI_COMM_WORLD;
	MPI_Count counts[64];
	MPI_Aint at[64];
	MPI_Request r[2];
	MPI_Win window;

	MPI_Irecv_c(in, 4000, MPI_CHAR, from, 0, world, &r[0]);
	MPI_Isend_c(out, 4000, MPI_CHAR, to, 0, world, &r[1]);
	wait_for(r, 2);
	MPI_Sendrecv_c(out, 100, MPI_INT, to, 0, in, 100, MPI_INT, from, 0, world, MPI_STATUS_IGNORE);
	MPI_Sendrecv_replace_c(out, 10, MPI_DOUBLE, to, 0, from, 0, world, MPI_STATUS_IGNORE);
	MPI_Isendrecv_c(out, 6, MPI_CHAR, to, 0, in, 6, MPI_CHAR, from, 0, world, &r[0]);
	MPI_Isendrecv_replace(out + 4096, 1, MPI_CHAR, to, 1, from, 1, world, &r[1]);
	wait_for(r, 2);
	MPI_Send_init_c(out, 9, MPI_CHAR, to, 2, world, &r[0]);
	MPI_Recv_init_c(in, 9, MPI_CHAR, from, 2, world, &r[1]);
	start_times(2, r, 2);
	for (int i = 0; i < ranks; i++)
		at[i] = counts[i] = i;
	MPI_Bcast_c(out, 1000, MPI_CHAR, 1, world);
	MPI_Scatterv_c(out, counts, at, MPI_CHAR, in, rank, MPI_CHAR, 0, world);
	MPI_Alltoall_c(out, 50, MPI_CHAR, in, 50, MPI_CHAR, world);
	MPI_Win_create_c(in, ROOM, 1, MPI_INFO_NULL, world, &window);
	MPI_Win_fence(0, window);
	MPI_Put_c(out, 600, MPI_CHAR, to, 0, 600, MPI_CHAR, window);
	MPI_Win_fence(0, window);
	MPI_Win_free(&window);
}
#endif

static const struct {
	const char *name;
	void (*send)(void);
} ways[] = {
	{ "far", send_far }, { "plane", send_in_plane }, { "where", say_where },
	{ "ways", send_in_world_and_halves }, { "often", send_often }, { "groups", send_between_groups },
	{ "great", send_great }, { "window", send_to_window }, { "window-back", send_to_window_and_back },
	{ "together", send_together }, { "together-later", send_together_later },
	{ "together-across", send_together_across }, { "long", send_long }, { "spawn", send_to_spawned },
	{ "spawned", send_spawned },
#ifdef HAS_STANDING_COLLECTIVES
	{ "together-often", send_together_often },
#endif
#ifdef HAS_LARGE_COUNTS
	{ "large", send_large },
#endif
};

static int end_well(void)
{
	MPI_Finalize();
	return 0;
}

/* mpirun ends the others as soon as it learns of the first, and they are to have told all by then. */
static int end_with_failure(void)
{
	MPI_Finalize();
	sleep(1);
	return 7;
}

static int end_abruptly(void)
{
	if (rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 3);
	return end_well();
}

static int end_killed(void)
{
	return raise(SIGKILL);
}

/* Without a word to MPI. */
static int end_early(void)
{
	exit(5);
}

static const struct {
	const char *name;
	int (*end)(void);
} ends[] = {
	{ "fail", end_with_failure }, { "abort", end_abruptly }, { "kill", end_killed }, { "exit", end_early },
};

static void send(const char *name)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(name, ways[i].name)) {
			ways[i].send();
			return;
		}
	MPI_Finalize();
	exit(77);
}

static int (*end_of(const char *name))(void)
{
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (!strcmp(name, ends[i].name))
			return ends[i].end;
	return NULL;
}

int main(int argc, char **argv)
{
	int (*end)(void) = end_of(argv[argc - 1]);

	self = argv[0];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 1; i < argc - !!end; i++)
		send(argv[i]);
	return end ? end() : end_well();
}
