/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <hwloc.h>
#include <hwloc/diff.h>

#include "table.h"
#include "topology.h"
#include "hwxml/canon.h"
#include "hwcmp/compare.h"
#include "hwcmp/hwdiff.h"
#include "hwview/machine.h"

/* --- a machine with devices, and edits of it --- */

#define NODE "pack:2 numa:2(memory=68719476736) l3:1(size=33554432) core:8 pu:1"
#define PU_ONLY "pu:4"
#define SMT "pack:2 numa:1 l3:1 core:4 pu:2"

static char *exported(const char *synthetic)
{
	return synthetic_xml(synthetic).data;
}

/* The text with `len` bytes at `at` replaced. Frees the old one. */
static char *spliced(char *xml, const char *at, size_t len, const char *with)
{
	struct buf b = {0};

	buf_add(&b, xml, at - xml);
	buf_puts(&b, with);
	buf_puts(&b, at + len);
	free(xml);
	return b.data;
}

static char *found(char *xml, const char *what)
{
	char *at = strstr(xml, what);

	if (!at)
		fail_msg("there is no %s in\n%.3000s", what, xml);
	return at;
}

/* From the line that has this to the end of the object that begins there: hwloc indents. */
static size_t object_len(const char *line)
{
	size_t indent = strspn(line, " ");
	const char *end = strchr(line, '\n') + 1;
	char close[80];

	if (strchr(line, '>')[-1] == '/')
		return end - line;
	snprintf(close, sizeof(close), "\n%*s</object>\n", (int)indent, "");
	return strstr(line, close) + strlen(close) - line;
}

enum edit_kind { NONE, REPLACE, REMOVE, INSERT };

/*
 * REPLACE: the first `from` after `where` by `to`. REMOVE: the object that has `where`. INSERT: `to` before the line of
 * `where`.
 */
struct edit {
	enum edit_kind kind;
	const char *where, *from, *to;
};

static char *edited(char *xml, const struct edit *edit)
{
	char *at = found(xml, edit->where), *line = at;

	while (line > xml && line[-1] != '\n')
		line--;
	switch (edit->kind) {
	case REPLACE:
		return spliced(xml, found(at, edit->from), strlen(edit->from), edit->to);
	case REMOVE:
		return spliced(xml, line, object_len(line), "");
	case INSERT:
		return spliced(xml, line, 0, edit->to);
	case NONE:
		break;
	}
	return xml;
}

#define PCI(gp, bus, card, speed, inside) \
	"<object type=\"Bridge\" gp_index=\"9" gp "0\" bridge_type=\"0-1\" depth=\"0\" " \
	"bridge_pci=\"0000:[" bus "-" bus "]\"><object type=\"PCIDev\" gp_index=\"9" gp "1\" " \
	"pci_busid=\"0000:" bus ":00.0\" " \
	"pci_type=\"" card "\" pci_link_speed=\"" speed "\">" inside "</object>\n</object>\n"
#define OSDEV(gp, type, name, more) \
	"<object type=\"OSDev\" gp_index=\"9" gp "\" name=\"" name "\" osdev_type=\"" type "\">" more "</object>"
#define INFO(name, value) "<info name=\"" name "\" value=\"" value "\"/>\n"
#define CONNECTX5 "0207 [15b3:1017] [15b3:0003] 00"
#define CONNECTX6 "0207 [15b3:101b] [15b3:0003] 00"
#define TESLA "0302 [10de:15f8] [10de:118f] a1"

