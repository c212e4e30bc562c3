/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/buf.h"
#include "bind/gpu.h"
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

	if (least == UINT_MAX)
		return;
	for (unsigned t = 0; t < ntasks; t++)
		masks[t] = hwloc_bitmap_alloc();
	if (gpu_place(&how, masks, gpus, &err))
		fail_msg("%s: %s", m->name, err.text);
	if (ntasks == 1) {
		/* A task alone has cores near each of its GPUs, as far as it has cores, not the nearest to all. */
		for (unsigned i = 0; !cpus && i < n->ngpus; i++)
			assert_true(!hwloc_bitmap_intersects(n->near[i], hwloc_topology_get_topology_cpuset(n->step)) ||
				    hwloc_bitmap_intersects(masks[0], n->near[i]));
		hwloc_bitmap_free(masks[0]);
		return;
	}
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
				FREED(node_free) struct trial_node n;
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
		FREED(buf_free) struct buf placed = {0};
		FREED(node_free) struct trial_node n;
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
		hwloc_bitmap_free(step);
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
