/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stddef.h>

#pragma GCC visibility push(default)
#include <slurm/spank.h>
SPANK_PLUGIN(topiary, 1)
#pragma GCC visibility pop

#include "capture.h"
#include "options.h"
#include "rank_file.h"
#include "report.h"
#include "site.h"
#include "srun_side.h"
#include "step.h"
#include "submit.h"
#include "task.h"

/* What each hook does in each place that Slurm loads us into (spank_context()); an empty place is a success. */
typedef int hook_fn(spank_t sp, int argc, char **argv);

static int open_srun(spank_t sp, int argc, char **argv)
{
	return options_register(sp, argc, argv) | srun_follow_map(sp, argc, argv);
}

static int open_node(spank_t sp, int argc, char **argv)
{
	return options_register(sp, argc, argv) | site_defaults(sp, argc, argv);
}

static int prepare_step(spank_t sp, int argc, char **argv)
{
	return step_open(sp, argc, argv) | report_open(sp, argc, argv);
}

static int prepare_task(spank_t sp, int argc, char **argv)
{
	return rank_file_make(sp, argc, argv) | capture_begin(sp, argc, argv) | task_prepare(sp, argc, argv);
}

static hook_fn *const on_init[S_CTX_JOB_SCRIPT + 1] = {
	[S_CTX_LOCAL] = open_srun,
	[S_CTX_ALLOCATOR] = options_register,
	[S_CTX_REMOTE] = open_node,
};
static hook_fn *const on_post_opt[S_CTX_JOB_SCRIPT + 1] = {
	[S_CTX_LOCAL] = submit_options,
	[S_CTX_ALLOCATOR] = submit_options,
	[S_CTX_REMOTE] = prepare_step,
};
static hook_fn *const on_task[S_CTX_JOB_SCRIPT + 1] = { [S_CTX_REMOTE] = prepare_task };
static hook_fn *const on_task_exit[S_CTX_JOB_SCRIPT + 1] = { [S_CTX_REMOTE] = capture_end };
static hook_fn *const on_exit_[S_CTX_JOB_SCRIPT + 1] = { [S_CTX_REMOTE] = step_close };

static int dispatch(hook_fn *const hooks[], spank_t sp, int argc, char **argv)
{
	spank_context_t c = spank_context();

	return c > S_CTX_ERROR && c <= S_CTX_JOB_SCRIPT && hooks[c] ? hooks[c](sp, argc, argv) : 0;
}

int slurm_spank_init(spank_t sp, int argc, char **argv)
{
	return dispatch(on_init, sp, argc, argv);
}

int slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
	return dispatch(on_post_opt, sp, argc, argv);
}

int slurm_spank_task_init(spank_t sp, int argc, char **argv)
{
	return dispatch(on_task, sp, argc, argv);
}

int slurm_spank_task_exit(spank_t sp, int argc, char **argv)
{
	return dispatch(on_task_exit, sp, argc, argv);
}

int slurm_spank_exit(spank_t sp, int argc, char **argv)
{
	return dispatch(on_exit_, sp, argc, argv);
}
