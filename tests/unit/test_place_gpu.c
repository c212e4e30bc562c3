/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <dlfcn.h>
#include <limits.h>

#include "base/buf.h"
#include "bind/gpu.h"
#include "hwview/machine.h"
#include "table.h"
#include "topology.h"

/*
 * Machines with GPUs: packages, NUMA nodes and cores, and the NUMA node (hwloc's logical index) that each GPU is at.
 * tests/data/gpu.md has the source of each.
 */
static const struct machine {
	const char *name, *synthetic;
	int at[16];		/* -1 after the last */
} machines[] = {
	{ "DGX A100", "Package:2 Group:4 [numa] L3:4 Core:4 PU:2", { 3, 3, 1, 1, 7, 7, 5, 5, -1 } },
	{ "DGX H100", "Package:2 [numa] L3:1 Core:56 PU:2", { 0, 0, 0, 0, 1, 1, 1, 1, -1 } },
	{ "DGX B200", "Package:2 [numa] L3:1 Core:56 PU:2", { 0, 0, 0, 0, 1, 1, 1, 1, -1 } },
	{ "LUMI-G", "Package:1 Group:4 [numa] L3:2 Core:8 PU:2", { 3, 3, 1, 1, 0, 0, 2, 2, -1 } },
	{ "Quad GH200", "Package:4 [numa] L3:1 Core:72 PU:1", { 0, 1, 2, 3, -1 } },
	{ "Quad MI300A", "Package:4 [numa] L3:3 Core:8 PU:2", { 0, 1, 2, 3, -1 } },
	{ "Aurora", "Package:2 [numa] L3:1 Core:52 PU:2", { 0, 0, 0, 1, 1, 1, -1 } },
	{ "Leonardo Booster", "Package:1 L3:1 Group:2 [numa] Core:16 PU:1", { 0, 0, 0, 0, -1 } },
	{ "JUWELS Booster", "Package:2 Group:4 [numa] L3:2 Core:3 PU:2", { 3, 1, 7, 5, -1 } },
	{ "Perlmutter", "Package:1 Group:4 [numa] L3:2 Core:8 PU:2", { 3, 2, 1, 0, -1 } },
	{ "Polaris", "Package:1 Group:4 [numa] L3:2 Core:4 PU:2", { 3, 2, 1, 0, -1 } },
	{ "Summit", "Package:2 [numa] Core:21 PU:4", { 0, 0, 0, 1, 1, 1, -1 } },
	{ "MareNostrum 5 ACC", "Package:2 [numa] L3:1 Core:40 PU:2", { 0, 0, 1, 1, -1 } },
	{ "PCIe switches, 8 GPUs", "Package:2 [numa] L3:4 Core:8 PU:2", { 0, 0, 0, 0, 1, 1, 1, 1, -1 } },
	{ "workstation, 1 GPU", "Package:2 [numa] L3:1 Core:8 PU:2", { 1, -1 } },
	{ "all GPUs at one NUMA node", "Package:2 Group:2 [numa] L3:1 Core:4 PU:2", { 2, 2, 2, -1 } },
	{ "GPUs in turn", "Package:2 [numa] L3:1 Core:6 PU:1", { 0, 1, 0, 1, 0, 1, -1 } },
};

enum { MAX = 16 };

/* A step on one of them: some of its cores, some of its GPUs. */
struct trial_node {
	hwloc_topology_t node, step;
	unsigned ngpus, ndomains;
	hwloc_bitmap_t near[MAX];
	hwloc_bitmap_t domain[MAX];	/* the step's PUs of each NUMA node */
	unsigned cores[MAX];
	unsigned cost[MAX][MAX];	/* [domain][gpu]: 0 local, 3 in the package, 4 elsewhere */
};

static unsigned package_of(hwloc_topology_t t, hwloc_obj_t numa)
{
	return hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_PACKAGE, numa)->logical_index;
}