/* In package 0: mlx5_0 and the GPU cuda0, in package 1: mlx5_1. */
static const struct edit devices[] = {
	{ INSERT, "type=\"Package\" os_index=\"0\"", NULL, INFO("OSRelease", "5.14.0-1") INFO("HostName", "n1") },
	{ INSERT, "type=\"L3Cache\" cpuset=\"0x000000ff\"", NULL, INFO("CPUModel", "Xeon A") },
	{ INSERT, "type=\"L3Cache\" cpuset=\"0x00ff0000\"", NULL, INFO("CPUModel", "Xeon A")
	  PCI("2", "81", CONNECTX5, "7.876923", OSDEV("22", "3", "mlx5_1", "")) },
	{ INSERT, "type=\"L3Cache\" cpuset=\"0x000000ff\"", NULL,
	  PCI("1", "41", CONNECTX5, "7.876923", OSDEV("12", "3", "mlx5_0",
						      INFO("NodeGUID", "0001")) OSDEV("13", "2", "ib0", ""))
	  PCI("3", "43", TESLA, "15.753846", OSDEV("32", "5", "cuda0",
						   INFO("GPUModel", "Tesla T4")) OSDEV("33", "1", "nvml0", "")) },
};

static char *machine(const char *synthetic)
{
	char *xml = exported(synthetic);

	for (size_t i = 0; !strcmp(synthetic, NODE) && i < ROWS(devices); i++)
		xml = edited(xml, &devices[i]);
	return xml;
}

static struct tree *tree_of(const char *xml, const char *name)
{
	struct tree *t = tree_parse(xml, strlen(xml), name, &err);

	if (!t)
		fail_msg("%s\n%.6000s", err.text, xml);
	return t;
}

static char *sentences(const struct tree *a, const struct tree *b)
{
	FREED(changes_free) struct changes c;
	struct buf out = {0};

	assert_ok(compare_trees(a, b, &c, &err));
	buf_puts(&out, "");
	for (size_t i = 0; i < c.n; i++)
		buf_printf(&out, "%s %s|%s\n", severity_name(c.list[i].severity),
			   change_direction_name(c.list[i].direction), c.list[i].words);
	return out.data;
}

#define NO_CORE(n) { REMOVE, "<object type=\"Core\" os_index=\"" n "\"", NULL, NULL }
#define CPUS(was, is) { REPLACE, "type=\"Machine\"", " cpuset=\"" was, " cpuset=\"" is }
#define ALL_CPUS(was, is) { REPLACE, "type=\"Machine\"", "complete_cpuset=\"" was, "complete_cpuset=\"" is }
#define DISTANCES(values) \
	"<distances2 type=\"NUMANode\" nbobjs=\"4\" kind=\"5\" name=\"NUMALatency\" indexing=\"os\">" \
	"<indexes length=\"8\">0 1 2 3 </indexes><u64values length=\"10\">" values "</u64values></distances2>\n"
#define MEMATTR(first, second) "<memattr name=\"Speed\" flags=\"1\">" \
	"<memattr_value target_obj_type=\"PCIDev\" target_obj_gp_index=\"911\" value=\"" first "\"/>" \
	"<memattr_value target_obj_type=\"PCIDev\" target_obj_gp_index=\"921\" value=\"" second "\"/></memattr>\n"

