/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_STEP_H
#define TOPIARY_SPANK_STEP_H

#include <hwloc.h>
#include <slurm/spank.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/settings.h"

/* A job's user, with the supplementary groups of its tasks. */
struct user {
	uid_t uid;
	gid_t gid, *groups;		/* Slurm's own memory */
	int ngroups;
};

/*
 * In a child in which Slurm has dropped root for good, before it reads anything: the user's other processes cannot
 * trace it, and neither it nor what it executes can gain privileges. 0, or -1 with an error when it could, or when it
 * does not belong to that user alone.
 */
int user_confine(const struct user *u, struct err *e);

/*
 * In a child of root's: become that user for good, with these groups. No directory service is asked, which takes long
 * or blocks in a child of a process with threads. 0, or -1 with errno.
 */
int user_become(const struct user *u);

/*
 * As the user: open a directory to write to, under a name that others can guess. -1 with an error for a link, and if it
 * is another user's or all may write to it: files there could be read or replaced.
 */
int user_open_directory(const struct user *u, const char *path, struct err *e);

/* Has root been dropped permanently for that user? 0, or -1 with an error. */
int user_check(const struct user *u, struct err *e);

/*
 * Variables that Topiary sets in the environment of tasks. A step inherits the environment of the step around it,
 * perhaps from another node, and a job that of the job it was submitted from: TOPIARY_TASK_ENV lists the variables
 * that Topiary set, each with a hash of its value, so that they can be replaced unless the user has changed them
 * since. For step/, task/ and launch/.
 */

/* Is the variable set, to whatever value? sp: the spank_t; these two serve as bind_vars and in hwview/image.h, too. */
bool task_env_has(void *sp, const char *name);

/* Set and list it, unless it is set. name: without a space or colon. */
void task_env_set(void *sp, const char *name, const char *value);

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
	bool launcher;			/* its tasks are an MPI launcher or the daemons of one (launch/launchers.c) */
	bool daemons;			/* its tasks are a launcher's daemons: srun printed what does not apply */
	bool follows_map;		/* the job has a rank map, and this step follows it */
	bool user_binds;		/* --cpu-bind, or DefCpuBind of the site: Slurm's binding stays */
};

extern struct step step;

/* In the directory: the user's own, in the batch step of a job with --topo-matrix, on a file system of its own. */
#define STEP_USER_DIR "user"

/* In the directory: the topology of the whole node, for options that look beyond the step's cores. */
#define STEP_NODE_DIR "node"

/* In the directory of the batch step: srun has started tasks or a launcher's daemons on this node. */
#define STEP_SRUN_MARK "srun"

/* Memory limit of commands that read recorded matrices; 65,536 ranks with a hundred peers each need less. */
#define STEP_MATRIX_MEMORY ((rlim_t) 2 << 30)

/* Read the settings once, by the arguments of plugstack.conf. 0, or -1 with an error. */
int step_configure(int argc, char **argv, struct err *e);

/*
 * Slurm's abstract cores of the step on this node, Slurm's own memory; NULL: Slurm has none. With
 * --gres-flags=enforce-binding it names none where no core of the job is near the step's devices (_pick_step_cores() of
 * step_mgr.c). The step's cgroup then keeps the CPUs of the job's, so that these are the job's cores.
 */
const char *step_cores(spank_t sp);

/* Adopt the topology of the whole node, where step.has_node. 0, or -1 with an error. The caller destroys it. */
int step_adopt_node(hwloc_topology_t *out, struct err *e);

/*
 * slurm_spank_init_post_opt, after step_open: memory that slurmstepd shares with the tasks that srun starts here, all
 * zero: head bytes and `each` for each of *tasks tasks, at most max. NULL: there are no such tasks, or no memory.
 */
void *step_share(spank_t sp, size_t head, size_t each, unsigned max, uint32_t *tasks);

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

/*
 * --topo-capture=FILE, in the batch step; called by dispatch.c. Before the script: a directory FILE.JOB for the ranks'
 * records, and the variables by which Open MPI's monitoring (ompi_info --param pml monitoring) or Topiary's recorder
 * (lib/capture) writes there. After it, a process of the job, which was started before the script, runs `topiary
 * matrix` to merge the records into FILE. All of it as the user. Whatever fails, the job ends as it would, with one
 * line on its stderr.
 */

/* slurm_spank_init_post_opt, as root; slurm_spank_task_init, as the user. Always 0. */
int capture_open(spank_t sp, int argc, char **argv);
int capture_begin(spank_t sp, int argc, char **argv);

/* slurm_spank_task_exit, as root: wait for that process, for a few seconds at most. Always 0. */
int capture_end(spank_t sp, int argc, char **argv);

/*
 * slurm_spank_task_init, as the user: --topo-reorder preloads libtopiary-reorder (lib/reorder), also into the batch
 * script, whose mpirun passes it on. Called by dispatch.c. Always 0.
 */
int step_reorder(spank_t sp, int argc, char **argv);

/*
 * --topo-monitor: slurmstepd leaves what is asked for in the step's directory (monitor/ask.h), and topiary-monitor(8)
 * records it there. After the last task of the step on this node the trace is copied into the job's folder, as the
 * user. Called by dispatch.c. Whatever fails, the step runs and ends as it would, with one line on its stderr. Always
 * 0.
 */

/* slurm_spank_init_post_opt, as root, after step_open. */
int monitor_open(spank_t sp, int argc, char **argv);

/* slurm_spank_task_exit, as root; and slurm_spank_exit, before step_close, of a step whose tasks were killed. */
int monitor_task_exit(spank_t sp, int argc, char **argv);
int monitor_close(spank_t sp, int argc, char **argv);

/*
 * What follows a recorded step, once for all of its nodes: the line of `topiary advise --brief` on the job's stderr
 * (,advise of --topo-monitor and TopoMonitor). By then each node has written its files: srun ends after the tasks' exit
 * hooks have run everywhere. For a step of srun it is srun that runs the command, for a batch script a child of
 * slurmstepd that has become the user. The command has a time limit; what fails is one line, and changes nothing for
 * the job.
 */

/* srun: slurm_spank_local_user_init, and slurm_spank_exit. Called by dispatch.c. Always 0. */
int step_end_note(spank_t sp, int argc, char **argv);
int step_end_srun(spank_t sp, int argc, char **argv);

/*
 * Where the tasks of a recorded step were, for NODE.tasks beside its trace (trace/tasks.h): each task, as the user,
 * leaves its line in memory that they and slurmstepd share, and at the step's end a child, as the user,
 * writes them. Nothing of root's reads a line.
 */

bool task_lines_are_open(void);

/* The line of a local task, JSON without a newline; one that is too long is left out. */
void task_lines_set(unsigned local, const char *line);

#endif
