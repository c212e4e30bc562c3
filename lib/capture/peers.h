/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CAPTURE_PEERS_H
#define TOPIARY_CAPTURE_PEERS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "real.h"
#include "tally.h"

/* Who the ranks of a communicator are in MPI_COMM_WORLD. */
struct peers {
	int n, me;		/* ranks, in an intercommunicator those of the other group; this rank among its own, but for windows */
	int *world;		/* world[rank]; negative: not in MPI_COMM_WORLD */
	struct peers *own;	/* in an intercommunicator this rank's own group, else NULL */
};

/* MPI_COMM_WORLD as a handle, without a reference to Open MPI's data. */
MPI_Comm peers_world(void);

/* Was this process started by another MPI program, with a world of its own? */
bool peers_spawned(void);

/* Remember peers with their communicators and windows from now on, and no longer. */
void peers_start(void);
void peers_end(void);

/* Those of a communicator or of a window, which own them; NULL when they cannot be told. */
const struct peers *peers_of(handle comm);
const struct peers *peers_of_window(handle window);

/* The bytes of so many elements. */
uint64_t peers_bytes(MPI_Count count, handle type);

/* Count bytes to a rank of a communicator. */
static inline void peers_tell(const struct peers *p, enum tally_kind kind, int rank, uint64_t bytes)
{
	if (p && rank >= 0 && rank < p->n)
		tally_add(kind, p->world[rank], bytes);
}

#endif