static const struct row {
	const char *name, *synthetic;
	struct edit both[2], edits[8];	/* of both documents, then of the second */
	const char *there, *back;	/* the changes to the second, and from it: each ended by a newline */
} rows[] = {
	{ "itself", NODE, {{0}}, {{0}}, "", "" },
	{ "gp_index", NODE, {{0}}, {{ REPLACE, "mlx5_1", "gp_index=\"", "gp_index=\"7" }}, "", "" },
	{ "memory", NODE, {{0}}, {{ REPLACE, "type=\"NUMANode\" os_index=\"3\"", "68719476736", "51539607552" }},
	  "capacity gone|NUMA node 3: memory 64 GiB -> 48 GiB\n",
	  "capacity extra|NUMA node 3: memory 48 GiB -> 64 GiB\n" },
	{ "some pages of memory", NODE, {{0}}, {{ REPLACE, "type=\"NUMANode\" os_index=\"3\"", "68719476736",
						  "68719472640" }},
	  "identity changed|NUMA node 3: memory 68719476736 -> 68719472640 bytes\n",
	  "identity changed|NUMA node 3: memory 68719472640 -> 68719476736 bytes\n" },
	{ "memory of several", NODE, {{0}}, {{ REPLACE, "os_index=\"1\"", "68719476736", "34359738368" },
	  { REPLACE, "type=\"NUMANode\" os_index=\"2\"", "68719476736", "34359738300" }},
	  "capacity gone|NUMA nodes 1-2: memory 64 GiB -> 32 GiB\n",
	  "capacity extra|NUMA nodes 1-2: memory 32 GiB -> 64 GiB\n" },
	{ "NIC", NODE, {{0}}, {{ REMOVE, "0000:81:00.0", NULL, NULL }}, "capacity gone|mlx5_1 gone\n",
	  "capacity extra|mlx5_1 new\n" },
	{ "NIC with two names", NODE, {{ REPLACE, "name=\"mlx5_1\"", "</object>",
	  "</object><object type=\"OSDev\" gp_index=\"977\" name=\"ib1\" "
	  "osdev_type=\"2\"/>" }}, {{ REMOVE, "0000:81:00.0", NULL, NULL }}, "capacity gone|mlx5_1 gone (ib1)\n",
	  "capacity extra|mlx5_1 new (ib1)\n" },
	{ "GPU", NODE, {{0}}, {{ REMOVE, "0000:43:00.0", NULL, NULL }}, "capacity gone|cuda0 gone (Tesla T4, nvml0)\n",
	  "capacity extra|cuda0 new (Tesla T4, nvml0)\n" },
	{ "another card", NODE, {{0}}, {{ REPLACE, "0000:81:00.0", CONNECTX5, CONNECTX6 }},
	  "capacity gone|mlx5_1 gone\ncapacity extra|mlx5_1 new\n", "capacity gone|mlx5_1 gone\n"
								    "capacity extra|mlx5_1 new\n" },
	{ "no driver", NODE, {{0}}, {{ REPLACE, "pci_busid=\"0000:81:00.0\"", OSDEV("22", "3", "mlx5_1", ""), "" }},
	  "capacity gone|mlx5_1 gone (PCI 0000:81:00.0 remains)\n",
	  "capacity extra|mlx5_1 new (PCI 0000:81:00.0 was present before)\n" },
	{ "one name of a GPU less", NODE, {{0}}, {{ REPLACE, "cuda0", OSDEV("33", "1", "nvml0", ""), "" }},
	  "wiring gone|nvml0 gone (PCI 0000:43:00.0 remains)\n",
	  "wiring extra|nvml0 new (PCI 0000:43:00.0 was present before)\n" },
	{ "renamed", NODE, {{0}}, {{ REPLACE, "mlx5_0", "\"ib0\"", "\"hsi0\"" }},
	  "wiring changed|ib0: name ib0 -> hsi0\n", "wiring changed|hsi0: name hsi0 -> ib0\n" },
	{ "names swapped", NODE, {{0}}, {{ REPLACE, "mlx5_0", "mlx5_0", "mlx5_x" },
					 { REPLACE, "mlx5_1", "mlx5_1", "mlx5_0" },
	  { REPLACE, "mlx5_x", "mlx5_x", "mlx5_1" }},
	  "wiring changed|mlx5_0: name mlx5_0 -> mlx5_1\nwiring changed|mlx5_1: name mlx5_1 -> mlx5_0\n",
	  "wiring changed|mlx5_1: name mlx5_1 -> mlx5_0\nwiring changed|mlx5_0: name mlx5_0 -> mlx5_1\n" },
	{ "another bus", NODE, {{0}}, {{ REPLACE, "pci_busid=\"0000:81:00.0\"", "0000:81", "0000:82" }},
	  "wiring changed|mlx5_1: bus 0000:81:00.0 -> 0000:82:00.0\n",
	  "wiring changed|mlx5_1: bus 0000:82:00.0 -> 0000:81:00.0\n" },
	{ "moved", NODE, {{0}}, {{ REMOVE, "0000:41:00.0", NULL, NULL }, { INSERT, "0000:81:00.0", NULL,
	  PCI("1", "c1", CONNECTX5, "7.876923", OSDEV("12", "3", "mlx5_0",
						      INFO("NodeGUID", "0001")) OSDEV("13", "2", "ib0", "")) }},
	  "wiring changed|mlx5_0: moved from package 0 to package 1\n",
	  "wiring changed|mlx5_0: moved from package 1 to package 0\n" },
	{ "core offline", NODE, {{0}}, { NO_CORE("17"), CPUS("0xffffffff", "0xfffdffff") },
	  "capacity gone|core 17 offline\n", "capacity extra|core 17 online\n" },
	{ "core gone", NODE, {{0}}, { NO_CORE("17"), CPUS("0xffffffff", "0xfffdffff"),
				      ALL_CPUS("0xffffffff", "0xfffdffff") },
	  "capacity gone|core 17 gone\n", "capacity extra|core 17 new\n" },
	{ "cores offline", NODE, {{0}}, { NO_CORE("3"), NO_CORE("16"), NO_CORE("17"), NO_CORE("18"), NO_CORE("19"),
	  CPUS("0xffffffff", "0xfff0fff7") }, "capacity gone|cores 3,16-19 offline\n",
	  "capacity extra|cores 3,16-19 online\n" },
	{ "package gone", NODE, {{0}}, {{ REMOVE, "type=\"Package\" os_index=\"1\"", NULL, NULL },
					CPUS("0xffffffff", "0x0000ffff"),
	  ALL_CPUS("0xffffffff", "0x0000ffff") }, "capacity gone|package 1 gone\n", "capacity extra|package 1 new\n" },
	{ "package offline", NODE, {{0}}, {{ REMOVE, "type=\"Package\" os_index=\"1\"", NULL, NULL }, CPUS("0xffffffff",
	  "0x0000ffff") },
	  "capacity gone|package 1 offline\n", "capacity extra|package 1 online\n" },
	{ "NUMA node gone", NODE, {{0}}, {{ REMOVE, "type=\"NUMANode\" os_index=\"1\"", NULL, NULL }},
	  "capacity gone|NUMA node 1 gone (64 GiB)\n", "capacity extra|NUMA node 1 new (64 GiB)\n" },
	{ "one thread of a core", SMT, {{0}}, {{ REMOVE, "type=\"PU\" os_index=\"3\"", NULL, NULL },
					       CPUS("0x0000ffff", "0x0000fff7") },
	  "capacity gone|PU 3 offline\n", "capacity extra|PU 3 online\n" },
	{ "no cores at all", PU_ONLY, {{0}}, {{ REMOVE, "type=\"PU\" os_index=\"3\"", NULL, NULL },
					      CPUS("0x0000000f", "0x00000007") },
	  "capacity gone|PU 3 offline\n", "capacity extra|PU 3 online\n" },
	{ "numbered anew", SMT, {{0}}, {{ REPLACE, "type=\"PU\" os_index=\"1\"", "\"1\"", "\"20\"" },
	  { REPLACE, "type=\"PU\" os_index=\"2\"", "\"2\"", "\"1\"" }, { REPLACE, "type=\"PU\" os_index=\"20\"",
									 "\"20\"", "\"2\"" }},
	  "wiring changed|package 0: cores and PUs are numbered differently\n",
	  "wiring changed|package 0: cores and PUs are numbered differently\n" },
	{ "cache", NODE, {{0}}, {{ REPLACE, "type=\"L3Cache\"", "33554432", "16777216" }},
	  "capacity gone|L3 cache 0: size 32 MiB -> 16 MiB\n", "capacity extra|L3 cache 0: size 16 MiB -> 32 MiB\n" },
	{ "a cache by some bytes", NODE, {{0}}, {{ REPLACE, "type=\"L3Cache\"", "33554432", "33554431" }},
	  "capacity gone|L3 cache 0: size 33554432 -> 33554431 bytes\n",
	  "capacity extra|L3 cache 0: size 33554431 -> 33554432 bytes\n" },
	{ "link speed", NODE, {{0}}, {{ REPLACE, "0000:41:00.0", "7.876923", "3.938462" }},
	  "wiring changed|PCI 0000:41:00.0: link speed 7.88 -> 3.94 GB/s\n",
	  "wiring changed|PCI 0000:41:00.0: link speed 3.94 -> 7.88 GB/s\n" },
	{ "a GPU that rests", NODE, {{0}}, {{ REPLACE, "0000:43:00.0", "15.753846", "3.938462" }},
	  "cosmetic changed|PCI 0000:43:00.0: link speed 15.75 -> 3.94 GB/s\n",
	  "cosmetic changed|PCI 0000:43:00.0: link speed 3.94 -> 15.75 GB/s\n" },
	{ "kernel", NODE, {{0}}, {{ REPLACE, "OSRelease", "5.14.0-1", "5.14.0-2" }},
	  "cosmetic changed|machine: OSRelease 5.14.0-1 -> 5.14.0-2\n",
	  "cosmetic changed|machine: OSRelease 5.14.0-2 -> 5.14.0-1\n" },
	{ "names", NODE, {{0}}, {{ REPLACE, "HostName", "n1", "n2" }, { REPLACE, "NodeGUID", "0001", "0002" }},
	  "identity changed|machine: HostName n1 -> n2\nidentity changed|mlx5_0: NodeGUID 0001 -> 0002\n",
	  "identity changed|machine: HostName n2 -> n1\nidentity changed|mlx5_0: NodeGUID 0002 -> 0001\n" },
	{ "an info that went", NODE, {{0}}, {{ REPLACE, "OSRelease", "OSRelease", "Other" }},
	  "cosmetic gone|machine: OSRelease 5.14.0-1 -> none\ncosmetic extra|machine: Other none -> 5.14.0-1\n",
	  "cosmetic extra|machine: OSRelease none -> 5.14.0-1\ncosmetic gone|machine: Other 5.14.0-1 -> none\n" },
	{ "processors", NODE, {{0}}, {{ REPLACE, "CPUModel", "Xeon A", "Xeon B" },
	  { REPLACE, "type=\"Package\" os_index=\"1\"", "Xeon A", "Xeon B" }},
	  "capacity changed|packages 0-1: CPUModel Xeon A -> Xeon B\n",
	  "capacity changed|packages 0-1: CPUModel Xeon B -> Xeon A\n" },
	{ "distances", NODE,
	  {{ INSERT, "</topology>", NULL, DISTANCES("10 21 21 21 21 10 21 21 21 21 10 21 21 21 21 10 ") }},
	  {{ REPLACE, "NUMALatency", "10 21 21 21 21", "10 31 21 21 31" }},
	  "wiring changed|distances NUMALatency: NUMA node 0 to NUMA node 1 21 -> 31 (and 1 more)\n",
	  "wiring changed|distances NUMALatency: NUMA node 0 to NUMA node 1 31 -> 21 (and 1 more)\n" },
	{ "distances of what is not there", NODE, {{0}}, {{ INSERT, "</topology>", NULL, DISTANCES("10 21 ") }},
	  "wiring extra|distances NUMALatency new\n", "wiring gone|distances NUMALatency gone\n" },
	{ "memory attribute", NODE, {{ INSERT, "</topology>", NULL, MEMATTR("5", "6") }},
	  {{ REPLACE, "memattr_value", "value=\"5\"", "value=\"4\"" }},
	  "wiring changed|memory attribute Speed: PCI 0000:41:00.0 5 -> 4\n",
	  "wiring changed|memory attribute Speed: PCI 0000:41:00.0 4 -> 5\n" },
	{ "memory attribute of what went", NODE, {{ INSERT, "</topology>", NULL, MEMATTR("5", "6") }},
	  {{ REMOVE, "0000:81:00.0", NULL, NULL }, { REPLACE, "memattr_value",
						     "<memattr_value target_obj_type=\"PCIDev\" "
	  "target_obj_gp_index=\"921\" value=\"6\"/>", "" }}, "capacity gone|mlx5_1 gone\n",
	  "capacity extra|mlx5_1 new\n" },
	{ "kinds of CPU", NODE, {{ INSERT, "</topology>", NULL, "<cpukind cpuset=\"0xffffffff\">"
				   INFO("FrequencyMaxMHz",
	  "3500") "</cpukind>\n" }},
	  {{ REPLACE, "FrequencyMaxMHz", "3500", "2000" }},
	  "wiring changed|CPU kind 0: FrequencyMaxMHz 3500 -> 2000\n",
	  "wiring changed|CPU kind 0: FrequencyMaxMHz 2000 -> 3500\n" },
	{ "an info of a kind twice, and one more", NODE,
	  {{ INSERT, "</topology>", NULL, "<cpukind cpuset=\"0xffffffff\">" INFO("A", "1") INFO("A", "2") INFO("B", "3")
	     "</cpukind>\n" }},
	  {{ REPLACE, "<cpukind", INFO("B", "3"), INFO("C", "3") INFO("A", "4") }},
	  "wiring changed|CPU kind 0: A none -> 4\nwiring changed|CPU kind 0: B 3 -> none\n"
	  "wiring changed|CPU kind 0: C none -> 3\n",
	  "wiring changed|CPU kind 0: A 4 -> none\nwiring changed|CPU kind 0: B none -> 3\n"
	  "wiring changed|CPU kind 0: C 3 -> none\n" },
	{ "allowed", NODE, {{0}}, {{ REPLACE, "type=\"Machine\"", "allowed_cpuset=\"0xffffffff",
				     "allowed_cpuset=\"0x0000ffff" }},
	  "capacity gone|machine: allowed PUs 32 -> 16\n", "capacity extra|machine: allowed PUs 16 -> 32\n" },
	{ "allowed without end", NODE, {{0}}, {{ REPLACE, "type=\"Machine\"", "allowed_cpuset=\"0xffffffff",
						 "allowed_cpuset=\"0xf...f" }},
	  "wiring changed|machine: allowed PUs 0xffffffff -> 0xf...f\n",
	  "wiring changed|machine: allowed PUs 0xf...f -> 0xffffffff\n" },
	{ "memory module", NODE, {{ INSERT, "type=\"Package\" os_index=\"1\"", NULL,
				    "    <object type=\"Misc\" gp_index=\"7777\">\n"
	  INFO("Type", "MemoryModule") INFO("DeviceLocation", "DIMM_A1") "    </object>\n" }},
	  {{ REMOVE, "type=\"Misc\"", NULL, NULL }},
	  "capacity gone|memory module DIMM_A1 gone\n", "capacity extra|memory module DIMM_A1 new\n" },
	{ "twins of a name", NODE, {{ INSERT, "type=\"Package\" os_index=\"1\"", NULL,
	  OSDEV("50", "0", "sda", "") "\n" OSDEV("51", "0", "sda", "") "\n" }},
	  {{ REPLACE, "\"sda\"", OSDEV("51", "0", "sda", "") "\n", "" }}, "capacity gone|sda gone\n",
	  "capacity extra|sda new\n" },
};

