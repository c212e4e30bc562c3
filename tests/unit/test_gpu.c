/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/buf.h"
#include "bind/gpu.h"
#include "hwview/image.h"
#include "hwview/machine.h"
#include "shape/shape.h"
#include "shape/strings.h"
#include "table.h"
#include "topology.h"

/*
 * Two packages of 8 cores, 0-7,16-23 and 8-15,24-31; a GPU at the first, two at the second, beside another maker's and
 * the display of a management controller, which comes second on the bus.
 */
static hwloc_topology_t load(void)
{
	hwloc_topology_t t;

	assert_false(hwloc_topology_init(&t) ||
		     hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) ||
		     hwloc_topology_set_xml(t, *cached("machines/intel-2x8.xml")) || hwloc_topology_load(t));
	return t;
}

TEST(tells_order_and_side)
{
	static const struct {
		const char *gpus, *cpus, *told;
	} rows[] = {
		{ "0", "0-3", "0 near" },
		{ "0,1,2", "0-3", "0 near,1 far,2 far" },
		{ "2,0", "8", "2 near,0 far" },
		{ "0,1", "0,8", "0 near 1 of 2 cores,1 near 1 of 2 cores" },
		{ "0,1,2", "0-7,8-9", "0 near 8 of 10 cores,1 near 2 of 10 cores,2 near 2 of 10 cores" },
		{ "GPU-2b4a", "0", "GPU-2b4a" },
		{ "17", "0", "17" },
		{ "", "0", "" },
	};
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = load();

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(hwloc_bitmap_free) hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
		char told[256];

		assert_int_equal(hwloc_bitmap_list_sscanf(cpus, rows[i].cpus), 0);
		gpu_describe(t, rows[i].gpus, cpus, told, sizeof(told));
		assert_string_equal(told, rows[i].told);
		gpu_describe(NULL, rows[i].gpus, cpus, told, sizeof(told));
		assert_string_equal(told, rows[i].gpus);
	}
}

/* --- numbers and UUIDs --- */

#define DRIVEN "<object type=\"PCIDev\" gp_index=\"%u\" pci_busid=\"0000:%u0:00.0\" pci_type=\"0302 [10de:20b0] " \
	"[10de:144e] a1\" pci_link_speed=\"31.5\"><object type=\"OSDev\" gp_index=\"%u\" name=\"nvml%u\" " \
	"osdev_type=\"1\"><info name=\"NVIDIAUUID\" value=\"%s\"/></object></object>\n"

/* A GPU at each NUMA node, the one that is first on the bus at NUMA node `at`; the driver numbers them otherwise. */
static hwloc_topology_t numbered(unsigned at)
{
	static const char *const uuids[] = { "GPU-bbbb", "GPU-aaaa" };
	FREED(buf_free) struct buf out = synthetic_xml("Package:2 [numa] Core:2 PU:1"), xml = {0};
	const char *from = out.data, *to;
	hwloc_topology_t t;

	for (unsigned node = 0; node < 2; node++) {
		to = strstr(from + 1, "<object type=\"NUMANode\"");
		buf_add(&xml, from, to - from);
		from = to;
		for (unsigned i = 0; i < 2; i++)
			if (node == (i ? 1 : at))
				buf_printf(&xml, DRIVEN, 900 + i, 1 + i, 910 + i, 1 - i, uuids[i]);
		/* One that the driver has lost. */
		if (node)
			buf_puts(&xml, "<object type=\"PCIDev\" gp_index=\"920\" pci_busid=\"0000:50:00.0\" pci_type="
				 "\"0302 [10de:20b0] [10de:144e] ff\" pci_link_speed=\"0\"/>\n");
	}
	buf_puts(&xml, from);
	assert_made(t = image_load(xml.data, xml.len, true, &err));
	return t;
}

