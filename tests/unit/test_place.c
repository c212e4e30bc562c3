/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/place.h"
#include "table.h"
#include "topology.h"

/* cpus: what is left of it, a list of OS indices, or NULL. */
static hwloc_topology_t load(const char *synthetic, const char *xml, const char *cpus)
{
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t set = hwloc_bitmap_alloc();
	hwloc_topology_t t;

	assert_int_equal(hwloc_topology_init(&t), 0);
	assert_int_equal(hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED), 0);
	assert_int_equal(synthetic ? hwloc_topology_set_synthetic(t, synthetic) : hwloc_topology_set_xml(t, xml), 0);
	assert_int_equal(hwloc_topology_load(t), 0);
	if (cpus) {
		assert_int_equal(hwloc_bitmap_list_sscanf(set, cpus), 0);
		assert_int_equal(hwloc_topology_restrict(t, set, HWLOC_RESTRICT_FLAG_REMOVE_CPULESS), 0);
	}
	return t;
}

static hwloc_bitmap_t *masks_new(unsigned n)
{
	hwloc_bitmap_t *masks = calloc(n, sizeof(*masks));

	assert_non_null(masks);
	for (unsigned i = 0; i < n; i++)
		assert_non_null(masks[i] = hwloc_bitmap_alloc());
	return masks;
}

static void masks_free(hwloc_bitmap_t *masks, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		hwloc_bitmap_free(masks[i]);
	free(masks);
}

/* how: "whole mem" for mem where a CPU is a core. */
static int place(hwloc_topology_t t, const char *how, unsigned ntasks, unsigned cpus, hwloc_bitmap_t *masks,
		 struct err *e)
{
	bool whole = !strncmp(how, "whole ", strlen("whole "));
	struct bind_request r = {0};

	how += whole ? strlen("whole ") : 0;
	assert_int_equal(bind_request_set(&r, "topo-place", how, e), 0);
	return place_tasks(t, &r, ntasks, cpus, whole, masks, e);
}

/* "0-1;2-3": the masks of all tasks, or the error. */
static void placed(hwloc_topology_t t, const char *how, unsigned ntasks, unsigned cpus, char *out, size_t size)
{
	hwloc_bitmap_t *masks = masks_new(ntasks);
	struct err e = {""};
	size_t n = 0;

	if (place(t, how, ntasks, cpus, masks, &e))
		n = snprintf(out, size, "%s", e.text);
	else
		for (unsigned i = 0; i < ntasks; i++) {
			n += snprintf(out + n, size - n, "%s", i ? ";" : "");
			n += hwloc_bitmap_list_snprintf(out + n, size - n, masks[i]);
		}
	assert_true(n < size);
	masks_free(masks, ntasks);
}

#define NODE "pack:2 numa:2 l3:2 core:2 pu:2"
#define HYBRID "core:6 pu:2"		/* once PUs are taken away: cores of 2 and of 1, as hybrid machines have them */
#define THIRDS "numa:3 pu:3"

