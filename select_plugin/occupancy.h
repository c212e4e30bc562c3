/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_OCCUPANCY_H
#define TOPIARY_SELECT_OCCUPANCY_H

#include "slurm_glue.h"

/*
 * Which cores and how much memory of each node jobs hold, kept from one decision to the next: Slurm tells when a job
 * begins and ends, so that a decision need not look at every job. Sets of cores are as in score/score.h. All of it
 * under slurmctld's job and node locks, which the select functions of Slurm are called with; nothing here ends
 * slurmctld when memory is short.
 */

/* All is to be read anew from slurmctld's jobs: nodes or jobs changed in ways not told below. */
void occupancy_forget(void);

/* The job holds what its job_resrcs say, or, in occupancy_drop, nothing more. */
void occupancy_add(const job_record_t *job);
void occupancy_drop(const job_record_t *job);

/* Before anything below is called: read what is to be read. 0, or -1 when memory is short. */
int occupancy_sync(void);

/* Of a node, until the next of the calls above. */
const uint64_t *occupancy_busy(int node);	/* core_set_words(glue_cores(node)) words */
unsigned occupancy_busy_cores(int node);
uint64_t occupancy_memory(int node);		/* MB */
uint32_t occupancy_offset(int node);		/* cores of all nodes before it; of node_record_count: of all */

/*
 * A copy of what is busy on all nodes, to reckon with: node's words begin at occupancy_at(node). NULL when memory is
 * short. To be freed. occupancy_without clears in such a copy what one job holds.
 */
uint64_t *occupancy_copy(void);
uint64_t *occupancy_none(void);		/* as if no job were there */
size_t occupancy_at(int node);
void occupancy_without(const job_record_t *job, uint64_t *copy);

void occupancy_end(void);

#endif
