/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>

#include "bind/place.h"
#include "options.h"
#include "step/step.h"
#include "task.h"

/*
 * --topo-place within the binding that the user asked Slurm for; where that leaves a task fewer CPUs than it needs,
 * Slurm's stays.
 */
static void masks_intersect(struct task *t, hwloc_bitmap_t *places)
{
	for (unsigned i = 0; i < t->nlocal; i++) {
		unsigned has = hwloc_bitmap_weight(t->masks[i]), needs = t->cpus > 1 ? t->cpus : 1;

		hwloc_bitmap_and(places[i], places[i], t->masks[i]);
		if ((unsigned) hwloc_bitmap_weight(places[i]) >= (needs < has ? needs : has))
			hwloc_bitmap_copy(t->masks[i], places[i]);
	}
}

static void masks_replace(struct task *t, const hwloc_bitmap_t *places)
{
	for (unsigned i = 0; i < t->nlocal; i++)
		hwloc_bitmap_copy(t->masks[i], places[i]);
}

/* Without GPUs memory comes first, which is said where GPUs were asked for by name. */
static int places_choose(struct task *t, hwloc_bitmap_t *places, struct err *e)
{
	struct bind_request r = options.bind;
	int rc = r.place == PLACE_GPU ? task_places_from_gpus(t, places, e) : 0;

	if (rc)
		return rc < 0 ? -1 : 0;
	if (r.place == PLACE_GPU) {
		r.place = PLACE_MEM;
		if (options_set_by_user("topo-place") && !t->local)
			slurm_spank_log("topiary: step %s: --topo-place=gpu: the step has no GPUs on this node; its "
					"tasks are placed as with mem", step.name);
	}
	return place_tasks(t->topology, &r, t->nlocal, t->cpus, t->whole, places, e);
}

static int tasks_place(struct task *t, hwloc_bitmap_t *places, struct err *e)
{
	for (unsigned i = 0; i < t->nlocal; i++)
		if (!(places[i] = hwloc_bitmap_alloc()))
			return err_set(e, "out of memory");
	if (places_choose(t, places, e))
		return -1;
	if (!step.user_binds)
		masks_replace(t, places);
	else if (task_masks_from_slurm(t, e) < 0)
		return -1;
	else
		masks_intersect(t, places);
	t->rebind = true;
	return 1;
}

/*
 * A binding that the user asked Slurm for takes precedence over the site's default and over --topo-tasks; that
 * --hint=nomultithread is one, too, is not obvious.
 */
static bool binding_wins(const struct task *t)
{
	if (!step.user_binds || options_set_by_user("topo-place"))
		return false;
	if (options_set_by_user("topo-tasks") && !t->local)
		slurm_spank_log("topiary: step %s: --topo-tasks: tasks keep the CPUs and GPUs of Slurm's own binding "
				"(--cpu-bind, --hint, --threads-per-core or DefCpuBind); add --topo-place=gpu "
				"to place them within it", step.name);
	return true;
}

int task_masks_from_option(struct task *t, struct err *e)
{
	hwloc_bitmap_t *places;
	int rc;

	if (!options.bind.place || binding_wins(t))
		return 0;
	if (!(places = calloc(t->nlocal, sizeof(*places))))
		return err_set(e, "out of memory");
	rc = tasks_place(t, places, e);
	for (unsigned i = 0; i < t->nlocal; i++)
		hwloc_bitmap_free(places[i]);
	free(places);
	return rc < 0 ? err_within(e, options_set_by_user("topo-place") || !options.bind.tasks ? "--topo-place" :
				   "--topo-tasks") : rc;
}