static void domains_find(struct trial_node *n, const struct machine *m)
{
	n->ndomains = hwloc_get_nbobjs_by_type(n->node, HWLOC_OBJ_NUMANODE);
	for (unsigned d = 0; d < n->ndomains; d++) {
		hwloc_obj_t numa = hwloc_get_obj_by_type(n->node, HWLOC_OBJ_NUMANODE, d), core = NULL;

		n->domain[d] = hwloc_bitmap_alloc();
		hwloc_bitmap_and(n->domain[d], numa->cpuset, hwloc_topology_get_topology_cpuset(n->step));
		n->cores[d] = 0;
		while ((core = hwloc_get_next_obj_by_type(n->step, HWLOC_OBJ_CORE, core)))
			n->cores[d] += hwloc_bitmap_isincluded(core->cpuset, numa->cpuset);
		for (unsigned i = 0; i < n->ngpus; i++) {
			hwloc_obj_t at = hwloc_get_obj_by_type(n->node, HWLOC_OBJ_NUMANODE, m->at[i]);

			n->cost[d][i] = at == numa ? 0 :
				package_of(n->node, at) == package_of(n->node, numa) ? 3 : 4;
		}
	}
}

/* parts: so many cores of a hundred are the step's; 100: all. */
static void node_make(struct trial_node *n, const struct machine *m, unsigned ngpus, unsigned parts)
{
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t keep = hwloc_bitmap_alloc();
	hwloc_obj_t core = NULL;

	*n = (struct trial_node){ .node = synthetic_load(m->synthetic), .step = synthetic_load(m->synthetic),
				  .ngpus = ngpus };
	while ((core = hwloc_get_next_obj_by_type(n->node, HWLOC_OBJ_CORE, core)))
		if (!core->logical_index || (unsigned) (lrand48() % 100) < parts)
			hwloc_bitmap_or(keep, keep, core->cpuset);
	assert_int_equal(hwloc_topology_restrict(n->step, keep, 0), 0);
	for (unsigned i = 0; i < ngpus; i++)
		n->near[i] = hwloc_bitmap_dup(hwloc_get_obj_by_type(n->node, HWLOC_OBJ_NUMANODE, m->at[i])->cpuset);
	domains_find(n, m);
}

static void node_free(struct trial_node *n)
{
	for (unsigned i = 0; i < n->ngpus; i++)
		hwloc_bitmap_free(n->near[i]);
	for (unsigned i = 0; i < n->ndomains; i++)
		hwloc_bitmap_free(n->domain[i]);
	hwloc_topology_destroy(n->node);
	hwloc_topology_destroy(n->step);
}

/* --- every balanced choice --- */

struct search {
	const struct trial_node *n;
	unsigned ntasks, room[MAX];	/* tasks that fit into each NUMA node */
	unsigned few, most, left_most;	/* GPUs a task, or tasks a GPU; how many may have the greater number */
	unsigned used[MAX];		/* tasks of each GPU */
	unsigned best;
};

static void try_tasks(struct search *s, unsigned task, unsigned taken, unsigned cost);

/* A task with these GPUs, in each NUMA node. */
static void try_domains(struct search *s, unsigned task, unsigned gpus, unsigned taken, unsigned cost)
{
	for (unsigned d = 0; d < s->n->ndomains; d++) {
		unsigned sum = cost;

		for (unsigned i = 0; i < s->n->ngpus; i++)
			sum += gpus >> i & 1 ? s->n->cost[d][i] : 0;
		if (!s->room[d] || sum >= s->best)
			continue;
		s->room[d]--;
		try_tasks(s, task + 1, taken, sum);
		s->room[d]++;
	}
}

/* Every set of `size` of the free GPUs with the first free one, which some task must have. */
static void try_sets(struct search *s, unsigned task, unsigned gpus, unsigned from, unsigned size, unsigned taken,
		     unsigned cost)
{
	if (!size) {
		try_domains(s, task, gpus, taken | gpus, cost);
		return;
	}
	for (unsigned i = from; i < s->n->ngpus; i++) {
		if (taken >> i & 1)
			continue;
		try_sets(s, task, gpus | 1u << i, i + 1, size - 1, taken, cost);
		if (!gpus)
			return;
	}
}