TEST(finds_numbers_and_uuids)
{
	static const struct {
		unsigned at;
		const char *id, *want;
	} rows[] = {
		{ 0, "0", "2-3" },
		{ 0, "1", "0-1" },
		{ 0, "2", "the node's topology does not say which GPU is number 2" },
		{ 0, "GPU-aaaa", "2-3" },
		{ 0, "GPU-bbbb", "0-1" },
		{ 0, "GPU-aaa", "GPU GPU-aaa is not in the node's topology" },
		{ 0, "MIG-GPU-bbbb/3/0", "0-1" },
		{ 0, "MIG-5c1e", "the node's topology does not say where MIG-5c1e is" },
		{ 1, "MIG-5c1e", "2-3" },
		{ 1, "MIG-GPU-bbbb/3/0", "2-3" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = numbered(rows[i].at);
		OWNED(hwloc_bitmap_free) hwloc_bitmap_t near = hwloc_bitmap_alloc();
		char got[sizeof(err.text)];

		if (!gpu_localities(t, rows[i].id, &near, &err))
			hwloc_bitmap_list_snprintf(got, sizeof(got), near);
		else
			snprintf(got, sizeof(got), "%s", err.text);
		assert_string_equal(got, rows[i].want);
	}
}

/* --- one numbering for snapshots and steps --- */

/* A GPU: the NUMA node that it is at, its bus, maker, class and the driver's name for it. */
struct gpu_at {
	unsigned numa, bus, vendor, class;
	const char *os_device;
};

#define FUNCTION "<object type=\"PCIDev\" gp_index=\"%zu\" pci_busid=\"0000:%02x:00.0\" pci_type=\"%04x [%04x:1] " \
	"[1:1] a1\" pci_link_speed=\"31.5\">"

static struct buf xml_with(const char *synthetic, const struct gpu_at *gpus, size_t n)
{
	struct buf out = synthetic_xml(synthetic), xml = {0};
	const char *from = out.data, *to;

	for (unsigned numa = 0; (to = strstr(from + 1, "<object type=\"NUMANode\"")); numa++) {
		buf_add(&xml, from, to - from);
		from = to;
		for (size_t i = 0; i < n; i++) {
			if (gpus[i].numa != numa)
				continue;
			buf_printf(&xml, FUNCTION, 9000 + 2 * i, gpus[i].bus, gpus[i].class, gpus[i].vendor);
			if (gpus[i].os_device)
				buf_printf(&xml, "<object type=\"OSDev\" gp_index=\"%zu\" name=\"%s\" "
					   "osdev_type=\"1\"/>", 9001 + 2 * i, gpus[i].os_device);
			buf_puts(&xml, "</object>\n");
		}
	}
	buf_puts(&xml, from);
	buf_free(&out);
	assert_false(xml.failed);
	return xml;
}

/* The NUMA node of the GPU with each number, '-' for a number that is not known: as the snapshot has them, */
static void numas_of_shape(const struct buf *xml, unsigned cores, char *out)
{
	struct tree *tree = tree_parse(xml->data, xml->len, "test.xml", NULL);
	FREED(strings_free) struct strings strings;
	struct shape *s;

	assert_non_null(tree);
	assert_int_equal(strings_make(tree, &strings, NULL), 0);
	assert_non_null(s = shape_parse(strings.allocation, NULL));
	memset(out, '-', 10);
	for (size_t i = 0; i < s->ndevices; i++)
		if (s->devices[i].number >= 0)
			out[s->devices[i].number] = '0' + s->devices[i].first / cores;
	shape_free(s);
	tree_free(tree);
}

/* and as a step does. */
static void numas_of_step(const struct buf *xml, unsigned cores, char *out)
{
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t near = hwloc_bitmap_alloc();
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = image_load(xml->data, xml->len, true, NULL);
	char id[4];

	assert_non_null(t);
	for (unsigned n = 0; n < 10; n++) {
		snprintf(id, sizeof(id), "%u", n);
		out[n] = gpu_localities(t, id, &near, NULL) ? '-' : '0' + hwloc_bitmap_first(near) / cores;
	}
}

#define NV 0x10de
#define AMD 0x1002
#define EIGHT "Package:2 Group:4 [numa] Core:2 PU:1"
#define FOUR "Package:1 Group:4 [numa] Core:2 PU:1"

static const struct {
	const char *why, *synthetic, *numas;	/* numas: by number */
	struct gpu_at gpus[8];
} numberings[] = {
	{ "LUMI-G, Frontier: RSMI", FOUR, "33110022", {
		{ 0, 0xd1, AMD, 0x380, "rsmi4" }, { 0, 0xd6, AMD, 0x380, "rsmi5" }, { 1, 0xc9, AMD, 0x380, "rsmi2" },
		{ 1, 0xce, AMD, 0x380, "rsmi3" }, { 2, 0xd9, AMD, 0x380, "rsmi6" }, { 2, 0xde, AMD, 0x380, "rsmi7" },
		{ 3, 0xc1, AMD, 0x380, "rsmi0" }, { 3, 0xc6, AMD, 0x380, "rsmi1" } } },
	{ "the same without a driver's library", FOUR, "33110022", {
		{ 0, 0xd1, AMD, 0x380, NULL }, { 0, 0xd6, AMD, 0x380, NULL }, { 1, 0xc9, AMD, 0x380, NULL },
		{ 1, 0xce, AMD, 0x380, NULL }, { 2, 0xd9, AMD, 0x380, NULL }, { 2, 0xde, AMD, 0x380, NULL },
		{ 3, 0xc1, AMD, 0x380, NULL }, { 3, 0xc6, AMD, 0x380, NULL } } },
	{ "Perlmutter, Polaris", FOUR, "3210", {
		{ 0, 0xc1, NV, 0x302, "nvml3" }, { 1, 0x82, NV, 0x302, "nvml2" }, { 2, 0x41, NV, 0x302, "nvml1" },
		{ 3, 0x03, NV, 0x302, "nvml0" } } },
	{ "DGX A100: two at every other NUMA node", EIGHT, "33117755", {
		{ 1, 0x47, NV, 0x302, NULL }, { 1, 0x4e, NV, 0x302, NULL }, { 3, 0x07, NV, 0x302, NULL },
		{ 3, 0x0f, NV, 0x302, NULL }, { 5, 0xb7, NV, 0x302, NULL }, { 5, 0xbd, NV, 0x302, NULL },
		{ 7, 0x87, NV, 0x302, NULL }, { 7, 0x90, NV, 0x302, NULL } } },
	{ "JUWELS Booster", EIGHT, "3175", {
		{ 1, 0x44, NV, 0x302, NULL }, { 3, 0x03, NV, 0x302, NULL }, { 5, 0xc4, NV, 0x302, NULL },
		{ 7, 0x84, NV, 0x302, NULL } } },
	{ "the driver's numbers against the bus", FOUR, "0123", {
		{ 0, 0xc1, NV, 0x302, "nvml0" }, { 1, 0x82, NV, 0x302, "nvml1" }, { 2, 0x41, NV, 0x302, "nvml2" },
		{ 3, 0x03, NV, 0x302, "nvml3" } } },
	{ "one that the driver has lost", FOUR, "0-2", {
		{ 0, 0xc1, NV, 0x302, "nvml0" }, { 1, 0x82, NV, 0x302, NULL }, { 2, 0x41, NV, 0x302, "nvml2" } } },
	{ "two makers: those of which there are more", FOUR, "21", {
		{ 1, 0x82, NV, 0x302, NULL }, { 2, 0x41, NV, 0x302, NULL }, { 3, 0x03, AMD, 0x380, NULL } } },
	{ "two makers with as many: not known", FOUR, "", {
		{ 1, 0x82, NV, 0x302, "nvml0" }, { 3, 0x03, AMD, 0x380, "rsmi0" } } },
	{ "a display of NVIDIA, and one of a management controller", FOUR, "2", {
		{ 2, 0x41, NV, 0x300, "card1" }, { 0, 0x03, 0x1a03, 0x300, "card0" } } },
};

TEST(numbers_are_the_drivers)
{
	for (size_t r = 0; r < ROWS(numberings); r++) {
		char want[11] = "----------", of_shape[11] = "", of_step[11] = "";
		FREED(buf_free) struct buf xml;
		size_t n = 0;

		memcpy(want, numberings[r].numas, strlen(numberings[r].numas));
		while (n < 8 && numberings[r].gpus[n].vendor)
			n++;
		xml = xml_with(numberings[r].synthetic, numberings[r].gpus, n);
		numas_of_shape(&xml, 2, of_shape);
		numas_of_step(&xml, 2, of_step);
		if (strcmp(of_shape, want) || strcmp(of_step, want))
			fail_msg("%s: wanted %s, the snapshot has %s, a step %s", numberings[r].why, want, of_shape,
				 of_step);
	}
}

TESTS_MAIN(NULL, NULL)
