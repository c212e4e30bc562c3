/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "task.h"

#include <slurm/slurm.h>

#include "base/printable.h"
#include "bind/memory.h"
#include "bind/nic.h"
#include "hwview/image.h"
#include "hwview/machine.h"
#include "hwview/restrict.h"
#include "options.h"
#include "step/step.h"
#include "step/topology.h"

enum { MAX_TASKS = 65536, MAX_TUNABLES = 4096 };

static int task_identify(struct task *t, struct err *e)
{
	char rank[16], *end;
	uint32_t cpus;
	int local = -1;

	if (spank_get_item(t->sp, S_TASK_ID, &local) || spank_get_item(t->sp, S_TASK_GLOBAL_ID, &t->global) ||
	    spank_get_item(t->sp, S_JOB_LOCAL_TASK_COUNT, &t->nlocal))
		return err_set(e, "Slurm does not provide the ids of this task");
	t->local = local;
	/* In a step of several components Slurm's item counts from 0 in each; the task's own variable has its rank. */
	if (spank_getenv(t->sp, "SLURM_PROCID", rank, sizeof(rank)) == ESPANK_SUCCESS && *rank) {
		unsigned long id = strtoul(rank, &end, 10);

		t->global = *end ? t->global : id;
	}
	if (t->local >= t->nlocal || t->nlocal > MAX_TASKS)
		return err_set(e, "Slurm reports local task %d of %u", local, t->nlocal);
	/* Slurm reports one CPU for a task without -c, too. */
	if (!spank_get_item(t->sp, S_STEP_CPUS_PER_TASK, &cpus) && cpus < NO_VAL16 &&
	    (cpus != 1 || task_env_has(t->sp, "SLURM_CPUS_PER_TASK")))
		t->cpus = cpus;
	return 0;
}

/*
 * Since 22.05 srun does not read the job's -c from SLURM_CPUS_PER_TASK, which is in the tasks' environment. For users
 * of our options alone.
 */
static void warn_fewer_cpus(const struct task *t)
{
	struct buf asked = {0};
	char cpus[16] = "";
	unsigned long job;

	if (t->global || t->cpus > 1 || step.follows_map ||
	    spank_getenv(t->sp, "SLURM_CPUS_PER_TASK", cpus, sizeof(cpus)))
		return;
	job = strtoul(cpus, NULL, 10);
	options_list_per_task(&asked);
	if (asked.len && job > 1 && job < NO_VAL16)
		slurm_spank_log("topiary: step %s: each task has 1 CPU, and the job was submitted with -c%lu, which "
				"srun does not read (srun(1), --cpus-per-task)", step.name, job);
	buf_free(&asked);
}

