/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CAPTURE_TALLY_H
#define TOPIARY_CAPTURE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What this rank sent to each other rank of MPI_COMM_WORLD, and the file of it, in the form of Open MPI's monitoring: E the
 * application's messages, I the collectives, S and R one-sided. Any thread may add.
 */
enum tally_kind { TALLY_MESSAGE, TALLY_COLLECTIVE, TALLY_PUT, TALLY_GET, TALLY_KINDS };

/* Begin; when memory is short nothing is counted. */
void tally_start(int rank, int ranks);
bool tally_runs(void);
void tally_add(enum tally_kind kind, int to, uint64_t bytes);

/* By what the file that this rank would write is known again; and whether it is still as it was, perhaps not there. */
struct tally_stamp {
	uint64_t inode, bytes, seconds, nanoseconds;
};
struct tally_stamp tally_stamp(const char *prefix);
bool tally_same(struct tally_stamp a, struct tally_stamp b);

/* End: write PREFIX.RANK.prof, whole or not at all; a file that cannot be written is as if the rank had told nothing. */
void tally_end(const char *prefix);

#endif