static void try_tasks(struct search *s, unsigned task, unsigned taken, unsigned cost)
{
	if (task == s->ntasks) {
		/* None is left. */
		if (s->ntasks >= s->n->ngpus || taken + 1 == 1u << s->n->ngpus)
			s->best = cost;
		return;
	}
	if (s->ntasks < s->n->ngpus) {
		try_sets(s, task, 0, 0, s->few, taken, cost);
		if (s->left_most && s->most > s->few) {
			s->left_most--;
			try_sets(s, task, 0, 0, s->most, taken, cost);
			s->left_most++;
		}
		return;
	}
	/* Tasks are alike: those of a GPU come one after another. */
	for (unsigned i = 0; i < s->n->ngpus; i++) {
		bool dear = s->used[i] >= s->few;

		if (i && s->used[i - 1] < s->few && !s->used[i])
			break;
		if (s->used[i] >= s->most || (dear && !s->left_most) || (i + 1 < s->n->ngpus && s->used[i + 1]))
			continue;
		s->used[i]++;
		s->left_most -= dear;
		try_domains(s, task, 1u << i, 0, cost);
		s->left_most += dear;
		s->used[i]--;
	}
}

/* UINT_MAX: they do not fit into NUMA nodes. */
static unsigned least_sum(const struct trial_node *n, unsigned ntasks, unsigned cpus)
{
	unsigned more = ntasks < n->ngpus ? n->ngpus : ntasks, less = ntasks < n->ngpus ? ntasks : n->ngpus;
	struct search s = { .n = n, .ntasks = ntasks, .few = more / less, .most = (more + less - 1) / less,
			    .left_most = more % less, .best = UINT_MAX };

	for (unsigned d = 0; d < n->ndomains; d++)
		s.room[d] = n->cores[d] / cpus;
	try_tasks(&s, 0, 0, 0);
	return s.best;
}

/* --- what was chosen --- */

/* A task on several NUMA nodes is as far as the farthest of them. */
static unsigned distance_of(const struct trial_node *n, hwloc_const_bitmap_t mask, unsigned gpu)
{
	unsigned most = 0;

	for (unsigned d = 0; d < n->ndomains; d++)
		if (hwloc_bitmap_intersects(mask, n->domain[d]) && n->cost[d][gpu] > most)
			most = n->cost[d][gpu];
	return most;
}

static bool is_within(const struct trial_node *n, hwloc_const_bitmap_t mask)
{
	for (unsigned d = 0; d < n->ndomains; d++)
		if (hwloc_bitmap_isincluded(mask, n->domain[d]))
			return true;
	return false;
}

/* Of each task the distances of its GPUs; each GPU as often as it must be; whole cores that no two tasks share. */
static unsigned sum_of(const struct trial_node *n, unsigned ntasks, unsigned cpus, const hwloc_bitmap_t *masks,
		       const uint64_t *gpus)
{
	unsigned sum = 0, used[MAX] = {0}, few = UINT_MAX, most = 0;

	for (unsigned t = 0; t < ntasks; t++) {
		unsigned count = __builtin_popcountll(gpus[t]);

		assert_true(hwloc_get_nbobjs_inside_cpuset_by_type(n->step, masks[t], HWLOC_OBJ_CORE) >= (int) cpus);
		for (unsigned u = 0; u < t; u++)
			assert_false(hwloc_bitmap_intersects(masks[t], masks[u]));
		few = count < few ? count : few;
		most = count > most ? count : most;
		for (unsigned i = 0; i < n->ngpus; i++)
			if (gpus[t] >> i & 1) {
				sum += distance_of(n, masks[t], i);
				used[i]++;
			}
		if (t)
			assert_true(__builtin_ctzll(gpus[t]) >= __builtin_ctzll(gpus[t - 1]));
	}
	assert_true(few >= 1 && most - few <= 1);
	for (unsigned i = 0; i < n->ngpus; i++)
		for (unsigned k = 0; k < n->ngpus; k++)
			assert_true(used[i] >= 1 && used[i] <= used[k] + 1);
	return sum;
}

