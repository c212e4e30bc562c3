/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * Makes communicators with a topology and checks all that MPI says of them, for test_reorder.py. Words: nodes=N (before
 * the others: ranks are on so many nodes in turn, as far as Topiary knows), then ways of the table below. Of each way
 * the first rank prints "WAY: a b c ...", the former rank of each new rank. A check that fails is said, and the status
 * is 1.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, ranks, failed;
static char **argument;

static void check(int right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "rank %d: %s\n", rank, what);
	failed = 1;
}
#define CHECK(right) check(right, #right)

static int weight_of(int a, int b)
{
	return 1 + (a * 7 + b * 13) % 5 + (abs(a - b) == ranks / 2 ? 100 : 0);
}

/* Who has which rank: each once. */
static void print_order(const char *way, MPI_Comm comm)
{
	int own, n, *former;

	if (comm == MPI_COMM_NULL || !*way)
		return;
	MPI_Comm_rank(comm, &own);
	MPI_Comm_size(comm, &n);
	former = malloc(n * sizeof(*former));
	MPI_Gather(&rank, 1, MPI_INT, former, 1, MPI_INT, 0, comm);
	if (!own) {
		char line[65536];
		int at = sprintf(line, "%s:", way);

		for (int i = 0; i < n; i++)
			at += sprintf(line + at, " %d", former[i]);
		puts(line);
		fflush(stdout);
	}
	free(former);
}

static void grid(const char *way, MPI_Comm from, int dims, const int *dim, const int *period, int reorder)
{
	int cells = 1, own, size, n, d1[4], p1[4], at[4], type, back, low, high, got;
	MPI_Comm comm;

	for (int d = 0; d < dims; d++)
		cells *= dim[d];
	CHECK(MPI_Cart_create(from, dims, dim, period, reorder, &comm) == MPI_SUCCESS);
	MPI_Comm_size(from, &size);
	own = comm != MPI_COMM_NULL;
	MPI_Allreduce(&own, &n, 1, MPI_INT, MPI_SUM, from);
	CHECK(n == cells);
	if (comm == MPI_COMM_NULL)
		return;
	MPI_Topo_test(comm, &type);
	CHECK(type == MPI_CART);
	MPI_Comm_rank(comm, &own);
	MPI_Comm_size(comm, &n);
	CHECK(n == cells);
	MPI_Cart_get(comm, dims, d1, p1, at);
	CHECK(!memcmp(d1, dim, dims * sizeof(*dim)));
	for (int d = 0; d < dims; d++)
		CHECK(!p1[d] == !period[d]);
	MPI_Cart_rank(comm, at, &back);
	CHECK(back == own);
	for (int d = 0; d < dims; d++) {
		int expect[4];

		MPI_Cart_shift(comm, d, 1, &low, &high);
		memcpy(expect, at, sizeof(expect));
		expect[d]++;
		if (expect[d] < dim[d] || period[d]) {
			expect[d] %= dim[d];
			MPI_Cart_rank(comm, expect, &back);
			CHECK(back == high);
		} else {
			CHECK(high == MPI_PROC_NULL);
		}
		got = -1;
		MPI_Sendrecv(&own, 1, MPI_INT, high, d, &got, 1, MPI_INT, low, d, comm, MPI_STATUS_IGNORE);
		CHECK(low == MPI_PROC_NULL || got == low);
	}
	if (!reorder) {
		int same;

		MPI_Comm_rank(from, &same);
		CHECK(same == own);
	}
	print_order(way, comm);
	MPI_Comm_free(&comm);
}

/* Neighbours that are far in the order of ranks: half of all away, and one on the ring. */
static int neighbours_of(int v, int *to)
{
	to[0] = (v + ranks / 2) % ranks;
	to[1] = (v + ranks - ranks / 2) % ranks;
	to[2] = v % 3 ? (v + 1) % ranks : v;
	return v % 5 == 4 ? 2 : 3;
}

static int sources_of(int v, int *from)
{
	int n = 0, to[3];

	for (int a = 0; a < ranks; a++)
		for (int i = 0, m = neighbours_of(a, to); i < m; i++)
			if (to[i] == v)
				from[n++] = a;
	return n;
}

