/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/*
 * What the library knows without MPI: where this process is bound, and what `topiary reorder` answers (cli/place/
 * reorder.c, which has the question's format). The command runs as a child, so that the engine's time, memory, faults
 * and libraries are not the program's, and neither is its licence. For reorder.c. Thread-safe.
 */
enum { ASK_PLACE = 256 };

/* TOPIARY_REORDER: "off", "on" or "report"; "off" in a program that runs with the rights of another user. */
const char *ask_mode(void);

/*
 * A line of the question, without its newline: this host, as it and as Slurm names it, and by level the domain that
 * holds all CPUs of the process, by the number that it has in the node's topology.
 */
void ask_place(char out[static ASK_PLACE]);

/*
 * Which process is to have each rank: process[ranks], of so many processes. *gain: by how many percent the cost falls.
 * 0, or -1 with the reason why the order stays. What was asked before is answered from memory, with *known.
 */
int ask_order(const struct buf *question, int processes, int ranks, int *process, double *gain, bool *known,
	      struct err *why);