static unsigned long compared;

static void compare(const struct machine *m, const struct trial_node *n, unsigned ntasks, unsigned cpus)
{
	struct gpu_places how = { n->step, n->node, n->near, n->ngpus, ntasks, cpus, NULL, false };
	unsigned least = least_sum(n, ntasks, cpus ? cpus : 1), sum, within = 0;
	hwloc_bitmap_t masks[MAX];
	uint64_t gpus[MAX];

	/* A task alone has cores near each of its GPUs, not the nearest to all: a_task_alone_is_near_all_its_gpus. */
	if (least == UINT_MAX || ntasks == 1)
		return;
	for (unsigned t = 0; t < ntasks; t++)
		masks[t] = hwloc_bitmap_alloc();
	if (gpu_place(&how, masks, gpus, &err))
		fail_msg("%s: %s", m->name, err.text);
	sum = sum_of(n, ntasks, cpus ? cpus : 1, masks, gpus);
	for (unsigned t = 0; t < ntasks; t++)
		within += is_within(n, masks[t]);
	/* Cores that are left over in two NUMA nodes may be nearer than a place within one that is free. */
	if (sum > least || (within == ntasks && sum < least))
		fail_msg("%s: %u tasks with %u CPUs, %u GPUs: %u, but %u is possible", m->name, ntasks, cpus, n->ngpus,
			 sum, least);
	for (unsigned t = 0; t < ntasks; t++)
		hwloc_bitmap_free(masks[t]);
	compared += within == ntasks;
}

static unsigned gpus_of(const struct machine *m)
{
	unsigned n = 0;

	while (m->at[n] >= 0)
		n++;
	return n;
}

static void compare_steps(unsigned parts)
{
	for (size_t i = 0; i < ROWS(machines); i++)
		for (unsigned ngpus = 1; ngpus <= gpus_of(&machines[i]); ngpus++)
			for (unsigned ntasks = 1; ntasks <= 8; ntasks *= 2) {
				struct trial_node n;
				unsigned all = 0;

				node_make(&n, &machines[i], ngpus, parts);
				for (unsigned d = 0; d < n.ndomains; d++)
					all += n.cores[d];
				compare(&machines[i], &n, ntasks, 0);
				compare(&machines[i], &n, ntasks, 1);
				if (all >= 2 * ntasks)
					compare(&machines[i], &n, ntasks, all / ntasks / 2);
				if (all >= ntasks)
					compare(&machines[i], &n, ntasks, all / ntasks);
				node_free(&n);
			}
}

TEST(no_choice_is_nearer_on_whole_nodes)
{
	compared = 0;
	compare_steps(100);
	assert_true(compared > 500);
}

TEST(no_choice_is_nearer_in_parts_of_nodes)
{
	srand48(19);
	compared = 0;
	for (unsigned parts = 15; parts < 100; parts += 20)
		compare_steps(parts);
	assert_true(compared > 1000);
}

/* --- beside others' choices --- */

/*
 * For 1, 2, 4, 8 tasks with 1, 2, 4 GPUs each on whole nodes. As Topiary's above, without a number of CPUs. A task is
 * as near as can be if the whole choice is, or if none with that many GPUs could be nearer.
 */
struct choice {
	const struct trial_node *n;
	unsigned ntasks, gpus_each;
	hwloc_bitmap_t masks[MAX];
	uint64_t gpus[MAX];
};

static bool choose_topiary(struct choice *c)
{
	struct gpu_places how = { c->n->step, c->n->node, c->n->near, c->n->ngpus, c->ntasks, 0, NULL, false };

	return !gpu_place(&how, c->masks, c->gpus, &err);
}