static void check_neighbours(MPI_Comm comm, int weighted, int in_order)
{
	int own, in, out, flag, *from = malloc(9 * ranks * sizeof(int)), *from_weight = from + 3 * ranks;
	int *expect = from + 6 * ranks, to[3], weight[3], want[3], n, got = 0, sum = 0, seen = 0;

	MPI_Comm_rank(comm, &own);
	MPI_Dist_graph_neighbors_count(comm, &in, &out, &flag);
	CHECK(!flag == !weighted);
	CHECK(in == sources_of(own, expect));
	CHECK(out == (n = neighbours_of(own, want)));
	if (in > 3 * ranks || out != n)
		return;
	MPI_Dist_graph_neighbors(comm, in, from, weighted ? from_weight : MPI_UNWEIGHTED, out, to,
				 weighted ? weight : MPI_UNWEIGHTED);
	for (int i = 0; i < n; i++) {
		sum += want[i];
		got += to[i];
		CHECK(!in_order || to[i] == want[i]);
		CHECK(!weighted || weight[i] == weight_of(own, to[i]));
	}
	CHECK(sum == got);
	sum = got = 0;
	for (int i = 0; i < in; i++) {
		sum += expect[i];
		got += from[i];
		CHECK(!in_order || from[i] == expect[i]);
		CHECK(!weighted || from_weight[i] == weight_of(from[i], own));
	}
	CHECK(sum == got);
	/* What arrives comes from those. */
	sum = 0;
	MPI_Neighbor_allgather(&own, 1, MPI_INT, expect, 1, MPI_INT, comm);
	for (int i = 0; i < in; i++)
		seen += expect[i] == from[i];
	CHECK(seen == in);
	free(from);
}

static void adjacent(const char *way, int weighted)
{
	int from[64 * 3], to[3], w_in[64 * 3], w_out[3], in = sources_of(rank, from), out = neighbours_of(rank, to);
	MPI_Comm comm;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "any", "thing");
	for (int i = 0; i < in; i++)
		w_in[i] = weight_of(from[i], rank);
	for (int i = 0; i < out; i++)
		w_out[i] = weight_of(rank, to[i]);
	CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, from, !weighted ? MPI_UNWEIGHTED : w_in, out, to,
					     !weighted ? MPI_UNWEIGHTED : w_out, info, 1, &comm) == MPI_SUCCESS);
	MPI_Info_free(&info);
	check_neighbours(comm, weighted, 1);
	print_order(way, comm);
	MPI_Comm_free(&comm);
}

/* Its edges are named by others than their ends; some name none. */
static void dist(const char *way, int weighted)
{
	int v = (rank + 1) % ranks, to[6], degree[2], weight[6], vertex[2], n = 0;
	MPI_Comm comm;

	if (rank % 2 == 0)
		for (int i = 0; i < 2 && rank + i < ranks; i++, n++) {
			int at = i ? degree[0] : 0;

			vertex[i] = (v + i) % ranks;
			degree[i] = neighbours_of(vertex[i], to + at);
			for (int e = at; e < at + degree[i]; e++)
				weight[e] = weight_of(vertex[i], to[e]);
		}
	CHECK(MPI_Dist_graph_create(MPI_COMM_WORLD, n, vertex, degree, to,
				    !weighted ? MPI_UNWEIGHTED : n ? weight : MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 1,
				    &comm) == MPI_SUCCESS);
	check_neighbours(comm, weighted, 0);
	print_order(way, comm);
	MPI_Comm_free(&comm);
}

static void way_cart(void)
{
	grid("cart", MPI_COMM_WORLD, 2, (int[]){ 2, ranks / 2 }, (int[]){ 1, 0 }, 1);
}

static void way_kept(void)
{
	grid("kept", MPI_COMM_WORLD, 2, (int[]){ 2, ranks / 2 }, (int[]){ 1, 0 }, 0);
}

/* The question's file would be the standard input. */
static void way_closed(void)
{
	close(0);
	grid("closed", MPI_COMM_WORLD, 2, (int[]){ ranks / 2, 2 }, (int[]){ 0, 1 }, 1);
}