int task_alloc_masks(struct task *t, struct err *e)
{
	if (!(t->masks = calloc(t->nlocal, sizeof(*t->masks))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < t->nlocal; i++)
		if (!(t->masks[i] = hwloc_bitmap_alloc()))
			return err_set(e, "out of memory");
	return 0;
}

void task_free(struct task *t)
{
	for (unsigned i = 0; t->masks && i < t->nlocal; i++)
		hwloc_bitmap_free(t->masks[i]);
	for (unsigned i = 0; t->near && i < t->nlocal; i++)
		hwloc_bitmap_free(t->near[i]);
	free(t->near);
	free(t->gpus);
	free(t->which_gpus);
	free(t->masks);
	if (t->topology)
		hwloc_topology_destroy(t->topology);
}

static void warn(const struct task *t, struct err *e)
{
	slurm_spank_log("topiary: step %s, task %u: %s", step.name, t->global, printable(e->text));
}

/* What is the same for all tasks of a node is logged by the first. */
static void warn_once(const struct task *t, struct err *e)
{
	if (!t->local)
		slurm_spank_log("topiary: step %s: %s", step.name, printable(e->text));
}

/* A cpuset may reduce the mask or reject it: the later actions use the CPUs that the task has in fact. */
static int bind_cpus(struct task *t, struct err *e)
{
	hwloc_bitmap_t own = t->masks[t->local];

	if (!t->rebind)
		return 0;
	t->rebind = !machine_bind(own, e);
	return machine_bound(0, own, t->rebind ? e : NULL) || !t->rebind ? -1 : 0;
}

static int bind_memory(struct task *t, struct err *e)
{
	hwloc_bitmap_t nodes;
	bool said = false;
	char now[256];

	if (!options.bind.memory)
		return 0;
	if (memory_policy_text(now, sizeof(now), e))
		return -1;
	if (strcmp(now, "default"))
		return err_set(e, "--topo-membind is not applied: the task already has the memory policy %s", now);
	if (!memory_bind(t->topology, &options.bind, t->masks[t->local], e))
		return 0;
	/* If the memory of the request is local to no PU of an earlier task, that one has said so for all. */
	nodes = hwloc_bitmap_alloc();
	for (unsigned i = 0; nodes && i < t->local && !said; i++)
		said = memory_nodes_choose(t->topology, options.bind.memory, t->masks[i], nodes, NULL);
	hwloc_bitmap_free(nodes);
	return said ? 0 : -1;
}

/*
 * --topo-membind=...,job: what has a policy already, the user's or the site's for tasks, keeps it. That of the whole
 * job is right for what a task starts, too.
 */
static int follow_job(struct task *t, struct err *e)
{
	hwloc_topology_t node;
	hwloc_bitmap_t pus;
	char *cores = NULL, now[256];
	int rc = -1;

	if (!options.bind.mems)
		return 0;
	if (memory_policy_text(now, sizeof(now), e))
		return -1;
	if (strcmp(now, "default"))
		return 0;
	if (spank_get_item(t->sp, S_JOB_ALLOC_CORES, &cores) || !cores || !*cores)
		return err_set(e, "--topo-membind=...,job is not applied: Slurm does not provide the job's cores");
	if (step_adopt_node(&node, e))
		return err_within(e, "--topo-membind=...,job is not applied");
	if ((pus = restrict_cpus(node, cores, e)))
		rc = memory_follow(node, options.bind.mems, pus, e);
	hwloc_bitmap_free(pus);
	hwloc_topology_destroy(node);
	return rc ? err_within(e, "--topo-membind=...,job is not applied") : 0;
}

static int set_threads(struct task *t, struct err *e)
{
	struct omp_task o = { t->masks[t->local], t->cpus, 0 };

	if (!options.bind.omp)
		return 0;
	for (unsigned i = 0; i < t->nlocal; i++)
		o.sharers += hwloc_bitmap_intersects(t->masks[i], o.pus) ? 1 : 0;
	return omp_export(t->topology, options.bind.omp, &o, &t->vars, e);
}

static int set_huge(struct task *t, struct err *e)
{
	char now[MAX_TUNABLES] = "", new[MAX_TUNABLES];

	if (!options.bind.huge)
		return 0;
	if (task_env_has(t->sp, HUGE_VARIABLE) && spank_getenv(t->sp, HUGE_VARIABLE, now, sizeof(now)))
		return err_set(e, "--topo-hugepages is not applied: " HUGE_VARIABLE " is longer than %zu bytes",
		       sizeof(now) - 1);
	if (huge_tunables(options.bind.huge, now, new, sizeof(new), e))
		return -1;
	/*
	 * Recorded only where the variable is new: a value that contains the user's own must not be removed by a
	 * nested step.
	 */
	task_env_set(t->sp, HUGE_VARIABLE, new);
	spank_setenv(t->sp, HUGE_VARIABLE, new, 1);
	return 0;
}

static int export_nics(struct task *t, hwloc_topology_t node, struct buf *names, struct err *e)
{
	struct nics devices;
	struct nic_request r = { .topology = node, .nics = &devices, .request = &options.bind,
		.masks = t->near ? t->near : t->masks,
		.local = t->local,
		.nlocal = t->nlocal, .bound = t->rebind };
	hwloc_bitmap_t now;
	unsigned *beside;
	int rc;

	if (nics_find(node, &devices, e))
		return -1;
	now = hwloc_bitmap_alloc();
	r.beside = beside = t->gpus ? nics_beside_gpus(node, &devices, t->gpus, t->which_gpus, t->nlocal) : NULL;
	rc = nics_export(&r, &t->vars, names, e);
	/* As the report has its CPUs: of a task that nothing binds the mask is no more than the step's. */
	if (names->len && now && !machine_bound(0, now, NULL))
		nics_describe(node, &devices, names->data, now, t->nic, sizeof(t->nic));
	hwloc_bitmap_free(now);
	free(beside);
	nics_free(&devices);
	return rc;
}

static int set_nics(struct task *t, struct err *e)
{
	struct buf names = {0};
	hwloc_topology_t node;
	int rc;

	if (!options.bind.nic || !step.has_node || step.settings.nic_planes > 1)
		return 0;
	if (step_adopt_node(&node, e))
		return err_within(e, "--topo-nic is not applied");
	rc = export_nics(t, node, &names, e);
	buf_free(&names);
	hwloc_topology_destroy(node);
	return rc;
}

/* In this order; one that fails does not prevent the others. */
static const struct {
	int (*run)(struct task *t, struct err *e);
	bool once;		/* it fails for the same reason on all of the node's tasks: log it once */
} actions[] = {
	{ bind_cpus, false }, { bind_memory, false }, { follow_job, true }, { set_threads, false }, { set_huge, true },
	{ set_nics, true },
};

/* Batch scripts, the steps that Slurm makes for itself and launchers are left alone but for this. */
static bool has_tasks(void)
{
	return step.id < SLURM_MAX_NORMAL_STEP_ID && !step.launcher;
}

static bool has_actions(void)
{
	const struct bind_request *b = &options.bind;

	return step.dir >= 0 && (b->mems || (has_tasks() && (b->place || b->memory || b->omp || b->huge || b->nic ||
							     b->report || step.follows_map)));
}

static void run(int (*action)(struct task *t, struct err *e), bool once, struct task *t)
{
	struct err e;

	if (action(t, &e))
		(once ? warn_once : warn)(t, &e);
}

static void run_actions(struct task *t)
{
	static int (*const sources[])(struct task *t, struct err *e) = {
		task_masks_from_map, task_masks_from_option, task_masks_from_slurm,
	};
	uint16_t cpus;
	struct err e;
	int rc = 0;

	if (!has_tasks()) {
		run(follow_job, true, t);
		return;
	}
	if (image_adopt_alone(step.path, &t->topology, &e) || task_alloc_masks(t, &e)) {
		warn_once(t, &e);
		return;
	}
	/*
	 * slurmd counts the step's CPUs here as its cores times those that slurm.conf gives a core
	 * (_check_job_credential() in slurmd/req.c): with ThreadsPerCore=1 one, however many PUs it has.
	 */
	t->whole = !spank_get_item(t->sp, S_JOB_NCPUS, &cpus) &&
		cpus == hwloc_get_nbobjs_by_type(t->topology, machine_core_type(t->topology));
	warn_fewer_cpus(t);
	for (size_t i = 0; rc <= 0 && i < sizeof(sources) / sizeof(*sources); i++)
		if ((rc = sources[i](t, &e)) < 0)
			warn_once(t, &e);
	for (size_t i = 0; rc > 0 && i < sizeof(actions) / sizeof(*actions); i++)
		run(actions[i].run, actions[i].once, t);
}

/* slurmd's log says why; the user's own line is for what was requested. */
static void warn_without_topology(spank_t sp)
{
	struct buf list = {0};
	uint32_t local = 1;

	if (spank_get_item(sp, S_TASK_ID, &local) || local)
		return;
	options_list_per_task(&list);
	if (list.len && !list.failed)
		slurm_spank_log("topiary: step %s: tasks run without %s: this node has no topology for them; its "
				"administrator finds the reason in slurmd's log", step.name, list.data);
	buf_free(&list);
}

int task_prepare(spank_t sp, int, char **)
{
	struct task t = { .sp = sp, .vars = { task_env_has, task_env_set, sp } };
	struct err e;

	if (step.dir < 0 && has_tasks())
		warn_without_topology(sp);
	if (!has_actions() && !task_lines_are_open())
		return 0;
	if (task_identify(&t, &e)) {
		warn(&t, &e);
		return 0;
	}
	if (step.is_local && has_actions())
		run_actions(&t);
	else if (!step.is_local && !t.local)
		slurm_spank_log("topiary: step %s: tasks run without --topo-*: TopologyFile is of another machine",
				step.name);
	if (has_tasks() && report_task(&t, &e))
		warn(&t, &e);
	task_free(&t);
	return 0;
}
