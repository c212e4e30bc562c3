/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_STEP_H
#define TOPIARY_SPANK_STEP_H

#include <hwloc.h>
#include <limits.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/settings.h"
#include "user.h"

/*
 * The step that this slurmstepd runs: its folder RunDir/JOB.STEP with topology.xml, the node's topology restricted to the
 * step's cores, and what its tasks find in their environment.
 */
struct step {
	uint32_t job, id;		/* S_JOB_ID, S_JOB_STEPID */
	struct user user;		/* without its supplementary groups */
	char name[32];			/* "7.0", "7.batch", "7.interactive" */
	char path[PATH_MAX];		/* of the folder */
	struct settings settings;
	bool configured;		/* they are read */
	const char *config;		/* config= of plugstack.conf, or NULL for the default */
	int root, dir;			/* RunDir and the folder, open; -1: there is none */
	pid_t owner;			/* who made the folder */
	bool here;			/* the export describes this very system: its CPU numbers may be bound to */
	bool node;			/* the folder has the whole node's topology, too: STEP_NODE_DIR */
	bool mapped;			/* the job has a map of its ranks, and this step follows it */
	bool user_binds;		/* the user said --cpu-bind: what Slurm bound a task to is not to be left */
};

extern struct step step;

/* Below the folder: the user's own, in the batch step of a job with --topo-matrix. */
#define STEP_USER_DIR "user"

/* Below the folder: the topology of the whole node, for options that look beyond the step's cores. */
#define STEP_NODE_DIR "node"

/* Read the settings, unless that is done: by arguments of plugstack.conf. 0 or -1. */
int step_configure(int argc, char **argv, struct err *e);

/* Adopt the topology of the whole node, where step.node says that there is one. 0 or -1. */
int step_node_adopt(hwloc_topology_t *out, struct err *e);

/* slurm_spank_init_post_opt, as root, once a step and before its tasks; slurm_spank_exit, as root. Always 0. */
int step_open(spank_t sp, int argc, char **argv);
int step_close(spank_t sp, int argc, char **argv);

#endif