static hwloc_obj_t free_core(struct choice *c, unsigned at, hwloc_const_bitmap_t taken)
{
	hwloc_obj_t package = hwloc_get_obj_by_type(c->n->node, HWLOC_OBJ_PACKAGE, at), core = NULL;

	while ((core = hwloc_get_next_obj_inside_cpuset_by_type(c->n->node, package->cpuset, HWLOC_OBJ_CORE, core)))
		if (!hwloc_bitmap_intersects(core->cpuset, taken))
			return core;
	return NULL;
}

/*
 * Slurm, "srun --gpus-per-task=G -c C" with all cores shared out: GPUs in the order of the tasks
 * (--gpu-bind=per_task), cores from the packages in turn (the default distribution, block:cyclic) or in order.
 */
static bool choose_slurm(struct choice *c, bool cyclic)
{
	unsigned ncores = hwloc_get_nbobjs_by_type(c->n->node, HWLOC_OBJ_CORE) / c->ntasks;
	unsigned npackages = hwloc_get_nbobjs_by_type(c->n->node, HWLOC_OBJ_PACKAGE);
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t taken = hwloc_bitmap_alloc();

	for (unsigned t = 0; t < c->ntasks; t++) {
		unsigned at = cyclic ? t % npackages : 0, tried = 0;

		for (unsigned k = 0; k < ncores && tried < npackages;) {
			hwloc_obj_t core = free_core(c, at, taken);

			if (core) {
				hwloc_bitmap_or(taken, taken, core->cpuset);
				hwloc_bitmap_or(c->masks[t], c->masks[t], core->cpuset);
				k++;
				continue;
			}
			at = (at + 1) % npackages;
			tried++;
		}
		c->gpus[t] = ((UINT64_C(1) << c->gpus_each) - 1) << t * c->gpus_each;
	}
	return true;
}

static bool choose_cyclic(struct choice *c)
{
	return choose_slurm(c, true);
}

static bool choose_block(struct choice *c)
{
	return choose_slurm(c, false);
}

/* mpibind's library, where MPIBIND names it; its interface is mpibind.h. */
static struct {
	int (*init)(void **), (*finalize)(void *), (*ntasks)(void *, int), (*greedy)(void *, int), (*run)(void *);
	int (*topology)(void *, hwloc_topology_t);
	hwloc_bitmap_t *(*cpus)(void *), *(*gpus)(void *);
} mpibind;

static bool mpibind_open(void)
{
	const struct { const char *name; void *at; } calls[] = {
		{ "mpibind_init", &mpibind.init }, { "mpibind_finalize", &mpibind.finalize },
		{ "mpibind_set_ntasks", &mpibind.ntasks }, { "mpibind_set_greedy", &mpibind.greedy },
		{ "mpibind", &mpibind.run }, { "mpibind_set_topology", &mpibind.topology },
		{ "mpibind_get_cpus", &mpibind.cpus }, { "mpibind_get_gpus", &mpibind.gpus },
	};
	const char *path = getenv("MPIBIND");
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;

	if (path && !library)
		fail_msg("%s", dlerror());
	for (size_t i = 0; library && i < ROWS(calls); i++) {
		void *found = dlsym(library, calls[i].name);

		assert_non_null(found);
		memcpy(calls[i].at, &found, sizeof(found));
	}
	return library;
}

#define INFO(name, value) "<info name=\"" name "\" value=\"" value "\"/>"
#define NVIDIA_GPU "<object type=\"PCIDev\" gp_index=\"%u\" pci_busid=\"0000:%02x:00.0\" " \
	"pci_type=\"0302 [10de:20b0] [10de:144e] a1\" pci_link_speed=\"31.5\">" INFO("PCIVendor", "NVIDIA") \
	"<object type=\"OSDev\" gp_index=\"%u\" name=\"nvml%u\" subtype=\"NVML\" osdev_type=\"1\">" \
	INFO("Backend", "NVML") INFO("GPUVendor", "NVIDIA") INFO("GPUModel", "A100") \
	INFO("NVIDIAUUID", "GPU-%u") "</object></object>\n"