/* Fewer cells than ranks. */
static void way_left_out(void)
{
	grid("left_out", MPI_COMM_WORLD, 3, (int[]){ 2, 1, ranks / 2 - 1 }, (int[]){ 0, 1, 1 }, 1);
}

static void way_sub(void)
{
	MPI_Comm half;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	grid(rank % 2 ? "odd" : "even", half, 1, (int[]){ ranks / 2 }, (int[]){ 1 }, 1);
	MPI_Comm_free(&half);
}

static void way_graph(void)
{
	int index[256], edges[1024], type, own, n, to[3], got[4];
	MPI_Comm comm;

	for (int v = 0, at = 0; v < ranks; v++) {
		n = neighbours_of(v, to);
		memcpy(edges + at, to, n * sizeof(*to));
		index[v] = at += n;
	}
	CHECK(MPI_Graph_create(MPI_COMM_WORLD, ranks, index, edges, 1, &comm) == MPI_SUCCESS);
	MPI_Topo_test(comm, &type);
	CHECK(type == MPI_GRAPH);
	MPI_Comm_rank(comm, &own);
	MPI_Graph_neighbors_count(comm, own, &n);
	CHECK(n == neighbours_of(own, to));
	MPI_Graph_neighbors(comm, own, 4, got);
	CHECK(!memcmp(to, got, n * sizeof(*to)));
	print_order("graph", comm);
	MPI_Comm_free(&comm);
}

static void way_adjacent(void)
{
	adjacent("adjacent", 0);
}

static void way_weighted(void)
{
	adjacent("weighted", 1);
}

static void way_dist(void)
{
	dist("dist", 0);
}

static void way_dist_weighted(void)
{
	dist("dist_weighted", 1);
}

/* Only two have neighbours: those of the others are empty. */
static void way_empty(void)
{
	int peer = ranks - 1 - rank, has = !rank || rank == ranks - 1, in, out, flag, own, from, w, to, w2, size;
	int five = 5;
	MPI_Comm comm;

	CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, has, &peer, has ? &five : MPI_WEIGHTS_EMPTY, has, &peer,
					     has ? &five : MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 1, &comm) == MPI_SUCCESS);
	MPI_Comm_rank(comm, &own);
	MPI_Comm_size(comm, &size);
	MPI_Dist_graph_neighbors_count(comm, &in, &out, &flag);
	CHECK(flag && size == ranks && in == (!own || own == ranks - 1) && out == in);
	if (in == 1) {
		MPI_Dist_graph_neighbors(comm, 1, &from, &w, 1, &to, &w2);
		CHECK(from == ranks - 1 - own && to == from && w == 5 && w2 == 5);
	}
	print_order("empty", comm);
	MPI_Comm_free(&comm);
}

/* What is wrong is the MPI's to say, on all ranks: the first prints what it said, the same as without the library. */
static void way_wrong(void)
{
	int all[2] = { 2, ranks }, none[2] = { 0, 0 }, far = ranks + 5, one = 1, said[5];
	MPI_Comm comm, inter, half, same;

	MPI_Comm_dup(MPI_COMM_WORLD, &same);
	MPI_Comm_set_errhandler(same, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	said[0] = MPI_Cart_create(same, 2, all, none, 1, &comm);
	said[1] = MPI_Graph_create(same, ranks + 1, all, none, 1, &comm);
	said[2] = MPI_Dist_graph_create_adjacent(same, -1, &far, &one, 1, &far, &one, MPI_INFO_NULL, 1, &comm);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !(rank % 2), 3, &inter);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	said[3] = MPI_Cart_create(inter, 1, &one, none, 1, &comm);
	said[4] = MPI_Cart_create(MPI_COMM_NULL, 1, &one, none, 1, &comm);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	for (int i = 0; i < 5; i++) {
		MPI_Error_class(said[i], &said[i]);
		CHECK(said[i] != MPI_SUCCESS);
	}
	if (!rank)
		printf("wrong: %d %d %d %d %d\n", said[0], said[1], said[2], said[3], said[4]);
	/* No dimension: one process. */
	CHECK(MPI_Cart_create(MPI_COMM_WORLD, 0, none, none, 1, &comm) == MPI_SUCCESS);
	CHECK((comm == MPI_COMM_NULL) == (rank != 0));
}

