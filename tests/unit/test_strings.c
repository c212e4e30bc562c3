/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/file.h"
#include "topology.h"
#include "table.h"
#include "hwxml/canon.h"
#include "shape/shape.h"
#include "shape/strings.h"

static struct strings strings_of(const struct buf *xml, const char *name)
{
	struct strings s = {0};
	struct tree *t;

	t = tree_parse(xml->data, xml->len, name, &err);
	if (!t || strings_make(t, &s, &err))
		fail_msg("%s: %s", name, err.text);
	tree_free(t);
	return s;
}

static const char *text_at(const struct strings *s, int precision)
{
	const char *const texts[] = { s->cores, s->hierarchy, s->detail, s->allocation };

	return texts[precision];
}

enum { CORES, HIERARCHY, DETAIL, ALLOCATION, PRECISIONS };

/* --- what is told of machines that hwloc draws --- */

TEST(describes_what_hwloc_can_express)
{
	static const struct {
		const char *synthetic, *texts[PRECISIONS];
	} rows[] = {
		{ "package:2 [numa(memory=64GiB)] l3:2(size=32MiB) core:8 pu:2", {
			"NUMANode:2 Core:16 PU:2",
			"Package:2 [NUMANode] L3Cache:2 Core:8 PU:2",
			"Package:2 [NUMANode(memory=68719476736)] L3Cache:2(size=33554432) Core:8 PU:2",
			"Package:2 [NUMANode(memory=68719476736)] L3Cache:2 Core:8 PU:2" } },
		{ "package:2 [numa(memory=8GiB)] core:4 pu:2(indexes=2*8:1*2)", {
			"NUMANode:2 Core:4 PU:2",
			"Package:2 [NUMANode] Core:4 PU:2",
			"Package:2 [NUMANode(memory=8589934592)] Core:4 PU:2(indexes=2*8:1*2)",
			"Package:2 [NUMANode(memory=8589934592)] Core:4 PU:2" } },
		{ "package:2 [numa(memory=8GiB)] core:2 pu:1(indexes=0,3,1,7)", {
			"NUMANode:2 Core:2 PU:1",
			"Package:2 [NUMANode] Core:2 PU:1",
			"Package:2 [NUMANode(memory=8589934592)] Core:2 PU:1(indexes=0,3,1,7)",
			"Package:2 [NUMANode(memory=8589934592)] Core:2 PU:1" } },
		{ "package:2 die:2 [numa(memory=1GiB)] [numa(memory=2GiB indexes=0,4,1,5,2,6,3,7)] core:4 pu:1", {
			"NUMANode:4 Core:4 PU:1",
			"Package:2 Die:2 [NUMANode] [NUMANode] Core:4 PU:1",
			"Package:2 Die:2 [NUMANode(memory=1073741824 indexes=2*4:1*2)] [NUMANode(memory=2147483648)]"
			" Core:4 PU:1", "Package:2 Die:2 [NUMANode(memory=1073741824)] [NUMANode(memory=2147483648)]"
					" Core:4 PU:1" } },
		{ "[numa(memory=1GiB)] package:2 group:2 l2:2(size=1MiB) l1:1(size=32KiB) l1i:1(size=16KiB) core:1"
		  " pu:4", {
			"NUMANode:1 Core:8 PU:4",
			"[NUMANode] Package:2 L2Cache:4 Core:1 PU:4",
			"[NUMANode(memory=1073741824)] Package:2 Group:2 L2Cache:2(size=1048576) L1Cache:1(size=32768) "
			"L1iCache:1(size=16384) Core:1 PU:4",
			"[NUMANode(memory=1073741824)] Package:2 L2Cache:4 Core:1 PU:4" } },
		/* Without sizes versions 2 and 3 of hwloc differ. */
		{ "package:1 die:2 [numa(memory=1GiB)] [numa(memory=1GiB)] core:4 pu:4", {
			"NUMANode:2 Core:4 PU:4",
			"Package:1 Die:2 [NUMANode] [NUMANode] Core:4 PU:4",
			"Package:1 Die:2 [NUMANode(memory=1073741824)] [NUMANode(memory=1073741824)] Core:4 PU:4",
			"Package:1 Die:2 [NUMANode(memory=1073741824)] [NUMANode(memory=1073741824)] Core:4 PU:4" } },
		{ "package:2 group:2 [numa(memory=1GiB)] group:2 core:2 pu:1", {
			"NUMANode:4 Core:4 PU:1",
			"Package:2 Group:2 [NUMANode] Core:4 PU:1",
			"Package:2 Group:2 [NUMANode(memory=1073741824)] Group:2 Core:2 PU:1",
			"Package:2 Group:2 [NUMANode(memory=1073741824)] Core:4 PU:1" } },
		{ "[numa(memory=1GiB)] pu:4", {
			"NUMANode:1 Core:4 PU:1",
			"[NUMANode] Core:4 PU:1",
			"[NUMANode(memory=1073741824)] Core:4 PU:1",
			"[NUMANode(memory=1073741824)] Core:4 PU:1" } },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = topology_of_synthetic(rows[i].synthetic);
		FREED(buf_free) struct buf xml = topology_export(t);
		FREED(strings_free) struct strings s = strings_of(&xml, rows[i].synthetic);

		for (int p = 0; p < PRECISIONS; p++)
			assert_string_equal(text_at(&s, p), rows[i].texts[p]);
	}
}

