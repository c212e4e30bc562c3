/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_OCCUPANCY_H
#define TOPIARY_SELECT_OCCUPANCY_H

#include "base/buf.h"
#include "slurm_glue.h"
#include "snapshot_watch.h"

/*
 * The cores and memory of each node that jobs hold, kept between decisions: Slurm reports when a job begins and ends,
 * so that a decision need not look at every job. Sets of cores are as in score/score.h. The caller holds slurmctld's
 * job and node locks, as during Slurm's calls of select functions. Nothing here ends slurmctld when memory is short.
 */

/*
 * Marks the occupancy as outdated: it is read again from slurmctld's jobs, because nodes or jobs changed in ways not
 * reported below.
 */
void occupancy_forget(void);

/* occupancy_add: the job now holds what its job_resrcs states. occupancy_drop: it holds nothing. */
void occupancy_add(const job_record_t *job);
void occupancy_drop(const job_record_t *job);

/* Call before the functions below: reads what is outdated. Returns 0, or -1 when memory is short. */
int occupancy_sync(void);

/* Of a node, until the next call of a function above. */
const uint64_t *occupancy_busy(int node);	/* core_set_words(glue_cores(node)) words */
unsigned occupancy_busy_cores(int node);
uint64_t occupancy_memory(int node);		/* MB */

/*
 * By core of the node, the memory that its jobs asked for, in units of score/numa_memory.h; in a copy, or NULL for now.
 */
const uint32_t *occupancy_core_memory(const uint64_t *copy, int node);
/* By node, the cores that jobs of a partition hold. NULL when memory is short. The caller frees it. */
uint32_t *occupancy_of_partition(const part_record_t *part);

uint32_t occupancy_offset(int node);		/* cores of all nodes before it; of node_record_count: of all */
unsigned occupancy_node_words(void);		/* words of the busy cores of the node with the most cores */

/*
 * A copy of the busy cores of all nodes and of their memory, for simulation: a node's words begin at
 * occupancy_at(node). NULL when memory is short. The caller frees it. occupancy_without clears in such a copy what one
 * job holds.
 */
uint64_t *occupancy_copy(void);
uint64_t *occupancy_none(void);		/* as if there were no jobs */
size_t occupancy_at(int node);
void occupancy_without(const job_record_t *job, uint64_t *copy);

/* Frees all that is kept between decisions, the shapes below, too. */
void occupancy_end(void);

/*
 * The cores that a call of select_p_job_test must not use: those that Slurm passes for reservations, and those that
 * Topiary adds to steer the choice. Until 23.02 one bitmap of all cores of the cluster, since then one for each node.
 * Sets of cores are as in score/score.h; call occupancy_sync first.
 */

/* Clears in cores[] of a node what is excluded there. */
void exclusion_apply(const slurm_exclusion_t *x, int node, uint64_t *cores);

/* A copy of the exclusion passed by Slurm, to add to. Free with exclusion_free. */
slurm_exclusion_t *exclusion_copy(const slurm_exclusion_t *came);
void exclusion_free(slurm_exclusion_t *x);

/* Excludes all cores of a node except those in keep[]. */
void exclusion_keep(slurm_exclusion_t *x, int node, const uint64_t *keep);

/*
 * The shape of each node: the snapshot's, checked against slurmctld's own counts. Cached until either changes, because
 * each decision needs it for each node.
 */

/*
 * Call before a decision; the view remains the caller's and must stay valid until the last node_shape. Returns 0, or -1
 * when memory is short.
 */
int node_shapes_begin(struct snapshot_view *v);

/*
 * The shape of a node, or NULL. A shape that disagrees with Slurm's counts is logged once for each view and not used.
 */
const struct shape *node_shape(int node);

/*
 * The shape of a node in a view, or NULL: unknown, or not what slurmctld counts there. Where slurm.conf has fewer cores
 * of as many threads, the first ones: slurmd binds Slurm's nth core to the machine's nth (xcpuinfo_abs_to_mac()).
 */
const struct shape *node_shape_in(struct snapshot_view *v, const node_record_t *node);

/* Appends how slurm.conf and the snapshot differ about a node; NULL: the snapshot does not have it. */
void node_difference_text(const node_record_t *node, const struct shape *of_snapshot, struct buf *out);

/* As the snapshot has it, whatever slurmctld counts; NULL: it does not have the node. */
const struct shape *node_shape_of_snapshot(int node);

/* The level, or where a node (NULL: unknown) does not have it the next one out, whose domains count in its place. */
enum level node_shape_level(const struct shape *shape, enum level level);

#endif
