/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "step.h"

#include <slurm/slurm.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mapped.h"
#include "options.h"
#include "rank_file.h"
#include "run_dir.h"
#include "told.h"
#include "topo/image.h"
#include "topology.h"

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
	char one[1];

	if (spank_get_item(sp, S_JOB_ID, &step.job) || spank_get_item(sp, S_JOB_STEPID, &step.id) ||
	    spank_get_item(sp, S_JOB_UID, &step.user.uid) || spank_get_item(sp, S_JOB_GID, &step.user.gid))
		return err_set(e, "Slurm does not say which step this is");
	name_step();
	/* srun puts it there only for what the user said; slurmstepd puts its own there only for the tasks. */
	step.user_binds = spank_getenv(sp, "SLURM_CPU_BIND_TYPE", one, sizeof(one)) != ESPANK_ENV_NOEXIST;
	return 0;
}

int step_configure(int argc, char **argv, struct err *e)
{
	if (step.configured)
		return 0;
	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "config=", 7))
			return err_set(e, "plugstack.conf: '%s' is no argument of ours (config=FILE is)", argv[i]);
		step.config = argv[i] + 7;
	}
	if (settings_load(step.config, &step.settings, e))
		return -1;
	step.configured = true;
	return 0;
}

static void drop_inherited(spank_t sp)
{
	step.mapped = mapped_take(sp);
	told_drop(sp);
	spank_unsetenv(sp, "TOPIARY_STEP_DIR");
	if (step.id != SLURM_BATCH_SCRIPT)
		return;
	rank_file_drop(sp);
}

/* A network device may be near no core of the step. */
static int add_node(struct err *e)
{
	int dir = run_dir_sub(step.dir, STEP_NODE_DIR, e), rc;
	bool here;

	if (dir < 0)
		return -1;
	rc = topology_put(step.settings.topology_file, NULL, &step.user, step.root, dir, &here, e);
	close(dir);
	return rc;
}

int step_node_adopt(hwloc_topology_t *out, struct err *e)
{
	char folder[sizeof(step.path) + sizeof("/" STEP_NODE_DIR)];

	if (!step.node)
		return err_set(e, "the topology of the whole node is not at hand");
	snprintf(folder, sizeof(folder), "%s/" STEP_NODE_DIR, step.path);
	return image_adopt_alone(folder, out, e);
}

static void add_what_is_asked(void)
{
	struct err e;

	if (!options.bind.nic && !options.bind.report)
		return;
	step.node = !add_node(&e);
	if (!step.node)
		slurm_error("topiary: step %s has not the topology of its node: %s", step.name, e.text);
}

static int fill(const char *cores, bool *here, struct err *e)
{
	if (topology_put(step.settings.topology_file, cores, &step.user, step.root, step.dir, here, e))
		return -1;
	add_what_is_asked();
	if (*options.matrix && step.id == SLURM_BATCH_SCRIPT &&
	    run_dir_give(step.dir, STEP_USER_DIR, step.user.uid, step.user.gid, e))
		return err_within(e, "%s", step.path);
	return 0;
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

static bool has(void *env, const char *name)
{
	return told_has(env, name);
}

static bool user_chose_topology(spank_t sp)
{
	return told_has(sp, "HWLOC_XMLFILE") || image_overruled(has, sp);
}

/*
 * Programs that use hwloc find the step's topology without knowing of us, by hwloc's own quick reader, and without the plugins that
 * would discover what the topology tells already.
 */
static void tell_tasks(spank_t sp, bool here)
{
	static const struct {
		const char *name, *value;	/* value: of a path, what follows the step's folder */
		bool only_here;
	} told[] = {
		{ "HWLOC_XMLFILE", "/" IMAGE_XML, false },
		{ "HWLOC_THISSYSTEM", "1", true },
		{ "HWLOC_LIBXML_IMPORT", "0", false },
		{ "HWLOC_PLUGINS_PATH", "", false },
	};
	char value[PATH_MAX + 32];

	spank_setenv(sp, "TOPIARY_STEP_DIR", step.path, 1);
	if (user_chose_topology(sp))
		return;
	for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++) {
		snprintf(value, sizeof(value), "%s%s", *told[i].value == '/' ? step.path : "", told[i].value);
		if (here || !told[i].only_here)
			told_set(sp, told[i].name, value);
	}
}

static int prepare(spank_t sp, int argc, char **argv, struct err *e)
{
	char *cores = NULL;

	if (step_configure(argc, argv, e))
		return -1;
	if (spank_get_item(sp, S_STEP_ALLOC_CORES, &cores) || !cores || !*cores)
		return err_set(e, "Slurm names no cores");
	if (make_folder(e) || fill(cores, &step.here, e))
		return -1;
	tell_tasks(sp, step.here);
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
