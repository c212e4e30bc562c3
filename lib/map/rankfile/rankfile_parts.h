/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_RANKFILE_RANKFILE_PARTS_H
#define TOPIARY_MAP_RANKFILE_RANKFILE_PARTS_H

#include "map/matrix/numbers.h"
#include "map/rankfile/rankfile.h"

/* Shared by the files rankfile*.c. */

struct rankfile_writer {
	const struct places *places;
	const struct mapping *mapping;
	const char *path;		/* of the file, for the environment */
	struct buf *out;
};

static inline const struct place *rankfile_place_of(const struct rankfile_writer *w, unsigned rank)
{
	return &w->places->place[w->mapping->place[rank]];
}

static inline const char *rankfile_host_of(const struct rankfile_writer *w, unsigned rank)
{
	return w->places->hosts[rankfile_place_of(w, rank)->host];
}

/*
 * The ranks of each host, ascending: those of host h are rank[first[h]] .. rank[first[h + 1] - 1], in the order of
 * local ranks.
 */
struct rankfile_locals {
	unsigned *first, *rank;
};

/* 0, or -1: memory. */
int rankfile_local_ranks_make(const struct rankfile_writer *w, struct rankfile_locals *l, struct err *e);
void rankfile_local_ranks_free(struct rankfile_locals *l);

/* The first rank after this one that is on another host: launchers merge adjacent lines of one host. */
unsigned rankfile_run_end(const struct rankfile_writer *w, unsigned rank);

/* The OS numbers of the PUs of a rank's cores. Returns their number; pu has room for that many, or is NULL to ask. */
unsigned rankfile_pus_of(const struct rankfile_writer *w, unsigned rank, unsigned *pu);

/* Appends them, separated by mark. 0, or -1: memory. */
int rankfile_pus_write(const struct rankfile_writer *w, unsigned rank, const char *mark, struct buf *out);

/* One part for each launcher: the file, and the lines of the environment. */
int rankfile_hydra_file(const struct rankfile_writer *w, struct err *e);
int rankfile_hydra_env(const struct rankfile_writer *w, struct err *e);
int rankfile_intel_file(const struct rankfile_writer *w, struct err *e);
int rankfile_intel_env(const struct rankfile_writer *w, struct err *e);
int rankfile_mvapich_file(const struct rankfile_writer *w, struct err *e);
int rankfile_mvapich_env(const struct rankfile_writer *w, struct err *e);
int rankfile_cray_file(const struct rankfile_writer *w, struct err *e);
int rankfile_cray_env(const struct rankfile_writer *w, struct err *e);
int rankfile_srun_file(const struct rankfile_writer *w, struct err *e);
int rankfile_srun_env(const struct rankfile_writer *w, struct err *e);

#endif