/* A thousand communicators, of which none is kept; and a child of the program's own is still the program's. */
static void way_often(void)
{
	int period = 1, status;
	pid_t child = fork();
	MPI_Comm comm;

	if (!child)
		_exit(3);
	for (int i = 0; i < 1000; i++) {
		MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &period, 1, &comm);
		MPI_Comm_free(&comm);
	}
	CHECK(wait(&status) == child && WEXITSTATUS(status) == 3);
	CHECK(wait(&status) == -1);
	grid("often", MPI_COMM_WORLD, 1, &ranks, &period, 1);
}

static void *thread_grids(void *comm)
{
	for (int i = 0; i < 5; i++)
		grid("", *(MPI_Comm *) comm, 2, (int[]){ 2, ranks / 2 }, (int[]){ 0, i % 2 }, 1);
	return NULL;
}

static void way_threads(void)
{
	MPI_Comm comm[3];
	pthread_t thread[3];
	int level;

	MPI_Query_thread(&level);
	CHECK(level == MPI_THREAD_MULTIPLE);
	/* Two threads that do this for the first time at once end Open MPI 4. */
	thread_grids(&(MPI_Comm){ MPI_COMM_WORLD });
	for (int i = 0; i < 3; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, thread_grids, &comm[i]);
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], NULL);
		MPI_Comm_free(&comm[i]);
	}
	way_cart();
}

/* The last rank is gone before the others are near: the program ends as it would. */
static void way_dies(void)
{
	if (rank == ranks - 1)
		_exit(9);
	way_cart();
}

static void way_spawn(void)
{
	char *words[] = { "nodes=2", "cart", NULL };
	MPI_Comm children;

	MPI_Comm_spawn(argument[0], words, 4, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
	MPI_Barrier(children);
}

/* "at NODE CPU,CPU..." of each rank, in their order. */
static void way_where(void)
{
	char own[1024], *all = malloc(ranks * sizeof(own));
	const char *node = getenv("SLURMD_NODENAME");
	int at = sprintf(own, "at %s ", node ? node : "-");
	cpu_set_t cpus;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (int cpu = 0; cpu < CPU_SETSIZE && at < (int) sizeof(own) - 8; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			at += sprintf(own + at, "%s%d", own[at - 1] == ' ' ? "" : ",", cpu);
	MPI_Gather(own, sizeof(own), MPI_CHAR, all, sizeof(own), MPI_CHAR, 0, MPI_COMM_WORLD);
	for (int i = 0; !rank && i < ranks; i++)
		puts(all + i * sizeof(own));
	free(all);
}

static const struct {
	const char *name;
	void (*run)(void);
} ways[] = {
	{ "cart", way_cart }, { "kept", way_kept }, { "left_out", way_left_out }, { "sub", way_sub },
	{ "graph", way_graph }, { "adjacent", way_adjacent }, { "weighted", way_weighted }, { "dist", way_dist },
	{ "dist_weighted", way_dist_weighted }, { "empty", way_empty }, { "wrong", way_wrong }, { "often", way_often },
	{ "threads", way_threads }, { "dies", way_dies }, { "spawn", way_spawn },
	{ "where", way_where }, { "closed", way_closed },
};

int main(int argc, char **argv)
{
	char node[32];
	int nodes, level, any;
	MPI_Comm parent;

	argument = argv;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 1; i < argc; i++)
		if (sscanf(argv[i], "nodes=%d", &nodes) == 1) {
			sprintf(node, "n%d", rank % nodes);
			setenv("SLURMD_NODENAME", node, 1);
		} else {
			for (size_t w = 0; w < sizeof(ways) / sizeof(*ways); w++)
				if (!strcmp(argv[i], ways[w].name))
					ways[w].run();
		}
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL)
		MPI_Barrier(parent);
	MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	MPI_Finalize();
	return any;
}
