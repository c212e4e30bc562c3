/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "capture.h"

#include <pthread.h>

static int key = MPI_KEYVAL_INVALID, window_key = MPI_KEYVAL_INVALID;
static MPI_Group world_group;

/* Of MPI_COMM_WORLD, by which most messages go: found without asking MPI. */
static struct comm_ranks *world_ranks;
static MPI_Comm world;

MPI_Comm comm_world(void)
{
	return SYMBOL(MPI_Comm, "ompi_mpi_comm_world", MPI_COMM_WORLD);
}

bool process_is_spawned(void)
{
	MPI_Comm none = SYMBOL(MPI_Comm, "ompi_mpi_comm_null", MPI_COMM_NULL), parent = none;

	return PMPI(MPI_Comm_get_parent)(&parent) == MPI_SUCCESS && parent != none;
}

static void comm_ranks_free(struct comm_ranks *p)
{
	if (!p)
		return;
	comm_ranks_free(p->own);
	free(p->world);
	free(p);
}

static int copy_none(MPI_Comm, int, void *, void *, void *, int *flag)
{
	*flag = 0;
	return MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm, int, void *value, void *)
{
	comm_ranks_free(value);
	return MPI_SUCCESS;
}

static int window_copy_none(MPI_Win, int, void *, void *, void *, int *flag)
{
	*flag = 0;
	return MPI_SUCCESS;
}

static int window_delete_attribute(MPI_Win, int, void *value, void *)
{
	comm_ranks_free(value);
	return MPI_SUCCESS;
}

/* Frees the group. NULL when its ranks cannot be determined. */
static struct comm_ranks *comm_ranks_new(MPI_Group group, int me)
{
	struct comm_ranks *p = calloc(1, sizeof(*p));
	int *ranks = NULL, rc = -1;

	if (p && PMPI(MPI_Group_size)(group, &p->n) == MPI_SUCCESS && (ranks = malloc(p->n * sizeof(*ranks))) &&
	    (p->world = malloc(p->n * sizeof(*p->world)))) {
		p->me = me;
		for (int r = 0; r < p->n; r++)
			ranks[r] = r;
		rc = PMPI(MPI_Group_translate_ranks)(group, p->n, ranks, world_group, p->world) == MPI_SUCCESS ? 0 : -1;
	}
	for (int r = 0; !rc && r < p->n; r++)
		if (p->world[r] == MPI_UNDEFINED)
			p->world[r] = -1;
	free(ranks);
	PMPI(MPI_Group_free)(&group);
	if (!rc)
		return p;
	comm_ranks_free(p);
	return NULL;
}

static struct comm_ranks *cached_of_comm(handle comm)
{
	struct comm_ranks *p;
	int found = 0;

	return PMPI(MPI_Comm_get_attr)((MPI_Comm) comm, key, &p, &found) == MPI_SUCCESS && found ? p : NULL;
}

static struct comm_ranks *new_of_comm(handle h)
{
	MPI_Comm comm = (MPI_Comm) h;
	struct comm_ranks *own, *p;
	MPI_Group group;
	int inter, me;

	if (PMPI(MPI_Comm_test_inter)(comm, &inter) != MPI_SUCCESS || PMPI(MPI_Comm_rank)(comm, &me) != MPI_SUCCESS ||
	    PMPI(MPI_Comm_group)(comm, &group) != MPI_SUCCESS || !(p = own = comm_ranks_new(group, me)))
		return NULL;
	if (inter) {
		p = PMPI(MPI_Comm_remote_group)(comm, &group) == MPI_SUCCESS ? comm_ranks_new(group, me) : NULL;
		if (p)
			p->own = own;
		else
			comm_ranks_free(own);
	}
	if (p && PMPI(MPI_Comm_set_attr)(comm, key, p) == MPI_SUCCESS)
		return p;
	comm_ranks_free(p);
	return NULL;
}

void comm_ranks_start(void)
{
	if (PMPI(MPI_Comm_create_keyval)(copy_none, delete_attribute, &key, NULL) != MPI_SUCCESS ||
	    PMPI(MPI_Win_create_keyval)(window_copy_none, window_delete_attribute, &window_key, NULL) != MPI_SUCCESS ||
	    PMPI(MPI_Comm_group)(comm_world(), &world_group) != MPI_SUCCESS)
		key = MPI_KEYVAL_INVALID;
	world = comm_world();
	world_ranks = key == MPI_KEYVAL_INVALID ? NULL : new_of_comm((handle) world);
}

/* MPI_Finalize deletes the attributes of MPI_COMM_WORLD. */
void comm_ranks_end(void)
{
	if (key == MPI_KEYVAL_INVALID)
		return;
	world_ranks = NULL;
	PMPI(MPI_Group_free)(&world_group);
	PMPI(MPI_Win_free_keyval)(&window_key);
	PMPI(MPI_Comm_free_keyval)(&key);
}

static struct comm_ranks *cached_of_window(handle window)
{
	struct comm_ranks *p;
	int found = 0;

	return PMPI(MPI_Win_get_attr)((MPI_Win) window, window_key, &p, &found) == MPI_SUCCESS && found ? p : NULL;
}

static struct comm_ranks *new_of_window(handle h)
{
	MPI_Win window = (MPI_Win) h;
	struct comm_ranks *p;
	MPI_Group group;

	if (PMPI(MPI_Win_get_group)(window, &group) != MPI_SUCCESS || !(p = comm_ranks_new(group, MPI_PROC_NULL)))
		return NULL;
	if (PMPI(MPI_Win_set_attr)(window, window_key, p) == MPI_SUCCESS)
		return p;
	comm_ranks_free(p);
	return NULL;
}

/* Setting the attribute a second time would free the first value while another thread uses it. */
static pthread_mutex_t creating = PTHREAD_MUTEX_INITIALIZER;

static const struct comm_ranks *ranks_find(handle h, struct comm_ranks *(*cached)(handle h),
					   struct comm_ranks *(*new)(handle h))
{
	struct comm_ranks *p;

	if (!counters_active() || key == MPI_KEYVAL_INVALID)
		return NULL;
	if ((p = cached(h)))
		return p;
	pthread_mutex_lock(&creating);
	if (!(p = cached(h)))
		p = new(h);
	pthread_mutex_unlock(&creating);
	return p;
}

const struct comm_ranks *comm_ranks_of(handle h)
{
	if ((MPI_Comm) h == world && world_ranks && counters_active())
		return world_ranks;
	return ranks_find(h, cached_of_comm, new_of_comm);
}

const struct comm_ranks *comm_ranks_of_window(handle h)
{
	return ranks_find(h, cached_of_window, new_of_window);
}

uint64_t datatype_bytes(MPI_Count count, handle type)
{
	MPI_Count size = 0;

	if (!counters_active() || count <= 0 || PMPI(MPI_Type_size_x)((MPI_Datatype) type, &size) != MPI_SUCCESS ||
	    size < 0)
		return 0;
	return (uint64_t) count * (uint64_t) size;
}