TEST(places_by_rule)
{
	static const struct {
		const char *machine, *cpus;
		unsigned ntasks, each;
		const char *how, *masks;
	} rows[] = {
		{ NODE, NULL, 5, 1, "compact", "0-1;2-3;4-5;6-7;8-9" },
		{ NODE, NULL, 3, 0, "compact", "0-1;2-3;4-5" },
		{ NODE, NULL, 3, 3, "compact", "0-5;6-11;12-17" },
		{ NODE, NULL, 4, 5, "compact", "0-5;6-11;12-17;18-23" },
		/* Not over the end of a domain as long as there is room within one. */
		{ NODE, NULL, 3, 5, "compact:numa", "0-5;8-13;16-21" },
		{ NODE, NULL, 6, 5, "compact:numa", "0-4;5-7,13-14;8-12;16-20;21-23,29-30;24-28" },
		{ NODE, NULL, 3, 16, "compact:l3", "0-11;12-21;22-31" },
		/* All cores before more of their PUs than needed. */
		{ "numa:2 core:4 pu:4", NULL, 2, 8, "compact:numa", "0-15;16-31" },
		{ "numa:2 core:4 pu:4", NULL, 2, 8, "scatter", "0-15;16-31" },
		{ "numa:2 core:5 pu:4", NULL, 4, 5, "scatter", "0-7;20-27;8-15;28-35" },
		/* Cores are split, then shared. */
		{ NODE, NULL, 20, 1, "compact", "0;1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19" },
		{ "core:2 pu:2", NULL, 6, 1, "compact", "0;0;1;1;2;3" },
		{ "core:2 pu:2", NULL, 6, 1, "scatter", "0;2;1;3;0;2" },
		{ NODE, NULL, 4, 1, "scatter", "0-1;16-17;8-9;24-25" },
		{ NODE, NULL, 6, 2, "scatter", "0-3;16-19;8-11;24-27;4-7;20-23" },
		{ NODE, NULL, 6, 2, "scatter:numa", "0-3;16-19;8-11;24-27;4-7;20-23" },
		{ NODE, NULL, 6, 2, "scatter:NUMANode", "0-3;16-19;8-11;24-27;4-7;20-23" },
		{ NODE, NULL, 6, 2, "scatter:package", "0-3;16-19;4-7;20-23;8-11;24-27" },
		{ NODE, NULL, 3, 2, "scatter:core", "0-1;16-17;8-9" },
		{ NODE, NULL, 6, 5, "scatter", "0-4;16-20;8-12;24-28;5-7,13-14;21-23,29-30" },
		{ NODE, NULL, 3, 1, "scatter:machine", "0-1;2-3;4-5" },
		/* Parts of nodes. */
		{ NODE, "0-5,9,16-19", 4, 2, "compact", "0-1;2-3;4-5;9,16-17" },
		{ NODE, "0-5,9,16-19", 4, 2, "scatter", "0-1;16-17;4-5;18-19" },
		{ NODE, "0-5,9,16-19", 5, 2, "scatter:package", "0-1;16-17;2-3;18-19;4-5" },
		{ HYBRID, "0-7,8,10", 4, 2, "compact", "0-1;2-3;4-5;6-7" },
		{ HYBRID, "0-7,8,10", 5, 2, "compact", "0-1;2-3;4-5;6-7;8,10" },
		{ HYBRID, "0-7,8,10", 5, 2, "mem", "0-1;2-3;4-5;6-7;8,10" },
		{ HYBRID, "0-7,8,10", 6, 1, "mem", "0;2;4;6;8;10" },
		{ HYBRID, "0-7,8,10", 3, 0, "mem", "0,2;4,6;8,10" },
		/* Memory first. */
		{ NODE, NULL, 1, 0, "mem", "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30" },
		{ NODE, NULL, 1, 1, "mem", "0" },
		{ NODE, NULL, 3, 0, "mem", "0,2,4,6,8,10,12,14;16,18,20,22;24,26,28,30" },
		{ NODE, NULL, 3, 1, "mem", "0;16;24" },
		{ NODE, NULL, 5, 0, "mem", "0,2;4,6;8,10,12,14;16,18,20,22;24,26,28,30" },
		/* All cores, also where a level above them has an object for each task. */
		{ NODE, "2-7", 2, 0, "mem", "2,4;6" },
		{ THIRDS, NULL, 4, 2, "mem", "0-1;2,5;3-4;6-7" },
		{ THIRDS, NULL, 2, 2, "mem", "0-2;6-8" },
		{ THIRDS, NULL, 2, 4, "mem", "0-3;4-7" },
		{ THIRDS, "0-5", 4, 2, "mem", "0-1;2;3-4;5" },
		{ THIRDS, NULL, 12, 0, "mem", "0;0;1;2;3;3;4;5;6;6;7;8" },
		/* A CPU is a core: also where only a boundary or the first PU of each would do. */
		{ NODE, NULL, 2, 3, "whole compact", "0-5;6-11" },
		{ NODE, "0-1,8-11", 1, 3, "whole compact:numa", "0-1,8-11" },
		{ NODE, "0-1,8-11", 1, 3, "compact:numa", "8-11" },
		{ NODE, "0-1,8-9", 1, 2, "whole mem", "0-1,8-9" },
		{ NODE, "0-3", 2, 0, "whole mem", "0-1;2-3" },
		{ NODE, "0-3", 3, 1, "whole compact", "0-1;0-1;2-3" },
		{ NODE, "0-3", 2, 1, "whole scatter:pu", "0-1;2-3" },
		{ HYBRID, "0-7,8,10", 3, 2, "whole mem", "0-3;4-7;8,10" },
		{ THIRDS, NULL, 3, 1, "compact:l3", "level 'l3' does not exist within the step's cores" },
		{ THIRDS, NULL, 3, 1, "scatter:die", "level 'die' does not exist within the step's cores" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = load(rows[i].machine, NULL, rows[i].cpus);
		char told[4096];

		placed(t, rows[i].how, rows[i].ntasks, rows[i].each, told, sizeof(told));
		if (strcmp(told, rows[i].masks))
			fail_msg("%s of %s, %u tasks of %u, %s:\n  %s, not\n  %s", rows[i].cpus ? rows[i].cpus : "all",
				 rows[i].machine, rows[i].ntasks, rows[i].each, rows[i].how, told, rows[i].masks);
	}
}

/*
 * Beside mpibind (LLNL, v0.23.1 of 2025, mpibind_set_gpu_optim(0), hwloc 2.9.0), which gave the second list of masks
 * for the same machine; SAME: as ours; CRASHES: it ended by SIGSEGV.
 */
#define SAME ""
/* One of hwloc's kinds of CPU. */
static void register_kind(hwloc_topology_t t, const char *pus, const char *name, const char *value)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	struct hwloc_info_s info = { (char *) name, (char *) value };

	assert_int_equal(hwloc_bitmap_list_sscanf(set, pus), 0);
#if HWLOC_API_VERSION >= 0x00030000
	assert_int_equal(hwloc_cpukinds_register(t, set, -1, &(struct hwloc_infos_s){ &info, 1, 0 }, 0), 0);
#else
	assert_int_equal(hwloc_cpukinds_register(t, set, -1, 1, &info, 0), 0);
#endif
	hwloc_bitmap_free(set);
}

