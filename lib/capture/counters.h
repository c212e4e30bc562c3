/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CAPTURE_COUNTERS_H
#define TOPIARY_CAPTURE_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The bytes and messages that this rank sent to each rank of MPI_COMM_WORLD, and their file, in the format of Open
 * MPI's monitoring: E for point-to-point messages, I for collectives, S and R for one-sided transfers. Thread-safe.
 * Called by the wrappers (wrap_*.c).
 *
 * The file is written in MPI_Finalize; and before that whenever the time since the start has doubled, so that of a
 * program that is killed at least the first half is kept.
 */
enum counter_kind { COUNTER_P2P, COUNTER_COLLECTIVE, COUNTER_PUT, COUNTER_GET, COUNTER_KINDS };

/* Set the file name, PREFIX.RANK.prof. False when it is too long. */
bool counters_name_file(const char *prefix, int rank);

/* Start counting; when memory is short nothing is counted. */
void counters_start(int rank, int ranks);
bool counters_active(void);
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

#endif
