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
 * The step that this slurmstepd runs: its directory RunDir/JOB.STEP with topology.xml, the node's topology restricted
 * to the step's cores, and the environment variables by which its tasks find it. dispatch.c calls the hooks, in the
 * order in which they stand here.
 */
struct step {
	uint32_t job, id;		/* S_JOB_ID, S_JOB_STEPID */
	struct user user;
	char name[32];			/* "7.0", "7.batch", "7.interactive" */
	char node[HOST_NAME_MAX + 1];	/* as slurm.conf names it */
	char path[PATH_MAX];		/* of the directory */
	struct settings settings;
	bool configured;		/* the settings have been read */
	const char *config;		/* config= of plugstack.conf, or NULL for the default */
	int root, dir;			/* RunDir and the directory, open; -1: none */
	pid_t owner;			/* the process that made the directory */
	bool is_local;			/* the export describes this machine: its CPU numbers may be bound to */
	bool has_node;			/* the directory also has the whole node's topology, in STEP_NODE_DIR */
	bool launcher;			/* its tasks are an MPI launcher or the daemons of one (launch/launchers.h) */
	bool follows_map;		/* the job has a rank map, and this step follows it */
	bool user_binds;		/* --cpu-bind, or DefCpuBind of the site: Slurm's binding stays */
};

extern struct step step;

/* In the directory: the user's own, in the batch step of a job with --topo-matrix, on a file system of its own. */
#define STEP_USER_DIR "user"

/* In the directory: the topology of the whole node, for options that look beyond the step's cores. */
#define STEP_NODE_DIR "node"

/* In the directory of the batch step: srun has started tasks on this node. */
#define STEP_SRUN_MARK "srun"

/* Read the settings once, by the arguments of plugstack.conf. 0, or -1 with an error. */
int step_configure(int argc, char **argv, struct err *e);

/* Adopt the topology of the whole node, where step.has_node. 0, or -1 with an error. The caller destroys it. */
int step_adopt_node(hwloc_topology_t *out, struct err *e);

/* slurm_spank_init_post_opt, as root, once a step and before its tasks. Failures are logged. Always 0. */
int step_identify(spank_t sp, int argc, char **argv);
int step_open(spank_t sp, int argc, char **argv);

/* slurm_spank_task_init_privileged, as root, in the mount namespace that the task will have. Always 0. */
int step_mount_user_dir(spank_t sp, int argc, char **argv);

/*
 * slurm_spank_task_exit: at the end of a batch script on one node, print which of the user's options that apply to
 * single tasks had no effect, because srun started none. Always 0.
 */
int step_warn_unused_options(spank_t sp, int argc, char **argv);

/* slurm_spank_exit, as root: remove the directory. Always 0. */
int step_close(spank_t sp, int argc, char **argv);

#endif