/* --- documents by hand --- */

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n" \
	"<topology version=\"2.0\">"
#define SETS " cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\""

/* A short notation for trees: "TYPE attributes{children}". */
static size_t write_objects(const char *at, unsigned *gp, struct buf *out)
{
	const char *start = at;

	while (*at && *at != '}') {
		size_t type = strcspn(at, " {;"), more = strcspn(at, "{;");
		bool tree = memcmp(at, "PCI", 3) && memcmp(at, "OSD", 3) && memcmp(at, "Bri", 3);

		buf_printf(out, "<object type=\"%.*s\"%s gp_index=\"%u\"%.*s>", (int) type, at, tree ? SETS : "", ++*gp,
			   (int) (more - type), at + type);
		at += more + 1;
		if (at[-1] == '{')
			at += write_objects(at, gp, out) + 1;
		buf_puts(out, "</object>");
	}
	return at - start;
}

static struct buf document(const char *objects)
{
	struct buf xml = {0};
	unsigned gp = 0;

	buf_puts(&xml, HEAD);
	write_objects(objects, &gp, &xml);
	buf_puts(&xml, "</topology>");
	return xml;
}

#define PU(n) "PU os_index=\"" #n "\";"
#define CORE2(n, m) "Core{" PU(n) PU(m) "}"
#define CORE(n) "Core{" PU(n) "}"
#define NUMA(n, bytes) "NUMANode os_index=\"" #n "\" local_memory=\"" #bytes "\";"
#define PCI(class, speed, inside) PCI_AT("1", class, speed, inside)
#define PCI_AT(bus, class, speed, inside) \
	"Bridge{PCIDev pci_busid=\"0000:" bus ":00.0\" pci_type=\"" class " [1:1] [1:1] 0\"" \
	" pci_link_speed=\"" speed "\"{" inside "}}"
#define OS(type, name) "OSDev osdev_type=\"" #type "\" name=\"" name "\";"