/* Eight cores of two PUs, eight of one. */
#define PERFORMANCE "0-15"
#define EFFICIENCY "16,18,20,22,24,26,28,30"

static const struct kinds {
	const char *name, *values[3], *pus[3];	/* of each; unused ones NULL */
} raptor = { "CoreType", { "IntelCore", "IntelAtom" }, { PERFORMANCE, EFFICIENCY } },
  little = { "LinuxCapacity", { "1024", "1000", "530" }, { "0-7", "8-15", EFFICIENCY } },
  /* Favoured cores, as of servers, are of one kind. */
  favoured = { "FrequencyMaxMHz", { "3800", "4100" }, { PERFORMANCE, EFFICIENCY } };

TEST(keeps_a_task_on_one_kind_of_core)
{
	static const struct {
		const struct kinds *kinds;
		const char *cpus;
		unsigned ntasks, each;
		const char *how, *masks;
	} rows[] = {
		{ &raptor, PERFORMANCE "," EFFICIENCY, 3, 4, "compact", "0-7;8-15;16,18,20,22" },
		{ &little, PERFORMANCE "," EFFICIENCY, 3, 4, "compact", "0-7;8-15;16,18,20,22" },
		{ &raptor, PERFORMANCE "," EFFICIENCY, 4, 3, "compact", "0-5;6-11;16,18,20;22,24,26" },
		{ &favoured, PERFORMANCE "," EFFICIENCY, 4, 3, "compact", "0-5;6-11;12-16;18,20,22" },
		{ &raptor, PERFORMANCE "," EFFICIENCY, 2, 8, "compact", "0-15;" EFFICIENCY },
		/* SMT siblings of performance cores, before two kinds. */
		{ &raptor, PERFORMANCE "," EFFICIENCY, 3, 8, "compact", "0-7;8-15;" EFFICIENCY },
		{ &raptor, PERFORMANCE "," EFFICIENCY, 2, 12, "compact", "0-11;12-16,18,20,22,24,26,28,30" },
		/* Who shares out all cores leaves none. */
		{ &raptor, PERFORMANCE "," EFFICIENCY, 4, 0, "mem", "0,2,4,6;8,10,12,14;16,18,20,22;24,26,28,30" },
		{ &raptor, PERFORMANCE "," EFFICIENCY, 1, 0, "mem", "0,2,4,6,8,10,12,14" },
		{ &raptor, PERFORMANCE "," EFFICIENCY, 2, 1, "scatter", "0-1;2-3" },
		{ &raptor, "0-7,16,18,20,22", 4, 2, "compact", "0-3;4-7;16,18;20,22" },
		{ &raptor, EFFICIENCY, 2, 4, "compact", "16,18,20,22;24,26,28,30" },
		{ &raptor, PERFORMANCE "," EFFICIENCY, 30, 1, "compact",
		  "0;0;1;1;2;2;3;3;4;4;5;5;6;7;8;9;10;11;12;13;14;15;16;18;20;22;24;26;28;30" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = load("numa:1 core:16 pu:2", NULL, NULL);
		OWNED(hwloc_bitmap_free) hwloc_bitmap_t set = hwloc_bitmap_alloc();
		char out[512];

		for (unsigned k = 0; k < 3 && rows[i].kinds->pus[k]; k++)
			register_kind(t, rows[i].kinds->pus[k], rows[i].kinds->name, rows[i].kinds->values[k]);
		assert_int_equal(hwloc_bitmap_list_sscanf(set, rows[i].cpus), 0);
		assert_int_equal(hwloc_topology_restrict(t, set, HWLOC_RESTRICT_FLAG_REMOVE_CPULESS), 0);
		placed(t, rows[i].how, rows[i].ntasks, rows[i].each, out, sizeof(out));
		if (strcmp(out, rows[i].masks))
			fail_msg("row %zu: %s, not %s", i, out, rows[i].masks);
	}
}

#define CRASHES NULL

static const struct beside {
	const char *xml, *cpus;
	unsigned ntasks, each;
	const char *ours, *theirs;
} beside[] = {
	{ "machines/amd-4x16.xml", NULL, 8, 0, "0-7;8-15;16-23;24-31;32-39;40-47;48-55;56-63", SAME },
	{ "machines/amd-4x16.xml", NULL, 5, 0, "0-15;16-31;32-47;48-55;56-63", SAME },
	{ "machines/amd-4x16.xml", NULL, 2, 0, "0-31;32-63", SAME },
	{ "machines/amd-4x16.xml", NULL, 16, 4,
		"0-3;4-7;8-11;12-15;16-19;20-23;24-27;28-31;32-35;36-39;40-43;44-47;48-51;52-55;56-59;60-63", SAME },
	{ "machines/amd-4x16.xml", NULL, 6, 3,
		"0,2,4,6;16,18,20,22;32,34,36,38;40,42,44,46;48,50,52,54;56,58,60,62",
		"0-15;16-31;32-39;40-47;48-55;56-63" },
	{ "machines/amd-4x16.xml", "0-10,16-18,40", 3, 0, "0-7;8-10,16-18;40", "0-10;16-18;40" },
	{ "machines/amd-4x16.xml", "0-10,16-18,40", 7, 2, "0-1;2-3;4-5;6-7;8-9;10,18;16-17",
	  "0-1;2-3;4-5;6-7;8,10;16,18;40" },
	{ "machines/amd-4x16.xml", "5-12", 4, 2, "5-6;7,12;8-9;10-11", "5-6;7;8-10;11-12" },
	{ "machines/power-2x4.xml", NULL, 4, 0, "0,4;8,12;88,92;96,100", SAME },
	{ "machines/power-2x4.xml", NULL, 13, 2,
		"0-1;2-3;4-5;6-7;8-9;10-11;12-15;88-90;91-93;94-96;97-99;100-101;102-103",
		"0-1;2-3;4-5;6-7;8-9;10-11;12-15;88-89;90;92-93;94;96-98;100-102" },
	{ "machines/power-2x4.xml", NULL, 5, 4,
		"0-5;6-10;11-15;88-89,92-93;96-97,100-101", "0-2,4-6;8-10;12-14;88-89,92-93;96-97,100-101" },
	{ "machines/power-2x4.xml", "0-7,12-13,88-91", 3, 0, "0,4;12;88", "0;12;88" },
	{ "machines/arm-2x64.xml", NULL, 4, 8,
		"0,4,8,12,16,20,24,28;32,36,40,44,48,52,56,60;64,68,72,76,80,84,88,92;96,100,104,108,112,116,120,124",
		SAME },
	{ "machines/arm-2x64.xml", "0-3,30-37,64-67", 2, 0, "0-3,30-31;32-37,64-67", "0-3,30-37;64-67" },
	{ "machines/intel-2x8.xml", NULL, 4, 0, "0-3;4-7;8-11;12-15", CRASHES },
	{ "machines/uneven-2x6.xml", NULL, 4, 0, "12,14,16,18;20,22;0,2,8,10;4,6", "0,2;8,10;0,2,8,10;20,22" },
	{ "machines/uneven-2x6.xml", NULL, 5, 4, "12-15;16-19;20-23;0-3;4-7", "0-3;8-11;0-3;8-11;20-23" },
	{ "machines/uneven-4x3.xml", NULL, 6, 4, "4,8;5,9;2,13;6,10;3,11;7", SAME },
	{ CORPUS "64intel64-fakeKNL-SNC4-hybrid.xml", NULL, 4, 0,
		"0-3;4-7;8-11;12-15",
		"0-3,16-19,32-35,48-51;4-7,20-23,36-39,52-55;8-11,24-27,40-43,56-59;12-15,28-31,44-47,60-63" },
	{ CORPUS "64intel64-fakeKNL-SNC4-hybrid.xml", NULL, 8, 2,
		"0-1;2-3;4-5;6-7;8-9;10-11;12-13;14-15", "0,2;0,2;4,6;4,6;8,10;8,10;12,14;12,14" },
	{ CORPUS "64intel64-fakeKNL-SNC4-hybrid.xml", "0-20,40", 3, 0, "0-3;4-7;8-15", "0-7,16-20;4-11,20,40;12-15" },
	{ CORPUS "192em64t-24n8c2t.xml", NULL, 7, 0,
		"0-31;32-63;64-95;96-119;120-143;144-167;168-191",
		"0-31,192-223;32-63,224-255;64-95,256-287;96-119,288-311;120-143,312-335;144-167,336-359;"
		"168-191,360-383" },
	{ CORPUS "16em64t-4s2c2t-offlines.xml", NULL, 4, 0, "0,4;1,6;3;15", "0;1;6;3" },
	{ CORPUS "16em64t-4s2c2t-offlines.xml", NULL, 4, 2, "0,4,12;1,6;3;15", "0,4;1,6;3;15" },
	{ CORPUS "8ia64-2n2s2c+1n.v1tov2.xml", NULL, 2, 0, "0-3;16-19", "0-3,16-19;" },
	{ CORPUS "8intel64-4n2t-memattrs.xml", NULL, 4, 0, "0-1;2-3;4-5;6-7", SAME },
	{ CORPUS "64intel64-3g2n+2n-irregulargroups+pci.xml", NULL, 5, 0, "0-15;16-31;32-47;48-55;56-63",
	  "0-2;3-5;6-7;8-11;12-15" },
	{ CORPUS "fakeheterodistances.xml", NULL, 3, 0, "0,6,12;18,24,30;36,42", SAME },
};

TEST(places_beside_mpibind)
{
	for (const struct beside *b = beside; b < beside + ROWS(beside); b++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = load(NULL, *cached(b->xml), b->cpus);
		char told[4096];

		placed(t, "mem", b->ntasks, b->each, told, sizeof(told));
		if (strcmp(told, b->ours))
			fail_msg("%s of %s, %u tasks of %u:\n  %s, not\n  %s", b->cpus ? b->cpus : "all", b->xml,
				 b->ntasks, b->each, told, b->ours);
		assert_true(!b->theirs || strcmp(told, b->theirs));
	}
}

static unsigned chance(unsigned n)
{
	static unsigned long long state = 42;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % n;
}

/* A tree of any of these levels, less some of its PUs. */
static hwloc_topology_t any_machine(char *name, size_t size)
{
	static const char *const types[] = { "pack", "numa", "l3", "l2", "core" };
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t some = hwloc_bitmap_alloc();
	hwloc_topology_t t;
	size_t n = 0;

	for (size_t i = 0; i < ROWS(types); i++)
		if (chance(3) || i == 4)
			n += snprintf(name + n, size - n, "%s:%u ", types[i], 1 + chance(3));
	snprintf(name + n, size - n, "pu:%u", 1 + chance(4));
	t = load(name, NULL, NULL);
	for (unsigned pu = 0; pu < (unsigned) hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU); pu++)
		if (chance(4))
			hwloc_bitmap_set(some, pu);
	if (chance(2) && !hwloc_bitmap_iszero(some))
		assert_int_equal(hwloc_topology_restrict(t, some, HWLOC_RESTRICT_FLAG_REMOVE_CPULESS), 0);
	return t;
}

