/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "map/places/places.h"
#include "map/engine/solve.h"

/*
 * The mapping in the format of each launcher: a file, and the environment variables that the launcher needs.
 *
 *	plain		`rank host leaf[,leaf...]`: for programs
 *	openmpi		Open MPI up to 4 (mpirun(1), "Rankfiles"): `rank N=host slot=S[,S...]`, S the logical core
 *			within the restricted topology
 *	openmpi-seq	Open MPI 1.8 to 4, a host file for the sequential mapper: `host S[,S...]`, rank after rank.
 *			Unlike a rank file it does not affect what the program spawns
 *	openmpi5	as openmpi, for PRRTE, which accepts the file on the command line only
 *	mpich		Hydra's machinefile: `host:N binding=user:P[+P...],...`, a line for each run of ranks on a host,
 *			P the system's PUs
 *	intelmpi	Intel MPI's machinefile, `host:N`, which it accepts on the command line only, and a list of PUs
 *			by local rank, the same on all hosts
 *	mvapich2	one host for each rank, and such a list
 *	cray		MPICH_RANK_ORDER: ranks by node, on each by core; cannot leave cores empty
 *	srun		one host for each rank, for SLURM_HOSTFILE, and the leaves by local rank, for the plugin on the
 *			node (TOPIARY_PLACES)
 */

/* 0 if the name is in the list above, or -1 with an error that lists all names. */
int rankfile_check(const char *format, struct err *e);

/* Whether it names PUs by OS number: then places->numbers must be set. */
bool rankfile_wants_numbers(const char *format);

/*
 * 0, or -1: an unknown format, or a mapping that the launcher cannot express, for example if hosts would need different
 * lists.
 */
int rankfile_write(const char *format, const struct places *p, const struct mapping *m, struct buf *out, struct err *e);

/*
 * Writes `NAME=value` lines for the environment of the launcher that reads the file at path; there may be none. 0 or
 * -1.
 */
int rankfile_env(const char *format, const struct places *p, const struct mapping *m, const char *path, struct buf *out,
		 struct err *e);

/* The kernel limits a variable to 128 KiB: beyond this, places are left out, and ranks are placed on nodes only. */
#define RANKFILE_PLACES_MAX 120000u