/* The same node with GPUs as the NVIDIA driver has them, in the order of their numbers. */
static hwloc_topology_t with_gpus(const struct trial_node *n)
{
	FREED(buf_free) struct buf xml = {0}, out = {0};
	hwloc_topology_t t;
	const char *from, *to;

	assert_int_equal(machine_export(n->node, &xml, NULL), 0);
	from = xml.data;
	for (unsigned d = 0; d < n->ndomains; d++) {
		to = strstr(from + 1, "<object type=\"NUMANode\"");
		buf_add(&out, from, to - from);
		from = to;
		for (unsigned i = 0; i < n->ngpus; i++)
			if (!n->cost[d][i])
				buf_printf(&out, NVIDIA_GPU, 100000 + i, 16 + i, 200000 + i, i, i);
	}
	buf_puts(&out, from);
	assert_false(hwloc_topology_init(&t) ||
		     hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) ||
		     hwloc_topology_set_xmlbuffer(t, out.data, out.len + 1) || hwloc_topology_load(t));
	return t;
}

/* Its devices are numbered as hwloc walks them. */
static unsigned gpu_of(hwloc_topology_t t, unsigned device)
{
	hwloc_obj_t o = NULL;

	do
		o = hwloc_get_next_osdev(t, o);
	while (o && device--);
	return o ? strtoul(o->name + strlen("nvml"), NULL, 10) : MAX;
}

static bool choose_mpibind(struct choice *c, bool greedy)
{
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = with_gpus(c->n);
	void *handle = NULL;
	bool done = !mpibind.init(&handle) && !mpibind.ntasks(handle, c->ntasks) && !mpibind.greedy(handle, greedy) &&
		    !mpibind.topology(handle, t) && !mpibind.run(handle);

	for (unsigned k = 0; done && k < c->ntasks; k++) {
		unsigned device;

		hwloc_bitmap_copy(c->masks[k], mpibind.cpus(handle)[k]);
		hwloc_bitmap_foreach_begin(device, mpibind.gpus(handle)[k])
			c->gpus[k] |= UINT64_C(1) << gpu_of(t, device);
		hwloc_bitmap_foreach_end();
	}
	mpibind.finalize(handle);
	return done;
}

static bool choose_greedy(struct choice *c)
{
	return choose_mpibind(c, true);
}

static bool choose_modest(struct choice *c)
{
	return choose_mpibind(c, false);
}

static const struct chooser {
	const char *name;
	bool (*choose)(struct choice *c);
	bool mpibind;
} choosers[] = {
	{ "Topiary", choose_topiary, false },
	{ "mpibind", choose_greedy, true },
	{ "mpibind, greedy off", choose_modest, true },
	{ "Slurm, block:cyclic", choose_cyclic, false },
	{ "Slurm, block:block", choose_block, false },
};

enum { CHOOSERS = ROWS(choosers) };

/* What a task with so many GPUs has at best: those at one NUMA node, or in its package, are the nearest. */
static unsigned least_alone(const struct trial_node *n, unsigned gpus)
{
	unsigned best = UINT_MAX;

	for (unsigned d = 0; d < n->ndomains; d++) {
		unsigned cost[MAX], sum = 0;

		if (!n->cores[d])
			continue;
		memcpy(cost, n->cost[d], sizeof(cost));
		for (unsigned k = 0; k < gpus; k++) {
			unsigned least = k;

			for (unsigned i = k + 1; i < n->ngpus; i++)
				least = cost[i] < cost[least] ? i : least;
			sum += cost[least];
			cost[least] = cost[k];
		}
		best = sum < best ? sum : best;
	}
	return best;
}