/* What holds of any placing: NULL, or what does not. */
static const char *broken(hwloc_topology_t t, const hwloc_bitmap_t *masks, unsigned ntasks, unsigned cpus)
{
	hwloc_const_bitmap_t all = hwloc_topology_get_topology_cpuset(t);
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t taken = hwloc_bitmap_alloc();
	bool enough = ntasks * cpus <= (unsigned) hwloc_bitmap_weight(all);
	const char *what = NULL;

	for (unsigned i = 0; i < ntasks; i++) {
		if (hwloc_bitmap_iszero(masks[i]))
			what = "a task has nothing";
		else if (!hwloc_bitmap_isincluded(masks[i], all))
			what = "a task is outside";
		else if (enough && hwloc_bitmap_intersects(masks[i], taken))
			what = "tasks share PUs though there are enough";
		else if (enough && (unsigned) hwloc_bitmap_weight(masks[i]) < cpus)
			what = "a task has too little though there is enough";
		hwloc_bitmap_or(taken, taken, masks[i]);
	}
	return what;
}

static bool equal(const hwloc_bitmap_t *a, const hwloc_bitmap_t *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!hwloc_bitmap_isequal(a[i], b[i]))
			return false;
	return true;
}

TEST(places_anything)
{
	static const char *const how[] = { "compact", "compact:core", "scatter:core", "scatter", "scatter:machine",
					   "scatter:pu",
		"compact:numa", "mem" };

	for (unsigned round = 0; round < 4000; round++) {
		unsigned ntasks = 1 + chance(40), cpus = 1 + chance(6);
		hwloc_bitmap_t *masks = masks_new(ntasks), *again = masks_new(ntasks);
		const char *way = how[chance(ROWS(how))], *what;
		char name[256];
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = any_machine(name, sizeof(name));

		assert_int_equal(place(t, way, ntasks, cpus, masks, &err), 0);
		assert_int_equal(place(t, way, ntasks, cpus, again, &err), 0);
		if ((what = broken(t, masks, ntasks, cpus)) ||
		    (what = equal(masks, again, ntasks) ? NULL : "it is not the same again"))
			fail_msg("round %u, %s, %s, %u tasks of %u: %s", round, name, way, ntasks, cpus, what);
		masks_free(masks, ntasks);
		masks_free(again, ntasks);
	}
}

TESTS_MAIN(NULL, NULL)