TEST(describes_what_hwloc_cannot_express)
{
	static const struct {
		const char *objects, *texts[PRECISIONS];
	} rows[] = {
		/* packages that differ */
		{ "Machine{Package{" NUMA(0, 1000) CORE2(0, 1) CORE(2) "}Package{" NUMA(1, 2000) CORE(3) "}}", {
			"{ NUMANode:1 { Core:1 PU:2 | Core:1 PU:1 } | NUMANode:1 Core:1 PU:1 }",
			"{ Package:1 [NUMANode] { Core:1 PU:2 | Core:1 PU:1 } | Package:1 [NUMANode] Core:1 PU:1 }",
			"{ Package:1 [NUMANode(memory=1000)] { Core:1 PU:2 | Core:1 PU:1 } | "
			"Package:1 [NUMANode(memory=2000)] Core:1 PU:1 }", NULL } },
		/* cores and memory of which some are offline */
		{ "Machine{Package{" NUMA(2, 1000) CORE(4) CORE(6) "}Package{" NUMA(5, 1000) CORE(1) CORE(9) "}}", {
			"NUMANode:2 Core:2 PU:1",
			"Package:2 [NUMANode] Core:2 PU:1",
			"Package:2 [NUMANode(memory=1000 indexes=2,5)] Core:2 PU:1(indexes=4,6,1,9)", NULL } },
		/* no memory at all, and no cores */
		{ "Machine{" PU(0) PU(1) "}", { "Core:2 PU:1", "Core:2 PU:1", "Core:2 PU:1", "Core:2 PU:1" } },
		{ "Machine{Package{" CORE(0) "}Package{" CORE(1) NUMA(0, 1) "}}", {
			"Core:2 PU:1", "{ Package:1 Core:1 PU:1 | Package:1 [NUMANode] Core:1 PU:1 }", NULL, NULL } },
		/* memory for all beside memory for each */
		{ "Machine{" NUMA(2, 1000) "Package{" NUMA(0, 1000) CORE(0) "}Package{" NUMA(1, 1000) CORE(1) "}}", {
			"NUMANode:2 Core:1 PU:1",
			"[NUMANode] Package:2 [NUMANode] Core:1 PU:1",
			"[NUMANode(memory=1000)] Package:2 [NUMANode(memory=1000)] Core:1 PU:1", NULL } },
		/* a cache beside memory, and memory in a core */
		{ "Machine{Group{MemCache cache_size=\"64\"{" NUMA(0, 1000) "}" CORE(0) "}Group{Core{"
		  NUMA(1, 1000) PU(1) "}}}", {
			"NUMANode:2 Core:1 PU:1",
			"{ Group:1 [NUMANode] Core:1 PU:1 | Core:1 [NUMANode] PU:1 }",
			"{ Group:1 [NUMANode(memory=1000 memorysidecachesize=64)] Core:1 PU:1 | "
			"Group:1 Core:1 [NUMANode(memory=1000)] PU:1 }", NULL } },
		/* memory of a package without processors is the machine's; a cache within a core */
		{ "Machine{Package{" NUMA(0, 1000) "}Core{L1Cache cache_size=\"8\"{" PU(0) "}L1Cache cache_size=\"8\"{"
		  PU(1) "}}}", {
			"NUMANode:1 Core:1 PU:2",
			"[NUMANode] Core:1 PU:2",
			"[NUMANode(memory=1000)] Core:1 L1Cache:2(size=8) PU:1", NULL } },
		{ "Machine{" NUMA(9, 1) "Package{" NUMA(5, 2) "}Package{" NUMA(7, 3) CORE(0) "}}", {
			"NUMANode:1 Core:1 PU:1",
			"[NUMANode] [NUMANode] Package:1 [NUMANode] Core:1 PU:1",
			"[NUMANode(memory=1 indexes=7,9,5)] [NUMANode(memory=2)] Package:1 [NUMANode(memory=3)] Core:1"
			" PU:1", NULL } },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf xml = document(rows[i].objects);
		FREED(strings_free) struct strings s = strings_of(&xml, rows[i].objects);

		for (int p = 0; p < PRECISIONS; p++) {
			struct shape *shape = shape_parse(text_at(&s, p), NULL);

			assert_non_null(shape);
			assert_int_equal(shape->cores, s.ncores);
			assert_int_equal(shape->pus, s.npus);
			shape_free(shape);
			if (rows[i].texts[p])
				assert_string_equal(text_at(&s, p), rows[i].texts[p]);
		}
	}
}

