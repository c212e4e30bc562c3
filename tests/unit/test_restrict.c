/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/file.h"
#include "odd_machine.h"
#include "topology.h"
#include "table.h"
#include "hwview/machine.h"
#include "hwview/restrict.h"

/* Loaded as a job's program does: no flag, hwloc's defaults. */
static hwloc_topology_t load_plain(const struct buf *xml)
{
	hwloc_topology_t t;

	assert_int_equal(hwloc_topology_init(&t), 0);
	assert_int_equal(hwloc_topology_set_xmlbuffer(t, xml->data, xml->len + 1), 0);
	assert_int_equal(hwloc_topology_load(t), 0);
	return t;
}

static int restrict_xml(const char *xml, size_t len, const char *cores, struct buf *out, struct err *e)
{
	hwloc_topology_t t = machine_load(xml, len, e);
	int rc;

	if (!t)
		return -1;
	rc = restrict_topology(t, cores, e) || machine_export(t, out, e);
	hwloc_topology_destroy(t);
	return rc ? -1 : 0;
}

TEST(reads_core_lists)
{
	static const struct {
		const char *list, *wanted;	/* wanted: one digit a core; NULL: refused */
	} rows[] = {
		{ "0", "10000000" }, { "7", "00000001" }, { "0-3", "11110000" }, { "1,3,5-6", "01010110" },
		{ "0-7", "11111111" }, { "3,3,2-4", "00111000" }, { "5-5", "00000100" }, { "00", "10000000" },
		{ "", NULL }, { ",", NULL }, { "1,", NULL }, { "-1", NULL }, { "3-1", NULL }, { "8", NULL },
		{ "0-8", NULL }, { "1-", NULL }, { "1-2-3", NULL }, { " 1", NULL }, { "1 ", NULL }, { "+1", NULL },
		{ "0x1", NULL }, { "a", NULL }, { "18446744073709551616", NULL }, { "99999999999999999999999", NULL },
		{ "1;2", NULL }, { "1-+2", NULL },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		unsigned char wanted[8];
		char digits[9] = "";
		struct err e = {""};
		int rc = cores_parse(rows[i].list, wanted, 8, &e);

		if (rc != (rows[i].wanted ? 0 : -1))
			fail_msg("'%s' is %d: %s", rows[i].list, rc, e.text);
		for (int k = 0; k < 8 && !rc; k++)
			digits[k] = wanted[k] + '0';
		if (rc)
			assert_true(*e.text);
		else
			assert_string_equal(digits, rows[i].wanted);
	}
}

TEST(restricts)
{
	static const struct {
		const char *machine, *cores, *pus;	/* pus: OS indices that remain */
		int ncores, packages, numa, l3;
	} rows[] = {
		{ "Package:2 [NUMANode] L3Cache:4 Core:4 PU:2", "0", "0-1", 1, 1, 1, 1 },
		{ "Package:2 [NUMANode] L3Cache:4 Core:4 PU:2", "3-4", "6-9", 2, 1, 1, 2 },
		{ "Package:2 [NUMANode] L3Cache:4 Core:4 PU:2", "15,16", "30-33", 2, 2, 2, 2 },
		{ "Package:2 [NUMANode] L3Cache:4 Core:4 PU:2", "0-31", "0-63", 32, 2, 2, 8 },
		{ "Package:2 [NUMANode] Core:2 PU:2(indexes=2*4:1*2)", "1", "1,5", 1, 1, 1, 0 },
		{ "[NUMANode] Package:2 Core:2 PU:1", "2", "2", 1, 1, 1, 0 },
		{ "Package:2 [NUMANode] [NUMANode] Core:2 PU:1", "0", "0", 1, 1, 2, 0 },
		{ "Package:2 Group:2 [NUMANode] Core:2 PU:1", "2-3,4", "2-4", 3, 2, 2, 0 },
		{ "Package:2 [NUMANode] PU:4", "1,6", "1,6", 0, 2, 2, 0 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf xml = {0}, out = {0};
		OWNED(hwloc_topology_destroy) hwloc_topology_t t;
		char pus[128];

		export_synthetic(rows[i].machine, &xml);
		if (restrict_xml(xml.data, xml.len, rows[i].cores, &out, &err))
			fail_msg("%s, %s: %s", rows[i].machine, rows[i].cores, err.text);
		t = load_plain(&out);
		hwloc_bitmap_list_snprintf(pus, sizeof(pus), hwloc_get_root_obj(t)->cpuset);
		assert_string_equal(pus, rows[i].pus);
		assert_int_equal(hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE), rows[i].ncores);
		assert_int_equal(hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PACKAGE), rows[i].packages);
		assert_int_equal(hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE), rows[i].numa);
		assert_int_equal(hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_L3CACHE), rows[i].l3);
	}
}