/* How many of the tasks are as near as can be, with as many GPUs as they are to have. */
static unsigned count_nearest(const struct choice *c)
{
	unsigned sum = 0, near = 0, alone = least_alone(c->n, c->gpus_each), used[MAX] = {0}, whole = 0;

	/* A task alone: with cores near each of its GPUs. */
	for (unsigned i = 0; c->ntasks == 1 && c->gpus[0] >> i; i++)
		near += hwloc_bitmap_intersects(c->masks[0], c->n->near[i]);
	if (c->ntasks == 1)
		return near == c->gpus_each;
	for (unsigned t = 0; t < c->ntasks; t++) {
		unsigned own = hwloc_bitmap_iszero(c->masks[t]) ? UINT_MAX / MAX : 0;

		for (unsigned i = 0; i < c->n->ngpus; i++)
			if (c->gpus[t] >> i & 1) {
				own += distance_of(c->n, c->masks[t], i);
				used[i]++;
			}
		if ((unsigned) __builtin_popcountll(c->gpus[t]) != c->gpus_each)
			continue;
		whole++;
		near += own <= alone;
		sum += own;
	}
	for (unsigned i = 0; i < c->n->ngpus; i++)
		whole = used[i] == 1 ? whole : 0;
	return whole == c->ntasks && sum <= least_sum(c->n, c->ntasks, 1) ? c->ntasks : near;
}

static unsigned try_chooser(const struct chooser *by, const struct trial_node *n, unsigned ntasks, unsigned gpus_each)
{
	struct choice c = { .n = n, .ntasks = ntasks, .gpus_each = gpus_each };
	unsigned near;

	for (unsigned t = 0; t < ntasks; t++)
		c.masks[t] = hwloc_bitmap_alloc();
	near = by->choose(&c) ? count_nearest(&c) : 0;
	for (unsigned t = 0; t < ntasks; t++)
		hwloc_bitmap_free(c.masks[t]);
	return near;
}

static unsigned try_machine(const struct machine *m, bool has_mpibind, unsigned *near)
{
	unsigned tasks = 0;

	for (unsigned ntasks = 1; ntasks <= 8; ntasks *= 2)
		for (unsigned each = 1; each <= 4 && ntasks * each <= gpus_of(m); each *= 2) {
			struct trial_node n;

			node_make(&n, m, ntasks * each, 100);
			for (unsigned i = 0; i < CHOOSERS; i++)
				near[i] += choosers[i].mpibind && !has_mpibind ? 0 :
					try_chooser(&choosers[i], &n, ntasks, each);
			tasks += ntasks;
			node_free(&n);
		}
	return tasks;
}

TEST(tasks_are_as_near_as_can_be_beside_others)
{
	bool has_mpibind = mpibind_open();
	unsigned all[CHOOSERS] = {0}, tasks = 0;

	print_message("| Machine | Tasks |");
	for (unsigned i = 0; i < CHOOSERS; i++)
		print_message(" %s |", choosers[i].name);
	print_message("\n");
	for (size_t k = 0; k <= ROWS(machines); k++) {
		bool last = k == ROWS(machines);
		unsigned near[CHOOSERS] = {0}, n = last ? tasks : try_machine(&machines[k], has_mpibind, near);

		print_message("| %s | %u |", last ? "all" : machines[k].name, n);
		for (unsigned i = 0; i < CHOOSERS; i++) {
			if (choosers[i].mpibind && !has_mpibind)
				print_message(" - |");
			else
				print_message(" %u |", last ? all[i] : near[i]);
			all[i] += near[i];
		}
		print_message("\n");
		if (!last)
			assert_int_equal(near[0], n);
		tasks += last ? 0 : n;
	}
}