TEST(counts_devices)
{
	static const struct {
		const char *devices, *told;
	} rows[] = {
		{ "", "" },
		/* one board with several faces counts once */
		{ PCI("0302", "15.7", OS(5, "cuda0") OS(1, "nvml0") OS(5, "opencl0d0")), " + GPU0@2-3" },
		{ PCI("0380", "31.5", OS(1, "rsmi0")), " + GPU0@2-3" },
		{ PCI("0300", "31.5", OS(1, "card1") OS(1, "renderD128")), " + GPU0@2-3" },
		{ PCI("0302", "8.0", ""), " + GPU0@2-3" },
		/* the display of a management controller; an OpenCL that is no board; a disk */
		{ PCI("0300", "0.0", OS(1, "card0") OS(1, "controlD64")), "" },
		{ OS(5, "opencl0d0"), "" },
		{ PCI("0108", "4.0", OS(0, "nvme0n1")), "" },
		/* a fabric, and Ethernet beside it */
		{ PCI("0207", "15.7", OS(2, "ib0") OS(3, "mlx5_0")) PCI("0200", "1.0", OS(2, "eno1")), " + NIC@2-3" },
		/* Ethernet alone, slow beside fast, and a USB port */
		{ PCI("0200", "4.0", OS(2, "eth0")) PCI("0200", "4.0", OS(2, "eth1")), " + NIC@2-3 NIC@2-3" },
		{ PCI("0200", "31.5", OS(2, "hsn0")) PCI("0200", "2.0", OS(2, "eno1")), " + NIC@2-3" },
		{ PCI("0c03", "8.0", OS(2, "usb0")), "" },
		{ PCI("0200", "8.0", OS(2, "e")) PCI("1200", "8.0", "") PCI_AT("2", "0302", "8.0", ""),
		  " + GPU0@2-3 GPU1@2-3 NIC@2-3" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf objects = {0}, xml;
		FREED(strings_free) struct strings s;

		buf_printf(&objects, "Machine{%sPackage{%s}Package{%s%s}}", "", CORE(0) CORE(1), CORE(2) CORE(3),
			   rows[i].devices);
		xml = document(objects.data);
		s = strings_of(&xml, objects.data);
		assert_memory_equal(s.allocation, "Package:2 Core:2 PU:1", strlen("Package:2 Core:2 PU:1"));
		assert_string_equal(s.allocation + strlen("Package:2 Core:2 PU:1"), rows[i].told);
	}
}

TEST(places_devices)
{
	struct buf xml = document("Machine{Package{" CORE(0) "}Package{" CORE(1) "Core{L1Cache{"
				  PU(2) PCI("0302", "8", "") "}}" "}" PCI_AT("2", "0302", "8", "") "}");
	FREED(strings_free) struct strings s = strings_of(&xml, "devices");

	assert_non_null(strstr(s.allocation, " + GPU0@2 GPU1@0-2"));
	buf_free(&xml);
}

/* --- real machines --- */

struct part {
	unsigned first, cores;
};

static int by_first(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->first != y->first ? (x->first < y->first ? -1 : 1) : x->cores < y->cores ? -1 : x->cores > y->cores;
}

static size_t sort_apart(struct part *p, size_t n)
{
	size_t kept = 0;

	qsort(p, n, sizeof(*p), by_first);
	for (size_t i = 0; i < n; i++)
		if (!kept || by_first(&p[kept - 1], &p[i]))
			p[kept++] = p[i];
	return kept;
}

static hwloc_obj_type_t core_type(hwloc_topology_t t)
{
	return hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
}

/* The cores inside a set, by logical number. */
static struct part part_of(hwloc_topology_t t, hwloc_const_cpuset_t set)
{
	struct part p = {0};

	for (int i = 0; i < hwloc_get_nbobjs_by_type(t, core_type(t)); i++)
		if (hwloc_bitmap_isincluded(hwloc_get_obj_by_type(t, core_type(t), i)->cpuset, set) && !p.cores++)
			p.first = i;
	return p;
}

static size_t parts_of_hwloc(hwloc_topology_t t, hwloc_obj_type_t type, struct part *p)
{
	size_t n = 0;

	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, type, o));) {
		hwloc_obj_t around = o;

		/* The memory of a group without processors is told as that of what is around. */
		while (hwloc_obj_type_is_memory(around->type) || hwloc_bitmap_iszero(around->cpuset))
			around = around->parent;
		p[n] = part_of(t, around->cpuset);
		n += p[n].cores > 0;
	}
	return sort_apart(p, n);
}

static size_t parts_of_shape(const struct shape *s, enum level level, struct part *p)
{
	size_t n = 0;

	for (size_t i = 0; i < s->ndomains; i++)
		if (s->domains[i].level == level)
			p[n++] = (struct part){ s->domains[i].first, s->domains[i].cores };
	return sort_apart(p, n);
}