/* How many of its two directions are wrong. */
static int row_check(const struct row *row)
{
	OWNED(free) char *before = machine(row->synthetic), *after, *there, *back;
	struct tree *a, *b;
	int wrong;

	for (size_t i = 0; i < ROWS(row->both) && row->both[i].kind; i++)
		before = edited(before, &row->both[i]);
	after = strdup(before);
	for (size_t i = 0; i < ROWS(row->edits) && row->edits[i].kind; i++)
		after = edited(after, &row->edits[i]);
	a = tree_of(before, row->name);
	b = tree_of(after, row->name);
	there = sentences(a, b);
	back = sentences(b, a);
	wrong = !!strcmp(there, row->there) + !!strcmp(back, row->back);
	if (wrong)
		print_error("%s:\nthere\n%sback\n%s", row->name, there, back);
	tree_free(a);
	tree_free(b);
	return wrong;
}

TEST(changes_are_described_in_words)
{
	int wrong = 0;

	for (size_t i = 0; i < ROWS(rows); i++)
		wrong += row_check(&rows[i]);
	assert_int_equal(wrong, 0);
}

/* --- facts --- */

TEST(facts_have_severities)
{
	static const struct { const char *name; enum severity severity; } facts[] = {
		{ "HostName", SEVERITY_IDENTITY }, { "DMIProductSerial", SEVERITY_IDENTITY },
		{ "DMIProductUUID", SEVERITY_IDENTITY }, { "Address", SEVERITY_IDENTITY },
		{ "Port1GID0", SEVERITY_IDENTITY }, { "Port12LID", SEVERITY_IDENTITY },
		{ "pages 4096", SEVERITY_IDENTITY }, { "memory", SEVERITY_IDENTITY },
		{ "NVIDIAUUID", SEVERITY_IDENTITY }, { "OSRelease", SEVERITY_COSMETIC },
		{ "DMIBIOSVersion", SEVERITY_COSMETIC }, { "hwlocVersion", SEVERITY_COSMETIC },
		{ "CPUStepping", SEVERITY_COSMETIC }, { "never heard of", SEVERITY_COSMETIC },
		{ "", SEVERITY_COSMETIC }, { "Port1State", SEVERITY_WIRING }, { "ClusterMode", SEVERITY_WIRING },
		{ "CPUModel", SEVERITY_CAPACITY }, { "GPUModel", SEVERITY_CAPACITY },
		{ "CUDAGlobalMemorySize", SEVERITY_CAPACITY },
	};

	for (size_t i = 0; i < ROWS(facts); i++)
		if (compare_fact(facts[i].name) != facts[i].severity)
			fail_msg("%s: %s", facts[i].name, severity_name(compare_fact(facts[i].name)));
}

