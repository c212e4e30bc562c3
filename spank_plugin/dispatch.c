/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/std.h"

#pragma GCC visibility push(default)
#include <slurm/spank.h>
SPANK_PLUGIN(topiary, 1)
#pragma GCC visibility pop

#include "launch/launch.h"
#include "options.h"
#include "step/step.h"
#include "task/task.h"

typedef int action_fn(spank_t sp, int argc, char **argv);

/* The site's defaults first: Slurm passes the user's options afterwards. */
static int init_node(spank_t sp, int argc, char **argv)
{
	/* step_open tries again, and logs what is wrong. */
	if (!step_configure(argc, argv, NULL))
		options_apply_site(&step.settings);
	return options_register(sp, options_copy_path);
}

/*
 * What each SPANK hook runs, in this order, in each process that loads the plugin (spank_context()); an empty row
 * succeeds.
 */
enum { CONTEXTS = S_CTX_JOB_SCRIPT + 1, MAX_ACTIONS = 10 };
typedef action_fn *const actions[CONTEXTS][MAX_ACTIONS];

static actions on_init = {
	[S_CTX_LOCAL] = { submit_init, srun_follow_map },
	[S_CTX_ALLOCATOR] = { submit_init },
	[S_CTX_REMOTE] = { init_node },
};
/* launchers_detect looks for variables of a surrounding step, which step_open removes. */
static actions on_post_opt = {
	[S_CTX_LOCAL] = { submit_options },
	[S_CTX_ALLOCATOR] = { submit_options },
	[S_CTX_REMOTE] = { step_identify, options_resolve, launchers_detect, rank_file_unset_env, step_open,
		report_open, gpus_open, capture_open, monitor_open },
};
static actions on_local_user = { [S_CTX_LOCAL] = { srun_report_learned, srun_warn_launcher, step_end_note } };
static actions on_task_privileged = { [S_CTX_REMOTE] = { step_mount_user_dir } };
static actions on_task = {
	[S_CTX_REMOTE] = { rank_file_make, launchers_prefix_ranks, step_reorder, capture_begin, launchers_prepare,
		task_prepare },
};
static actions on_task_exit = { [S_CTX_REMOTE] = { capture_end, step_warn_unused_options, monitor_task_exit } };
static actions on_step_exit = {
	[S_CTX_LOCAL] = { step_end_srun },
	[S_CTX_REMOTE] = { monitor_close, step_close },
};

/*
 * NULL with TopoMode=on, if it is for such a job (known on a node); else why the options are accepted, and nothing is
 * done. Where topiary.conf cannot be read, the hooks report that.
 */
static const char *why_off(spank_t sp)
{
	static const char *const variables[] = { "SLURM_JOB_PARTITION", "SLURM_JOB_QOS", "SLURM_JOB_ACCOUNT" };
	char space[3][256], *names[3] = {0};

	if (step.configured && strcasecmp(step.settings.topo_mode, "on"))
		return "TopoMode in topiary.conf is not on";
	if (!step.configured || !spank_remote(sp))
		return NULL;
	for (int i = 0; i < 3; i++)
		if (spank_getenv(sp, variables[i], space[i], sizeof(space[i])) == ESPANK_SUCCESS)
			names[i] = space[i];
	return settings_mode_excludes(&step.settings, names[0], names[1], names[2]);
}

static int dispatch(actions hook, spank_t sp, int argc, char **argv)
{
	const char *why = hook == on_init ? NULL : why_off(sp);
	int c = spank_context(), rc = 0;

	if (why) {
		if (hook == on_task) {
			/* Once a step, on the stderr of its first task. */
			struct buf list = {0};
			uint32_t rank = 1;

			options_list_given(&list);
			if (list.len && !list.failed && spank_get_item(sp, S_TASK_GLOBAL_ID, &rank) == ESPANK_SUCCESS &&
			    !rank)
				slurm_spank_log("topiary: no effect: %s: %s", list.data, why);
			buf_free(&list);
		}
		return 0;
	}
	for (int i = 0; c > S_CTX_ERROR && c < CONTEXTS && i < MAX_ACTIONS && hook[c][i]; i++)
		rc |= hook[c][i](sp, argc, argv);
	return rc;
}

#define HOOK(name, actions)				\
	int name(spank_t sp, int argc, char **argv)	\
	{						\
		return dispatch(actions, sp, argc, argv);	\
	}

HOOK(slurm_spank_init, on_init)
HOOK(slurm_spank_init_post_opt, on_post_opt)
HOOK(slurm_spank_local_user_init, on_local_user)
HOOK(slurm_spank_task_init_privileged, on_task_privileged)
HOOK(slurm_spank_task_init, on_task)
HOOK(slurm_spank_task_exit, on_task_exit)
HOOK(slurm_spank_exit, on_step_exit)