/* What single steps get: the GPUs of each task, a bit for each, and its PUs. */
TEST(places_of_tasks)
{
	static const uint64_t two[] = { 1 << 1 | 1 << 2 }, bound[] = { 1 << 5, 1 << 0, 1 << 7, 1 << 2 };
	static const struct machine four = { "four", "Package:4 [numa] Core:2 PU:2", { 0, 1, 2, 3, -1 } };
	static const struct machine reverse = { "reverse", "Package:1 Group:4 [numa] Core:8 PU:2", { 3, 2, 1, 0, -1 } };
	static const struct machine small = { "small", "Package:2 [numa] Core:2 PU:1", { 0, 1, -1 } };
	static const struct {
		const struct machine *machine;
		unsigned ngpus, ntasks, cpus;
		const uint64_t *fixed;
		const char *step, *placed;	/* step: its PUs, "": all */
	} rows[] = {
		/* As LUMI's documentation binds by hand: --cpu-bind=map_cpu:49,57,17,25,1,9,33,41. */
		{ &machines[3], 8, 8, 0, NULL, "",
		  "1:96-111 2:112-127 4:32-47 8:48-63 10:0-15 20:16-31 40:64-79 80:80-95" },
		/* What Slurm bound stays, in whatever order. */
		{ &machines[3], 8, 4, 4, bound, "", "20:0-7 1:96-103 80:64-71 4:32-39" },
		/* A task alone: as many cores near each of its GPUs, wherever these are; without a number all. */
		{ &four, 4, 1, 4, NULL, "", "f:0-1,4-5,8-9,12-13" }, { &four, 4, 1, 6, NULL, "", "f:0-9,12-13" },
		{ &four, 4, 1, 14, NULL, "", "f:0-13" }, { &four, 4, 1, 0, NULL, "", "f:0-15" },
		{ &four, 4, 1, 99, NULL, "", "f:0-15" }, { &four, 4, 1, 2, two, "", "6:4-5,8-9" },
		{ &four, 4, 1, 0, two, "", "6:4-11" }, { &four, 4, 1, 5, two, "", "6:0-1,4-11" },
		/* -n4 -c7 on 4, 3, 4 and 3 cores: a task in two NUMA nodes has the GPU of either. */
		{ &reverse, 4, 4, 7, NULL, "0-7,16-21,32-39,48-53", "1:39,48-53 2:32-38 4:7,16-21 8:0-6" },
		/* More tasks than cores share them. */
		{ &small, 2, 16, 1, NULL, "", "1:0 1:1 1:0 1:1 1:0 1:1 1:0 1:1 2:2 2:3 2:2 2:3 2:2 2:3 2:2 2:3" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		hwloc_bitmap_t masks[16], step = hwloc_bitmap_alloc();
		struct buf placed = {0};
		struct trial_node n;
		uint64_t gpus[16];
		char pus[64];

		node_make(&n, rows[i].machine, rows[i].ngpus, 100);
		hwloc_bitmap_list_sscanf(step, rows[i].step);
		assert_false(*rows[i].step && hwloc_topology_restrict(n.step, step, 0));
		for (unsigned t = 0; t < rows[i].ntasks; t++)
			masks[t] = hwloc_bitmap_alloc();
		assert_int_equal(gpu_place(&(struct gpu_places){ n.step, n.node, n.near, rows[i].ngpus, rows[i].ntasks,
								 rows[i].cpus, rows[i].fixed, false },
					   masks, gpus, &err), 0);
		for (unsigned t = 0; t < rows[i].ntasks; t++) {
			hwloc_bitmap_list_snprintf(pus, sizeof(pus), masks[t]);
			buf_printf(&placed, "%s%llx:%s", t ? " " : "", (unsigned long long) gpus[t], pus);
			hwloc_bitmap_free(masks[t]);
		}
		assert_string_equal(placed.data, rows[i].placed);
		buf_free(&placed);
		hwloc_bitmap_free(step);
		node_free(&n);
	}
}

TEST(lists)
{
	char out[64];

	assert_int_equal(gpu_count(NULL), 0);
	assert_int_equal(gpu_count("0,2,GPU-1"), 3);
	assert_int_equal(gpu_subset("4,5,GPU-1", 5, out, sizeof(out)), 0);
	assert_string_equal(out, "4,GPU-1");
	assert_int_equal(gpu_subset("4,5", 3, out, 3), -1);
	assert_int_equal(gpu_which("5", "4,5,7"), 2);
	assert_int_equal(gpu_which("7,4", "4,5,7"), 5);
	assert_int_equal(gpu_which("0", "4,5,7"), 0);
	assert_int_equal(gpu_which("4,9", "4,5,7"), 0);
	assert_int_equal(gpu_which("9", "4,5"), 0);
}

TESTS_MAIN(NULL, NULL)