TEST(facts_become_changes)
{
	static const struct {
		const char *object, *name, *from, *to, *words;
		enum severity s;
		enum change_direction d;
	} facts[] = {
		{ "NUMA node 3", "memory", "68719476736", "51539607552", "NUMA node 3: memory 64 GiB -> 48 GiB",
		  SEVERITY_CAPACITY, CHANGE_GONE },
		{ "NUMA node 3", "memory", "68719476736", "68719472640",
		  "NUMA node 3: memory 68719476736 -> 68719472640 bytes", SEVERITY_IDENTITY, CHANGE_CHANGED },
		{ "NUMA node 3", "memory", "much", "little", "NUMA node 3: memory much -> little", SEVERITY_IDENTITY,
		  CHANGE_CHANGED },
		{ "machine", "OSRelease", "5.14.0-1", "5.14.0-2", "machine: OSRelease 5.14.0-1 -> 5.14.0-2",
		  SEVERITY_COSMETIC, CHANGE_CHANGED },
		{ "sda", "Size", "1000", "2000", "sda: Size 1000 -> 2000", SEVERITY_CAPACITY, CHANGE_EXTRA },
		{ "machine", "DMIBoardName", "", "X11 ", "machine: DMIBoardName none -> X11", SEVERITY_COSMETIC,
		  CHANGE_EXTRA },
		{ "machine", "DMIBoardName", "X11", "X11 ", "machine: DMIBoardName \"X11\" -> \"X11 \"",
		  SEVERITY_COSMETIC, CHANGE_CHANGED },
	};

	for (size_t i = 0; i < ROWS(facts); i++) {
		FREED(change_free) struct change c;

		assert_int_equal(change_of_fact(facts[i].object, facts[i].name, facts[i].from, facts[i].to, &c, NULL),
				 0);
		assert_string_equal(c.words, facts[i].words);
		assert_int_equal(c.severity, facts[i].s);
		assert_int_equal(c.direction, facts[i].d);
		assert_string_equal(c.from, facts[i].from);
	}
}