TEST(refuses)
{
	static const struct {
		const char *xml, *cores;	/* xml NULL: of a machine of 4 cores */
	} rows[] = {
		{ NULL, "4" }, { NULL, "" }, { NULL, "0-" }, { NULL, "0-4" },
		{ "", "0" }, { "no XML", "0" }, { "<topology", "0" },
		{ "<?xml version=\"1.0\"?><topology version=\"2.0\"></topology>", "0" },
	};
	FREED(buf_free) struct buf machine = {0};

	export_synthetic("Package:1 [NUMANode] Core:4 PU:1", &machine);
	for (size_t i = 0; i < ROWS(rows); i++) {
		const char *xml = rows[i].xml ? rows[i].xml : machine.data;
		struct buf out = {0};
		struct err e = {""};

		if (restrict_xml(xml, strlen(xml), rows[i].cores, &out, &e) == 0)
			fail_msg("row %zu is accepted", i);
		assert_true(*e.text);
		assert_null(out.data);
	}
	assert_int_equal(restrict_xml(machine.data, machine.len / 2, "0", &machine, NULL), -1);
}

/* What was cut once may be cut again, and what is left is numbered from 0. */
TEST(restricts_again)
{
	FREED(buf_free) struct buf xml = {0}, step = {0}, task = {0};
	OWNED(hwloc_topology_destroy) hwloc_topology_t t;

	export_synthetic("Package:2 [NUMANode] Core:4 PU:1", &xml);
	assert_int_equal(restrict_xml(xml.data, xml.len, "2-5", &step, NULL), 0);
	assert_int_equal(restrict_xml(step.data, step.len, "2", &task, NULL), 0);
	t = load_plain(&task);
	assert_int_equal(hwloc_bitmap_first(hwloc_get_root_obj(t)->cpuset), 4);
	assert_int_equal(hwloc_bitmap_weight(hwloc_get_root_obj(t)->cpuset), 1);
}

/* Each device whose place in the hardware is still there, and no other. */
static void compare_devices(const char *path, hwloc_topology_t whole, const struct buf *cut_xml,
			    hwloc_const_bitmap_t cpus)
{
	static const hwloc_obj_type_t types[] = { HWLOC_OBJ_PCI_DEVICE, HWLOC_OBJ_OS_DEVICE };
	OWNED(hwloc_topology_destroy) hwloc_topology_t cut = machine_load(cut_xml->data, cut_xml->len, NULL);

	assert_non_null(cut);
	for (size_t i = 0; i < ROWS(types); i++) {
		hwloc_obj_t device = NULL;
		int local = 0;

		while ((device = hwloc_get_next_obj_by_type(whole, types[i], device)))
			local += hwloc_bitmap_intersects(hwloc_get_non_io_ancestor_obj(whole, device)->cpuset, cpus);
		if (hwloc_get_nbobjs_by_type(cut, types[i]) != local)
			fail_msg("%s: %d %s are local, %d are left", path, local, hwloc_obj_type_string(types[i]),
				 hwloc_get_nbobjs_by_type(cut, types[i]));
	}
}

