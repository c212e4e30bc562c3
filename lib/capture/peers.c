/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "peers.h"

#include <pthread.h>
#include <stdlib.h>


static int key = MPI_KEYVAL_INVALID;
static MPI_Group world_group;

MPI_Comm peers_world(void)
{
#ifdef OPEN_MPI
	return (MPI_Comm) real_data("ompi_mpi_comm_world");
#else
	return MPI_COMM_WORLD;
#endif
}

static int copy_none(MPI_Comm comm, int k, void *extra, void *value, void *out, int *flag)
{
	(void) comm, (void) k, (void) extra, (void) value, (void) out;
	*flag = 0;
	return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int k, void *value, void *extra)
{
	struct peers *p = value;

	(void) comm, (void) k, (void) extra;
	free(p->world);
	free(p);
	return MPI_SUCCESS;
}

void peers_start(void)
{
	if (ASK(MPI_Comm_create_keyval)(copy_none, drop, &key, NULL) != MPI_SUCCESS ||
	    ASK(MPI_Comm_group)(peers_world(), &world_group) != MPI_SUCCESS)
		key = MPI_KEYVAL_INVALID;
}

/* The attributes of MPI_COMM_WORLD go with it. */
void peers_end(void)
{
	if (key == MPI_KEYVAL_INVALID)
		return;
	ASK(MPI_Group_free)(&world_group);
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

static int learn(MPI_Comm comm, struct peers *p)
{
	MPI_Group group;
	int inter, rc;

	if (ASK(MPI_Comm_test_inter)(comm, &inter) != MPI_SUCCESS || ASK(MPI_Comm_rank)(comm, &p->me) != MPI_SUCCESS)
		return -1;
	p->inter = inter;
	rc = inter ? ASK(MPI_Comm_remote_group)(comm, &group) : ASK(MPI_Comm_group)(comm, &group);
	if (rc != MPI_SUCCESS)
		return -1;
	rc = ASK(MPI_Group_size)(group, &p->n) == MPI_SUCCESS ? translate(group, p) : -1;
	ASK(MPI_Group_free)(&group);
	return rc;
}

static struct peers *known_peers(MPI_Comm comm)
{
	struct peers *p;
	int known = 0;

	return ASK(MPI_Comm_get_attr)(comm, key, &p, &known) == MPI_SUCCESS && known ? p : NULL;
}

static struct peers *new_peers(MPI_Comm comm)
{
	struct peers *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	if (!learn(comm, p) && ASK(MPI_Comm_set_attr)(comm, key, p) == MPI_SUCCESS)
		return p;
	free(p->world);
	free(p);
	return NULL;
}

/* One thread learns them: what is set twice is freed once, under the eyes of whoever had it. */
const struct peers *peers_of(handle h)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	MPI_Comm comm = (MPI_Comm) h;
	struct peers *p;

	if (!tally_runs() || key == MPI_KEYVAL_INVALID)
		return NULL;
	if ((p = known_peers(comm)))
		return p;
	pthread_mutex_lock(&lock);
	if (!(p = known_peers(comm)))
		p = new_peers(comm);
	pthread_mutex_unlock(&lock);
	return p;
}

int peers_in_group(MPI_Group group, int rank)
{
	int to = MPI_UNDEFINED;

	if (!tally_runs() || key == MPI_KEYVAL_INVALID || rank < 0)
		return -1;
	if (ASK(MPI_Group_translate_ranks)(group, 1, &rank, world_group, &to) != MPI_SUCCESS || to == MPI_UNDEFINED)
		return -1;
	return to;
}

uint64_t peers_bytes(MPI_Count count, handle type)
{
	MPI_Count size = 0;

	if (!tally_runs() || count <= 0 || ASK(MPI_Type_size_x)((MPI_Datatype) type, &size) != MPI_SUCCESS || size < 0)
		return 0;
	return (uint64_t) count * (uint64_t) size;
}
