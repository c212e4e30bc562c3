/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <mpi.h>

#include "base/std.h"
#include "symbols.h"

/*
 * The bytes and messages that this rank sent to each rank of MPI_COMM_WORLD, and their file, in the format of Open
 * MPI's monitoring: E for point-to-point messages, I for collectives, S and R for one-sided transfers. Thread-safe.
 * Called by the wrappers.
 *
 * The file is written in MPI_Finalize; and before that whenever the time since the start has doubled, so that of a
 * program that is killed at least the first half is kept.
 */
enum counter_kind { COUNTER_P2P, COUNTER_COLLECTIVE, COUNTER_PUT, COUNTER_GET, COUNTER_KINDS };

/* Set the file name, PREFIX.RANK.prof. False when it is too long. */
bool counters_name_file(const char *prefix, int rank);

/*
 * --topo-matrix=auto: the names of a program's files begin so, PREFIX.program has its path, and counting ends by
 * itself. A rank that does what a matrix does not describe stops counting, and PREFIX.off says why, for `topiary
 * matrix learn`.
 */
void counters_learn(const char *prefix, const char *program);
void counters_give_up(const char *why);

/* Start counting; when memory is short nothing is counted. alone: no two threads call MPI at the same time. */
void counters_start(int rank, int ranks, bool alone);
bool counters_active(void);

/* Is there something to write? Also where counting has ended by itself (counters.c). */
bool counters_started(void);
void counters_add(enum counter_kind kind, int to, uint64_t bytes);

/*
 * For persistent requests: counters_redirect collects what this thread counts in a list, until it is called with NULL.
 */
struct counter_list {
	size_t n;
	struct counter_entry {
		enum counter_kind kind;
		int to;
		uint64_t bytes;
	} *entry;
};
void counters_redirect(struct counter_list *into);
void counters_add_list(const struct counter_list *list);

/* The identity of the file, all 0 where there is none; and whether it has not changed. */
struct counters_file_stamp {
	uint64_t inode, bytes, seconds, nanoseconds;
};
struct counters_file_stamp counters_file_stamp(void);
bool counters_file_unchanged(struct counters_file_stamp a, struct counters_file_stamp b);

/* Write the file atomically; on failure there is none. And remove it. */
void counters_write(void);
void counters_remove_file(void);

/* Stop counting; counters_end writes the file first. */
void counters_stop(void);
void counters_end(void);

/*
 * The ranks of a communicator or window in MPI_COMM_WORLD, cached as an MPI attribute. Called by the wrappers
 * and collectives.
 */
struct comm_ranks {
	int n;			/* ranks; in an intercommunicator those of the remote group */
	int me;			/* this rank in its own group; MPI_PROC_NULL for windows */
	int *world;		/* world[rank]; negative: not in MPI_COMM_WORLD */
	struct comm_ranks *own;	/* in an intercommunicator the local group, else NULL */
};

/* MPI_COMM_WORLD, without a link-time reference to Open MPI's data. */
MPI_Comm comm_world(void);

/* Was this process started by MPI_Comm_spawn, with an MPI_COMM_WORLD of its own? */
bool process_is_spawned(void);

/* Create and free the attribute keys: after MPI_Init and before MPI_Finalize. */
void comm_ranks_start(void);
void comm_ranks_end(void);

/* Those of a communicator or window, which owns them; NULL when they cannot be determined. */
const struct comm_ranks *comm_ranks_of(handle comm);
const struct comm_ranks *comm_ranks_of_window(handle window);

/* The size of that many elements. */
uint64_t datatype_bytes(MPI_Count count, handle type);

/* Count a message to a rank of a communicator. */
static inline void comm_ranks_count(const struct comm_ranks *p, enum counter_kind kind, int rank, uint64_t bytes)
{
	if (p && rank >= 0 && rank < p->n)
		counters_add(kind, p->world[rank], bytes);
}

/*
 * Persistent requests: register the messages that each MPI_Start of one sends. Takes ownership of the entries of the
 * list and empties it. Called by messages.c and collective.c.
 */
void persistent_register(MPI_Request request, struct counter_list *list);
