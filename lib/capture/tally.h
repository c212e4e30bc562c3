/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CAPTURE_TALLY_H
#define TOPIARY_CAPTURE_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What this rank sent to each other rank of MPI_COMM_WORLD, and the file of it, in the form of Open MPI's monitoring: E the
 * application's messages, I the collectives, S and R one-sided. Any thread may add.
 *
 * The file is written when MPI ends; and before, whenever the time since the start has doubled, so that of a program that is
 * killed at least the first half is kept.
 */
enum tally_kind { TALLY_MESSAGE, TALLY_COLLECTIVE, TALLY_PUT, TALLY_GET, TALLY_KINDS };

/* The file is PREFIX.RANK.prof. False when that is no name. */
bool tally_name(const char *prefix, int rank);

/* Begin; when memory is short nothing is counted. */
void tally_start(int rank, int ranks);
bool tally_runs(void);
void tally_add(enum tally_kind kind, int to, uint64_t bytes);

/* What a persistent request sends at each start: until it is given NULL again, what this thread adds goes into the list. */
struct tally_list {
	size_t n, room;
	struct tally_note {
		enum tally_kind kind;
		int to;
		uint64_t bytes;
	} *note;
};
void tally_divert(struct tally_list *into);
void tally_add_list(const struct tally_list *list);

/* By what the file is known again; and whether it is still as it was, perhaps not there. */
struct tally_stamp {
	uint64_t inode, bytes, seconds, nanoseconds;
};
struct tally_stamp tally_stamp(void);
bool tally_same(struct tally_stamp a, struct tally_stamp b);

/* Write the file, whole or not at all; one that cannot be written is as if the rank had told nothing. And remove it. */
void tally_write(void);
void tally_discard(void);

/* Count no more; after the file is written. */
void tally_stop(void);
void tally_end(void);

#endif