static void restrict_real(const char *path)
{
	struct buf xml = {0};
	FREED(buf_free) struct buf out = {0}, last = {0};
	hwloc_topology_t whole, cut;
	char list[32];
	int cores;

	assert_int_equal(file_read(path, 16u << 20, &xml, NULL), 0);
	if (!(whole = machine_load(xml.data, xml.len, NULL))) {
		buf_free(&xml);
		return;		/* the corpus has files that hwloc refuses */
	}
	cores = hwloc_get_nbobjs_by_type(whole, machine_core_type(whole));
	snprintf(list, sizeof(list), "%d", cores - 1);
	if (restrict_xml(xml.data, xml.len, "0", &out, &err) || restrict_xml(xml.data, xml.len, list, &last, &err))
		fail_msg("%s: %s", path, err.text);
	for (int i = 0; i < 2; i++) {
		hwloc_obj_t core = hwloc_get_obj_by_type(whole, machine_core_type(whole), i ? cores - 1 : 0);

		cut = load_plain(i ? &last : &out);
		if (!hwloc_bitmap_isequal(hwloc_get_root_obj(cut)->cpuset, core->cpuset))
			fail_msg("%s: core %d is not what is left", path, i ? cores - 1 : 0);
		assert_true(hwloc_get_nbobjs_by_type(cut, HWLOC_OBJ_NUMANODE) > 0);
		compare_devices(path, whole, i ? &last : &out, core->cpuset);
		hwloc_topology_destroy(cut);
	}
	hwloc_topology_destroy(whole);
	buf_free(&xml);
}

TEST(restricts_real_machines)
{
	for (char **file = cached(CORPUS "*.xml"); *file; file++)
		restrict_real(*file);
}

/* Judged by the tables that the machine was made from. */
static void restrict_odd(unsigned seed, bool whole)
{
	struct odd_machine m;
	FREED(buf_free) struct buf out = {0}, list = {0};
	uint64_t pus = 0, nodes = 0, some = 0, all = 0, filled = 0;
	hwloc_topology_t t;

	odd_make(&m, seed);
	assert_non_null(t = machine_load(m.xml.data, m.xml.len, &err));
	assert_int_equal(hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE), m.cores);
	for (unsigned i = 0, least = odd_random(&m, m.cores); i < m.cores; i++) {
		unsigned core = hwloc_get_obj_by_type(t, HWLOC_OBJ_CORE, i)->os_index;

		all |= m.core[core].pus;
		if (!whole && i != least && odd_random(&m, 2))
			continue;
		buf_printf(&list, "%s%u", list.len ? "," : "", i);
		pus |= m.core[core].pus;
	}
	hwloc_topology_destroy(t);
	for (unsigned i = 0; i < m.numas; i++) {
		some |= UINT64_C(1) << i;
		nodes |= (m.numa[i].pus & pus) || pus == all ? UINT64_C(1) << i : 0;
		filled |= m.numa[i].memory ? UINT64_C(1) << i : 0;
	}
	for (unsigned c = 0; c < m.cores; c++) {
		uint64_t near = 0;

		for (unsigned i = 0; i < m.numas; i++)
			near |= m.numa[i].pus & m.core[c].pus ? filled & UINT64_C(1) << i : 0;
		nodes |= m.core[c].pus & pus && !near ? odd_nearest(&m, c, filled) : 0;
	}
	nodes = nodes ? nodes : some;
	if (restrict_xml(m.xml.data, m.xml.len, list.data, &out, &err))
		fail_msg("seed %u, cores %s: %s", seed, list.data, err.text);
	t = load_plain(&out);
	if (hwloc_bitmap_to_ith_ulong(hwloc_get_root_obj(t)->cpuset, 0) != pus)
		fail_msg("seed %u, cores %s: other PUs", seed, list.data);
	if (hwloc_bitmap_to_ith_ulong(hwloc_get_root_obj(t)->nodeset, 0) != nodes ||
	    hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE) != __builtin_popcountl(nodes))
		fail_msg("seed %u, cores %s: other NUMA nodes", seed, list.data);
	hwloc_topology_destroy(t);
	buf_free(&m.xml);
}

TEST(restricts_odd_machines)
{
	for (unsigned seed = 0; seed < 300; seed++)
		restrict_odd(seed, seed % 3 == 0);
}

TESTS_MAIN(NULL, NULL)
