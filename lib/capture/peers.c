/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "peers.h"

#include <pthread.h>
#include <stdlib.h>

static int key = MPI_KEYVAL_INVALID, window_key = MPI_KEYVAL_INVALID;
static MPI_Group world_group;

/* What Open MPI's macro would make of the library's data, which is not linked. */
#ifdef OPEN_MPI
#define COMM(name, constant) ((MPI_Comm) real_data(name))
#else
#define COMM(name, constant) (constant)
#endif

MPI_Comm peers_world(void)
{
	return COMM("ompi_mpi_comm_world", MPI_COMM_WORLD);
}

bool peers_spawned(void)
{
	MPI_Comm none = COMM("ompi_mpi_comm_null", MPI_COMM_NULL), parent = none;

	return ASK(MPI_Comm_get_parent)(&parent) == MPI_SUCCESS && parent != none;
}

static void peers_free(struct peers *p)
{
	if (!p)
		return;
	peers_free(p->own);
	free(p->world);
	free(p);
}

static int copy_none(MPI_Comm comm, int k, void *extra, void *value, void *out, int *flag)
{
	(void) comm, (void) k, (void) extra, (void) value, (void) out;
	*flag = 0;
	return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int k, void *value, void *extra)
{
	(void) comm, (void) k, (void) extra;
	peers_free(value);
	return MPI_SUCCESS;
}

static int window_copy_none(MPI_Win window, int k, void *extra, void *value, void *out, int *flag)
{
	(void) window, (void) k, (void) extra, (void) value, (void) out;
	*flag = 0;
	return MPI_SUCCESS;
}

static int window_drop(MPI_Win window, int k, void *value, void *extra)
{
	(void) window, (void) k, (void) extra;
	peers_free(value);
	return MPI_SUCCESS;
}

void peers_start(void)
{
	if (ASK(MPI_Comm_create_keyval)(copy_none, drop, &key, NULL) != MPI_SUCCESS ||
	    ASK(MPI_Win_create_keyval)(window_copy_none, window_drop, &window_key, NULL) != MPI_SUCCESS ||
	    ASK(MPI_Comm_group)(peers_world(), &world_group) != MPI_SUCCESS)
		key = MPI_KEYVAL_INVALID;
}

/* The attributes of MPI_COMM_WORLD go with it. */
void peers_end(void)
{
	if (key == MPI_KEYVAL_INVALID)
		return;
	ASK(MPI_Group_free)(&world_group);
	ASK(MPI_Win_free_keyval)(&window_key);
	ASK(MPI_Comm_free_keyval)(&key);
}

static int translate(MPI_Group group, struct peers *p)
{
	int *ranks = malloc(p->n * sizeof(*ranks)), rc = -1;

	p->world = malloc(p->n * sizeof(*p->world));
	if (ranks && p->world) {
		for (int r = 0; r < p->n; r++)
			ranks[r] = r;
		rc = ASK(MPI_Group_translate_ranks)(group, p->n, ranks, world_group, p->world) == MPI_SUCCESS ? 0 : -1;
	}
	for (int r = 0; !rc && r < p->n; r++)
		if (p->world[r] == MPI_UNDEFINED)
			p->world[r] = -1;
	free(ranks);
	return rc;
}

/* Frees the group. */
static struct peers *peers_new(MPI_Group group, int me)
{
	struct peers *p = calloc(1, sizeof(*p));

	if (p && (ASK(MPI_Group_size)(group, &p->n) != MPI_SUCCESS || translate(group, p))) {
		peers_free(p);
		p = NULL;
	}
	if (p)
		p->me = me;
	ASK(MPI_Group_free)(&group);
	return p;
}

static struct peers *learn(MPI_Comm comm)
{
	struct peers *own, *others = NULL;
	MPI_Group group;
	int inter, me;

	if (ASK(MPI_Comm_test_inter)(comm, &inter) != MPI_SUCCESS || ASK(MPI_Comm_rank)(comm, &me) != MPI_SUCCESS ||
	    ASK(MPI_Comm_group)(comm, &group) != MPI_SUCCESS || !(own = peers_new(group, me)))
		return NULL;
	if (!inter)
		return own;
	if (ASK(MPI_Comm_remote_group)(comm, &group) == MPI_SUCCESS && (others = peers_new(group, me)))
		others->own = own;
	else
		peers_free(own);
	return others;
}

static struct peers *known_of_comm(MPI_Comm comm)
{
	struct peers *p;
	int known = 0;

	return ASK(MPI_Comm_get_attr)(comm, key, &p, &known) == MPI_SUCCESS && known ? p : NULL;
}

static struct peers *new_of_comm(MPI_Comm comm)
{
	struct peers *p = learn(comm);

	if (p && ASK(MPI_Comm_set_attr)(comm, key, p) == MPI_SUCCESS)
		return p;
	peers_free(p);
	return NULL;
}

static struct peers *known_of_window(MPI_Win window)
{
	struct peers *p;
	int known = 0;

	return ASK(MPI_Win_get_attr)(window, window_key, &p, &known) == MPI_SUCCESS && known ? p : NULL;
}

static struct peers *new_of_window(MPI_Win window)
{
	struct peers *p;
	MPI_Group group;

	if (ASK(MPI_Win_get_group)(window, &group) != MPI_SUCCESS || !(p = peers_new(group, MPI_PROC_NULL)))
		return NULL;
	if (ASK(MPI_Win_set_attr)(window, window_key, p) == MPI_SUCCESS)
		return p;
	peers_free(p);
	return NULL;
}

/* One thread learns them: what is set twice is freed once, under the eyes of whoever had it. */
static pthread_mutex_t learning = PTHREAD_MUTEX_INITIALIZER;

const struct peers *peers_of(handle h)
{
	MPI_Comm comm = (MPI_Comm) h;
	struct peers *p;

	if (!tally_runs() || key == MPI_KEYVAL_INVALID)
		return NULL;
	if ((p = known_of_comm(comm)))
		return p;
	pthread_mutex_lock(&learning);
	if (!(p = known_of_comm(comm)))
		p = new_of_comm(comm);
	pthread_mutex_unlock(&learning);
	return p;
}

const struct peers *peers_of_window(handle h)
{
	MPI_Win window = (MPI_Win) h;
	struct peers *p;

	if (!tally_runs() || key == MPI_KEYVAL_INVALID)
		return NULL;
	if ((p = known_of_window(window)))
		return p;
	pthread_mutex_lock(&learning);
	if (!(p = known_of_window(window)))
		p = new_of_window(window);
	pthread_mutex_unlock(&learning);
	return p;
}

uint64_t peers_bytes(MPI_Count count, handle type)
{
	MPI_Count size = 0;

	if (!tally_runs() || count <= 0 || ASK(MPI_Type_size_x)((MPI_Datatype) type, &size) != MPI_SUCCESS || size < 0)
		return 0;
	return (uint64_t) count * (uint64_t) size;
}