/* --- verdicts --- */

TEST(verdict_modes_tolerate_changes)
{
	static const struct { enum severity s; enum change_direction d; int verdicts[4]; } verdicts[] = {
		{ SEVERITY_CAPACITY, CHANGE_GONE, { SEVERITY_CAPACITY, SEVERITY_CAPACITY, -1, -1 } },
		{ SEVERITY_CAPACITY, CHANGE_EXTRA, { SEVERITY_CAPACITY, -1, SEVERITY_CAPACITY, -1 } },
		{ SEVERITY_SLOW, CHANGE_CHANGED, { SEVERITY_SLOW, SEVERITY_SLOW, SEVERITY_SLOW, -1 } },
		{ SEVERITY_WIRING, CHANGE_CHANGED, { 2, 2, 2, -1 } },
		{ SEVERITY_COSMETIC, CHANGE_CHANGED, { 1, 1, 1, -1 } },
		{ SEVERITY_IDENTITY, CHANGE_GONE, { -1, -1, -1, -1 } },
	};

	for (size_t i = 0; i < ROWS(verdicts); i++)
		for (int mode = VERIFY_STRICT; mode <= VERIFY_IGNORE; mode++) {
			struct change one = { .severity = verdicts[i].s, .direction = verdicts[i].d };

			assert_int_equal(changes_verdict(&(struct changes){ &one, 1 }, mode),
					 verdicts[i].verdicts[mode]);
		}
	assert_int_equal(changes_verdict(&(struct changes){0}, VERIFY_STRICT), -1);
}

