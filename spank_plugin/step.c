/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "step.h"

#include <slurm/slurm.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clip.h"
#include "options.h"
#include "run_dir.h"

struct step step = { .root = -1, .dir = -1 };

static void name_step(void)
{
	switch (step.id) {
	case SLURM_BATCH_SCRIPT:
		snprintf(step.name, sizeof(step.name), "%u.batch", step.job);
		break;
	case SLURM_INTERACTIVE_STEP:
		snprintf(step.name, sizeof(step.name), "%u.interactive", step.job);
		break;
	default:
		snprintf(step.name, sizeof(step.name), "%u.%u", step.job, step.id);
	}
}

static int identify(spank_t sp, struct err *e)
{
	if (spank_get_item(sp, S_JOB_ID, &step.job) || spank_get_item(sp, S_JOB_STEPID, &step.id) ||
	    spank_get_item(sp, S_JOB_UID, &step.uid) || spank_get_item(sp, S_JOB_GID, &step.gid))
		return err_set(e, "Slurm does not say which step this is");
	name_step();
	return 0;
}

static int configure(int argc, char **argv, struct err *e)
{
	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "config=", 7))
			return err_set(e, "plugstack.conf: '%s' is no argument of ours (config=FILE is)", argv[i]);
		step.config = argv[i] + 7;
	}
	return settings_load(step.config, &step.settings, e);
}

static bool same(spank_t sp, const char *name, const char *other, const char *suffix)
{
	char value[PATH_MAX], wanted[PATH_MAX + 32];
	size_t n;

	if (spank_getenv(sp, name, value, sizeof(value)) || spank_getenv(sp, other, wanted, PATH_MAX))
		return false;
	n = strlen(wanted);
	snprintf(wanted + n, sizeof(wanted) - n, "%s", suffix);
	return !strcmp(value, wanted);
}

/*
 * A step inherits the environment of the step around it, perhaps on another node, and a job that of the job it was submitted
 * from. What we put there stands beside a variable of our own that says so; anything else was set by the user and stays.
 */
static void drop_inherited(spank_t sp)
{
	if (same(sp, "HWLOC_XMLFILE", "TOPIARY_STEP_DIR", "/topology.xml")) {
		spank_unsetenv(sp, "HWLOC_XMLFILE");
		spank_unsetenv(sp, "HWLOC_THISSYSTEM");
	}
	spank_unsetenv(sp, "TOPIARY_STEP_DIR");
	if (step.id != SLURM_BATCH_SCRIPT)
		return;
	if (same(sp, "OMPI_MCA_rmaps_rank_file_path", "TOPIARY_RANKFILE", ""))
		spank_unsetenv(sp, "OMPI_MCA_rmaps_rank_file_path");
	spank_unsetenv(sp, "TOPIARY_RANKFILE");
}

static int fill(const char *cores, bool *here, struct err *e)
{
	struct buf xml = {0};
	int rc;

	if (clip_export(step.settings.topology_file, cores, &xml, here, e))
		return -1;
	rc = run_dir_write(step.dir, "topology.xml", xml.data, xml.len, e);
	buf_free(&xml);
	if (!rc && *options.matrix && step.id == SLURM_BATCH_SCRIPT)
		rc = run_dir_give(step.dir, STEP_USER_DIR, step.uid, step.gid, e);
	return rc ? err_within(e, "%s", step.path) : 0;
}

static int make_folder(struct err *e)
{
	if ((step.root = run_dir_open(step.settings.run_dir, e)) < 0)
		return -1;
	run_dir_sweep(step.root);
	if ((step.dir = run_dir_make(step.root, step.name, e)) < 0)
		return err_within(e, "%s", step.settings.run_dir);
	step.owner = getpid();
	snprintf(step.path, sizeof(step.path), "%s/%s", step.settings.run_dir, step.name);
	return 0;
}

static bool user_chose_topology(spank_t sp)
{
	static const char *const names[] = { "HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_CPUID_PATH" };
	char value[8];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (spank_getenv(sp, names[i], value, sizeof(value)) != ESPANK_ENV_NOEXIST)
			return true;
	return false;
}

static void tell_tasks(spank_t sp, bool here)
{
	char file[PATH_MAX + 16];

	spank_setenv(sp, "TOPIARY_STEP_DIR", step.path, 1);
	if (user_chose_topology(sp))
		return;
	snprintf(file, sizeof(file), "%s/topology.xml", step.path);
	spank_setenv(sp, "HWLOC_XMLFILE", file, 1);
	spank_setenv(sp, "HWLOC_THISSYSTEM", here ? "1" : "0", 0);
}

static int prepare(spank_t sp, int argc, char **argv, struct err *e)
{
	char *cores = NULL;
	bool here;

	if (configure(argc, argv, e))
		return -1;
	if (spank_get_item(sp, S_STEP_ALLOC_CORES, &cores) || !cores || !*cores)
		return err_set(e, "Slurm names no cores");
	if (make_folder(e) || fill(cores, &here, e))
		return -1;
	tell_tasks(sp, here);
	return 0;
}

static void clean_up(void)
{
	if (step.dir >= 0 && run_dir_remove(step.root, step.name))
		slurm_error("topiary: %s: not removed whole; a later step will", step.path);
	if (step.dir >= 0)
		close(step.dir);
	if (step.root >= 0)
		close(step.root);
	step.dir = step.root = -1;
}

int step_open(spank_t sp, int argc, char **argv)
{
	struct err e;

	if (identify(sp, &e)) {
		slurm_error("topiary: %s", e.text);
		return 0;
	}
	if (step.id == SLURM_EXTERN_CONT)
		return 0;
	drop_inherited(sp);
	if (prepare(sp, argc, argv, &e)) {
		slurm_error("topiary: step %s runs without its topology: %s", step.name, e.text);
		clean_up();
	}
	return 0;
}

int step_close(spank_t sp, int argc, char **argv)
{
	(void) sp, (void) argc, (void) argv;
	if (step.owner == getpid())
		clean_up();
	return 0;
}