/* Each level cuts the cores as hwloc says. */
static void same_tree_of_cores(hwloc_topology_t t, const char *text, const char *name)
{
	static const struct {
		enum level level;
		hwloc_obj_type_t type;
	} levels[] = {
		{ LEVEL_PACKAGE, HWLOC_OBJ_PACKAGE }, { LEVEL_DIE, HWLOC_OBJ_DIE }, { LEVEL_NUMA, HWLOC_OBJ_NUMANODE },
		{ LEVEL_L3, HWLOC_OBJ_L3CACHE }, { LEVEL_L2, HWLOC_OBJ_L2CACHE },
	};
	int pus = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU);
	OWNED(free) struct part *a = calloc(pus + 64, sizeof(*a)), *b = calloc(pus + 64, sizeof(*b));
	struct shape *s = shape_parse(text, &err);

	if (!s)
		fail_msg("%s: %s", name, err.text);
	assert_int_equal(s->pus, pus);
	assert_int_equal(s->cores, hwloc_get_nbobjs_by_type(t, core_type(t)));
	for (size_t i = 0; i < ROWS(levels); i++) {
		size_t n = parts_of_hwloc(t, levels[i].type, a), m = parts_of_shape(s, levels[i].level, b);

		if (n != m || memcmp(a, b, n * sizeof(*a)))
			fail_msg("%s: hwloc has %zu %s, '%s' has %zu", name, n, level_name(levels[i].level), text, m);
	}
	shape_free(s);
}

/* Where hwloc draws the detail, it draws the machine: sets, sizes and memory of all objects are the original's. */
static void same_machine(hwloc_topology_t was, hwloc_topology_t is)
{
	for (int type = HWLOC_OBJ_TYPE_MIN; type < HWLOC_OBJ_TYPE_MAX; type++) {
		hwloc_obj_t a = NULL, b = NULL;

		if (!hwloc_obj_type_is_normal(type) && type != HWLOC_OBJ_NUMANODE)
			continue;
		while ((a = hwloc_get_next_obj_by_type(was, type, a)) &&
		       (b = hwloc_get_next_obj_by_type(is, type, b))) {
			assert_true(hwloc_bitmap_isequal(a->cpuset, b->cpuset));
			if (hwloc_obj_type_is_cache(type))
				assert_int_equal(a->attr->cache.size, b->attr->cache.size);
			if (type != HWLOC_OBJ_NUMANODE)
				continue;
			assert_int_equal(a->os_index, b->os_index);
			assert_int_equal(a->attr->numanode.local_memory, b->attr->numanode.local_memory);
		}
		/* PUs outside any core are cores in our text. */
		if (type != HWLOC_OBJ_CORE || a)
			assert_true(!a && !hwloc_get_next_obj_by_type(is, type, b));
	}
}

struct tally {
	unsigned machines, drawn;
};

static void holds(const struct buf *xml, const char *name, struct tally *tally)
{
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = topology_of_xml(xml), drawn = topology_begin();
	struct strings s = strings_of(xml, name), again;
	struct buf back;

	for (int p = HIERARCHY; p < PRECISIONS; p++)
		same_tree_of_cores(t, text_at(&s, p), name);
	tally->machines++;
	if (!strpbrk(s.detail, "{}") && !hwloc_topology_set_synthetic(drawn, s.detail) && !hwloc_topology_load(drawn)) {
		back = topology_export(drawn);
		again = strings_of(&back, s.detail);
		if (!strcmp(s.detail, again.detail)) {
			same_machine(t, drawn);
			tally->drawn++;
		}
		strings_free(&again);
		buf_free(&back);
	}
	strings_free(&s);
}

TEST(describes_real_machines)
{
	struct tally tally = {0};

	for (char **file = cached(CORPUS "*.xml"); *file; file++) {
		FREED(buf_free) struct buf xml = {0};

		if (corpus_read(*file, &xml))
			holds(&xml, *file, &tally);
	}
	assert_true(tally.machines > 10 && tally.drawn > 5);
}

TEST(describes_this_machine)
{
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = topology_begin();
	struct tally tally = {0};
	FREED(buf_free) struct buf xml;

	assert_int_equal(hwloc_topology_load(t), 0);
	xml = topology_export(t);
	holds(&xml, "this machine", &tally);
}

/* With files: only whether the strings of these are right, of machines that others unpacked (test_offline_shape.py). */
int main(int argc, char **argv)
{
	struct tally tally = {0};

	if (argc == 1)
		return tests_run(NULL, NULL);
	for (int i = 1; i < argc; i++) {
		FREED(buf_free) struct buf xml = {0};

		if (!corpus_read(argv[i], &xml))
			return 1;
		holds(&xml, argv[i], &tally);
	}
	return 0;
}