TEST(names_are_read_back)
{
	static const char *const wrong[] = { "", "Capacity", "capacity ", "allow", "allow-extra,", "none" };
	static const char *const modes[] = { "strict", "allow-extra", "allow-missing", "ignore" };

	for (int s = 0; s < SEVERITY_COUNT; s++)
		assert_int_equal(severity_parse(severity_name(s)), s);
	for (size_t i = 0; i < ROWS(modes); i++)
		assert_int_equal(verify_mode_parse(modes[i]), i);
	for (size_t i = 0; i < ROWS(wrong); i++) {
		assert_int_equal(severity_parse(wrong[i]), -1);
		assert_int_equal(verify_mode_parse(wrong[i]), -1);
	}
}

/* --- hwloc's own --- */

static struct canon canonical(const char *xml)
{
	struct canon c;

	assert_ok(canon_parse(xml, strlen(xml), "test", &c, &err));
	return c;
}

TEST(hwloc_applies_its_diff)
{
	static const struct edit smaller = { REPLACE, "type=\"NUMANode\" os_index=\"3\"", "68719476736",
					     "51539607552" };
	OWNED(free) char *a = exported(NODE), *b = edited(strdup(a), &smaller), *name;
	FREED(canon_free) struct canon x = canonical(a), y = canonical(b);
	hwloc_topology_diff_t diff;
	FREED(buf_free) struct buf out = {0};
	OWNED(hwloc_topology_destroy) hwloc_topology_t t;

	assert_int_equal(hwdiff_xml(x.xml.data, x.xml.len, y.xml.data, y.xml.len, &out, NULL), 0);
	assert_int_equal(hwloc_topology_diff_load_xmlbuffer(out.data, out.len + 1, &diff, &name), 0);
	t = topology_of_xml(&x.xml);
	assert_int_equal(hwloc_topology_diff_apply(t, diff, 0), 0);
	assert_true(hwloc_get_obj_by_type(t, HWLOC_OBJ_NUMANODE, 3)->attr->numanode.local_memory == 51539607552);
	hwloc_topology_diff_destroy(diff);
}

TEST(reports_what_hwloc_cannot_express)
{
	OWNED(free) char *a = exported(SMT), *b = exported(PU_ONLY);
	FREED(canon_free) struct canon x = canonical(a), y = canonical(b);
	struct buf out = {0};
	struct err e = {""};

	assert_int_equal(hwdiff_xml(x.xml.data, x.xml.len, y.xml.data, y.xml.len, &out, &e), 1);
	assert_int_equal(hwdiff_xml(x.xml.data, x.xml.len, "no XML", 6, &out, &e), -1);
	assert_non_null(strstr(e.text, "hwloc"));
	assert_int_equal(out.len, 0);
}

TESTS_MAIN(NULL, NULL)
