/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/gpu.h"
#include "bind/nic.h"
#include "table.h"
#include "topology.h"
#include "hwview/image.h"

/* --- nodes: two packages of four NUMA nodes of two cores, PUs 2k and 2k + 1 in NUMA node k --- */

#define NODE "pack:2 numa:4 l3:1(size=33554432) core:2 pu:1"

enum { MACHINE = -1, PACKAGE_0 = -2, PACKAGE_1 = -3, CORE_4 = -4 };	/* else a NUMA node */

struct device {
	int at;
	const char *bus, *card, *speed, *inside;
};

#define OS(type, name, infos) "<object type=\"OSDev\" gp_index=\"@\"" \
	" name=\"" name "\" osdev_type=\"" type "\">" infos "</object>\n"
#define NET(name, infos) OS("2", name, infos)
#define FABRIC(name, infos) OS("3", name, infos)
#define INFO(name, value) "<info name=\"" name "\" value=\"" value "\"/>"
#define UP INFO("Port1State", "4") INFO("Port1LID", "0x12")
#define DOWN INFO("Port1State", "1") INFO("Port1LID", "0xffff")
#define ROCE INFO("Port1State", "4") INFO("Port1LID", "0x0")
#define CARD(class, vendor, device) class " [" vendor ":" device "] [15b3:0001] 00"
#define IB(k, where, bus, infos) { where, bus, CARD("0207", "15b3", "101b"), "15.75", \
	FABRIC("mlx5_" k, infos) NET("ib" k, "") }
#define HFI(k, where, bus, infos) { where, bus, CARD("0208", "8086", "24f0"), "15.75", \
	FABRIC("hfi1_" k, infos) NET("hsi" k, "") }
#define CXI(k, where, bus) { where, bus, CARD("0200", "17db", "0501"), "31.5", FABRIC("cxi" k, "") NET("hsn" k, "") }
#define ETH(name, where, bus, speed) { where, bus, CARD("0200", "8086", "1521"), speed, NET(name, "") }

static const struct device none[] = { { MACHINE, NULL, NULL, NULL, NULL } };
#define END { 0, NULL, NULL, NULL, NULL }

/* As four adapters are put into a machine of two packages: the kernel found them in another order than the bus has. */
static const struct device four_ib[] = {
	IB("1", 1, "0000:43:00.0", UP), IB("0", 3, "0000:04:00.0", UP), IB("3", 5, "0000:c3:00.0", UP),
	IB("2", 7, "0000:83:00.0", UP), ETH("eno1", 4, "0000:e1:00.0", "0.5"), END };
static const struct device two_and_two_hfi[] = {
	HFI("0", PACKAGE_0, "0000:18:00.0", UP), HFI("1", PACKAGE_0, "0000:3b:00.0", UP),
	HFI("2", PACKAGE_1, "0000:86:00.0", UP), HFI("3", PACKAGE_1, "0000:af:00.0", UP), END };
static const struct device one_in_3[] = { IB("0", 3, "0000:61:00.0", UP), END };
static const struct device one_hfi[] = { HFI("0", 3, "0000:61:00.0", UP), END };
static const struct device second_hfi_alone[] = { HFI("0", 0, "0000:18:00.0", DOWN), HFI("1", 3, "0000:61:00.0", UP),
						  END };
static const struct device hfi_far[] = { HFI("0", 4, "0000:18:00.0", UP), HFI("1", 5, "0000:61:00.0", UP), END };
static const struct device renamed_hfi[] = {
	{ 0, "0000:18:00.0", CARD("0208", "8086", "24f0"), "15.75", FABRIC("opap24s0", UP) },
	{ 4, "0000:af:00.0", CARD("0208", "8086", "24f0"), "15.75", FABRIC("opap175s0", UP) }, END };
static const struct device one_down[] = { IB("0", 0, "0000:18:00.0", DOWN), IB("1", 4, "0000:61:00.0", UP), END };
static const struct device all_down[] = { IB("0", 0, "0000:18:00.0", DOWN), END };
static const struct device crossed_ib[] = { IB("1", 0, "0000:18:00.0", UP), IB("0", 4, "0000:61:00.0", UP), END };
static const struct device four_cxi[] = {
	CXI("3", 4, "0000:dd:00.0"), CXI("0", 2, "0000:c1:00.0"), CXI("1", 0, "0000:c6:00.0"),
	CXI("2", 6, "0000:d1:00.0"), END };
/* hwloc 2 shows their interfaces only. */
static const struct device two_hsn[] = {
	{ 0, "0000:c1:00.0", CARD("0200", "17db", "0501"), "31.5", NET("hsn1", "") },
	{ 4, "0000:c6:00.0", CARD("0200", "17db", "0501"), "31.5", NET("hsn0", "") },
	ETH("eno1", 4, "0000:e1:00.0", "0.5"), END };
static const struct device two_efa[] = {
	{ 0, "0000:10:00.0", CARD("0200", "1d0f", "efa0"), "15.75", FABRIC("rdmap16s0", UP) },
	{ 4, "0000:90:00.0", CARD("0200", "1d0f", "efa0"), "15.75", FABRIC("rdmap144s0", UP) },
	{ 4, "0000:91:00.0", CARD("0200", "1d0f", "ec20"), "15.75", NET("ens5", "") }, END };
static const struct device ethernet[] = {
	ETH("eth0", 1, "0000:02:00.0", "3.9"), ETH("eth1", 6, "0000:82:00.0", "3.9"),
	ETH("eno3", 6, "0000:83:00.0", "0.5"), END };
static const struct device begins_another[] = { ETH("eth1", 1, "0000:02:00.0", "3.9"),
						ETH("eth10", 6, "0000:82:00.0", "3.9"), END };
static const struct device roce_beside[] = {
	{ 2, "0000:21:00.0", CARD("0200", "15b3", "101b"), "31.5",
	  FABRIC("mlx5_0", ROCE) NET("enp33s0f0", INFO("Port", "1")) },
	{ 2, "0000:21:00.1", CARD("0207", "15b3", "101b"), "31.5", FABRIC("mlx5_1", UP) NET("ib0", INFO("Port", "1")) },
	END };
static const struct device roce_left_out[] = {
	IB("0", 0, "0000:18:00.0", UP), IB("1", 4, "0000:61:00.0", UP),
	{ 2, "0000:71:00.0", CARD("0200", "15b3", "101b"), "31.5", FABRIC("mlx5_2", ROCE) NET("enp113s0f0", "") },
	END };
static const struct device at_a_core[] = { IB("0", CORE_4, "0000:61:00.0", UP), END };
static const struct device roce_only[] = {
	{ 2, "0000:21:00.0", CARD("0200", "15b3", "101b"), "31.5",
	  FABRIC("mlx5_0", ROCE) NET("enp33s0f0", INFO("Port", "1")) }, END };
static const struct device second_port[] = {
	{ MACHINE, "0000:0a:00.0", CARD("0c06", "15b3", "634a"), "2.0",
	  NET("ib0", INFO("Port", "1")) NET("ib1", INFO("Port", "2"))
	  FABRIC("mlx4_0", INFO("Port1State", "1") INFO("Port1LID", "0x0")
			   INFO("Port2State", "4") INFO("Port2LID", "0x3")) }, END };
static const struct device which_port[] = {
	{ MACHINE, "0000:0a:00.0", CARD("0c06", "15b3", "634a"), "2.0",
	  NET("eth2", "") NET("ib0", "") FABRIC("mlx4_0", "") }, END };
#define GID(subnet) UP INFO("Port1GID0", subnet ":248a:0703:001e:39fe")
static const struct device two_subnets[] = {
	IB("0", 0, "0000:18:00.0", GID("fe80:0000:0000:0000")), IB("1", 4, "0000:61:00.0", GID("fe80:0000:0000:0001")),
	END };
static const struct device one_subnet[] = {
	IB("0", 0, "0000:18:00.0", GID("fe80:0000:0000:0001")), IB("1", 4, "0000:61:00.0", GID("fe80:0000:0000:0001")),
	END };
static const struct device no_network[] = {
	/* a management controller's display */
	{ 0, "0000:03:00.0", CARD("0300", "1a03", "2000"), "0", OS("1", "card0", "") },
	/* and its USB port */
	{ 0, "0000:00:14.0", CARD("0c03", "8086", "a1af"), "0", NET("enp0s20f0u8u3c2", "") },
	{ 1, "0000:5e:00.0", CARD("0108", "144d", "a824"), "3.9", OS("0", "nvme0n1", "") }, END };
static const struct device unknown[] = { { 0, "0000:0b:00.0", CARD("0200", "1137", "0043"), "0",
					   FABRIC("usnic_0", ROCE) NET("eth4",
	"") }, END };
static const struct device mixed[] = {
	HFI("0", 0, "0000:18:00.0", UP), IB("0", 4, "0000:86:00.0", UP), HFI("1", 4, "0000:af:00.0", UP), END };
static const struct device every_kind[] = {
	HFI("0", 0, "0000:18:00.0", UP), HFI("1", 4, "0000:19:00.0", UP), IB("0", 0, "0000:20:00.0", UP),
	IB("1", 4, "0000:21:00.0", UP),
	CXI("0", 0, "0000:30:00.0"), CXI("1", 4, "0000:31:00.0"),
	{ 0, "0000:40:00.0", CARD("0200", "1d0f", "efa0"), "15.75", FABRIC("efa_0", UP) }, END };

#define LATENCY "<distances2 type=\"NUMANode\" nbobjs=\"8\" kind=\"5\" name=\"NUMALatency\" indexing=\"os\">" \
	"<indexes length=\"16\">0 1 2 3 4 5 6 7 </indexes>%s</distances2>\n"

/* Within a package two pairs; 32 between packages, but NUMA node 4 is close to 0. */
static unsigned latency(unsigned from, unsigned to)
{
	if (from == to)
		return 10;
	if (from + to == 4 && from * to == 0)
		return 15;
	return from / 4 != to / 4 ? 32 : from / 2 != to / 2 ? 20 : 12;
}

static void insert(char **xml, const char *before, const char *text)
{
	struct buf b = {0};

	buf_add(&b, *xml, before - *xml);
	buf_puts(&b, text);
	buf_puts(&b, before);
	free(*xml);
	*xml = b.data;
}

static const char *nth(const char *xml, const char *start, int count)
{
	const char *at = xml;

	for (int i = 0; i <= count && at; i++)
		at = strstr(i ? at + 1 : at, start);
	assert_non_null(at);
	return at;
}

static const char *behind(const char *xml, const char *start, int count)
{
	return strchr(nth(xml, start, count), '\n') + 1;
}

static const char *place(const char *xml, int at)
{
	if (at == MACHINE)
		return strstr(xml, "<object type=\"Package\"");	/* infos come first */
	if (at == CORE_4)
		return behind(xml, "<object type=\"Core\"", 4);
	return at < 0 ? behind(xml, "<object type=\"Package\"", at == PACKAGE_1)
		      : behind(xml, "<object type=\"L3Cache\"", at);
}

static void plug(char **xml, const struct device *d, unsigned gp)
{
	FREED(buf_free) struct buf b = {0};

	buf_printf(&b,
		   "<object type=\"PCIDev\" gp_index=\"%u\" pci_busid=\"%s\" pci_type=\"%s\" pci_link_speed=\"%s\">\n",
		   gp, d->bus, d->card, d->speed);
	for (const char *c = d->inside; *c; c++) {
		if (*c == '@')
			buf_printf(&b, "%u", ++gp);
		else
			buf_add(&b, c, 1);
	}
	buf_puts(&b, "</object>\n");
	insert(xml, place(*xml, d->at), b.data);
}

static void add_latency(char **xml)
{
	FREED(buf_free) struct buf b = {0};
	char line[32], text[2048];

	for (unsigned from = 0; from < 8; from++) {
		size_t n = 0;

		for (unsigned to = 0; to < 8; to++)
			n += snprintf(line + n, sizeof(line) - n, "%u ", latency(from, to));
		buf_printf(&b, "<u64values length=\"%zu\">%s</u64values>", n, line);
	}
	snprintf(text, sizeof(text), LATENCY, b.data);
	insert(xml, strstr(*xml, "</topology>"), text);
}

static hwloc_topology_t loaded(const char *xml)
{
	hwloc_topology_t t = image_load(xml, strlen(xml), true, &err);

	if (!t)
		fail_msg("%s\n%s", err.text, xml);
	return t;
}

static hwloc_topology_t node_on(const char *synthetic, const struct device *devices, bool distances)
{
	OWNED(free) char *xml = synthetic_xml(synthetic).data;
	hwloc_topology_t t;

	for (unsigned i = 0; devices[i].bus; i++)
		plug(&xml, &devices[i], 1000 + 10 * i);
	if (distances)
		add_latency(&xml);
	t = loaded(xml);
	return t;
}

static hwloc_topology_t node_of(const struct device *devices, bool distances)
{
	return node_on(NODE, devices, distances);
}

/* --- which devices there are --- */

static const char *const kinds[NIC_KINDS] = { "psm2", "verbs", "cxi", "efa", "ethernet", "other" };

static char *listing(const struct nics *n)
{
	struct buf b = {0};

	buf_puts(&b, "");
	for (unsigned i = 0; i < n->n; i++) {
		const struct nic *d = &n->nic[i];
		char near[64];

		hwloc_bitmap_list_snprintf(near, sizeof(near), d->near);
		buf_printf(&b, "%s%s/%s %02x:%02x.%x %s %d:%u%s near %s", i ? "; " : "", d->name, d->net, d->bus,
			   d->slot, d->function, kinds[d->kind], d->unit, d->port, d->active ? "" : " down", near);
	}
	if (n->others)
		buf_printf(&b, "; %u others", n->others);
	return b.data;
}

static const struct {
	const struct device *devices;
	const char *want;
} finds[] = {
	{ none, "" },
	{ no_network, "" },
	{ four_ib, "mlx5_0/ib0 04:00.0 verbs 0:1 near 6-7; mlx5_1/ib1 43:00.0 verbs 1:1 near 2-3; "
		"mlx5_2/ib2 83:00.0 verbs 2:1 near 14-15; mlx5_3/ib3 c3:00.0 verbs 3:1 near 10-11" },
	{ two_and_two_hfi, "hfi1_0/hsi0 18:00.0 psm2 0:1 near 0-7; hfi1_1/hsi1 3b:00.0 psm2 1:1 near 0-7; "
		"hfi1_2/hsi2 86:00.0 psm2 2:1 near 8-15; hfi1_3/hsi3 af:00.0 psm2 3:1 near 8-15" },
	{ renamed_hfi, "opap24s0/ 18:00.0 psm2 -1:1 near 0-1; opap175s0/ af:00.0 psm2 -1:1 near 8-9" },
	{ one_down, "mlx5_0/ib0 18:00.0 verbs 0:1 down near 0-1; mlx5_1/ib1 61:00.0 verbs 1:1 near 8-9" },
	{ two_hsn, "/hsn1 c1:00.0 cxi -1:1 near 0-1; /hsn0 c6:00.0 cxi -1:1 near 8-9" },
	{ two_efa, "rdmap16s0/ 10:00.0 efa -1:1 near 0-1; rdmap144s0/ 90:00.0 efa -1:1 near 8-9" },
	{ ethernet, "/eth0 02:00.0 ethernet -1:1 near 2-3; /eth1 82:00.0 ethernet -1:1 near 12-13" },
	{ roce_beside, "mlx5_1/ib0 21:00.1 verbs 1:1 near 4-5; 1 others" },
	{ roce_only, "mlx5_0/enp33s0f0 21:00.0 verbs 0:1 near 4-5" },
	{ second_port, "mlx4_0/ib1 0a:00.0 verbs 0:2 near 0-15" },
	{ which_port, "mlx4_0/ 0a:00.0 verbs 0:1 near 0-15" },
	{ at_a_core, "mlx5_0/ib0 61:00.0 verbs 0:1 near 4-5" },
	{ unknown, "usnic_0/eth4 0b:00.0 other -1:1 near 0-1" },
	{ mixed, "hfi1_0/hsi0 18:00.0 psm2 0:1 near 0-1; mlx5_0/ib0 86:00.0 verbs 0:1 near 8-9; hfi1_1/hsi1 af:00.0"
	  " psm2 1:1 near 8-9"
		},
};

/* Also where the firmware interleaves memory among packages, as one NUMA node. */
TEST(is_near_no_other_package)
{
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = node_on("[numa] pack:2 l3:2 core:2 pu:1", two_and_two_hfi,
								   false);
	FREED(nics_free) struct nics n;
	OWNED(free) char *got;

	assert_int_equal(nics_find(t, &n, NULL), 0);
	got = listing(&n);
	assert_string_equal(got, "hfi1_0/hsi0 18:00.0 psm2 0:1 near 0-3; hfi1_1/hsi1 3b:00.0 psm2 1:1 near 0-3; "
			    "hfi1_2/hsi2 86:00.0 psm2 2:1 near 4-7; hfi1_3/hsi3 af:00.0 psm2 3:1 near 4-7");
}

TEST(finds_devices)
{
	for (size_t i = 0; i < ROWS(finds); i++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = node_of(finds[i].devices, false);
		FREED(nics_free) struct nics n;
		OWNED(free) char *got;

		assert_int_equal(nics_find(t, &n, NULL), 0);
		got = listing(&n);
		assert_string_equal(got, finds[i].want);
	}
}

/* One PU a core. */
static const struct {
	const char *labels;
	unsigned first, last;
	const char *want;
} described[] = {
	{ "hfi1_0", 0, 7, "hfi1_0 near" },
	{ "hfi1_0,hfi1_2", 2, 3, "hfi1_0 near,hfi1_2 far" },
	{ "hfi1_2,hfi1_1", 5, 9, "hfi1_2 near 2 of 5 cores,hfi1_1 near 3 of 5 cores" },
	{ "eth7", 0, 1, "eth7" },
	{ "", 0, 1, "" },
};

TEST(tells_how_near_they_are)
{
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = node_of(two_and_two_hfi, false);
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t pus = hwloc_bitmap_alloc();
	FREED(nics_free) struct nics n;

	assert_int_equal(nics_find(t, &n, NULL), 0);
	for (size_t i = 0; i < ROWS(described); i++) {
		char got[128];

		hwloc_bitmap_zero(pus);
		hwloc_bitmap_set_range(pus, described[i].first, described[i].last);
		nics_describe(t, &n, described[i].labels, pus, got, sizeof(got));
		assert_string_equal(got, described[i].want);
	}
}

/* --- what is near --- */

static const struct {
	const char *node;
	unsigned domains;
} memories[] = {
	{ "core:4 pu:1", 1 },
	{ "pack:2 numa:4 core:2 pu:1", 8 },
	{ "pack:2 [numa] [numa] core:2 pu:1", 2 },		/* of two kinds */
	/* as of a GPU: local to all cores, and no nearer to one than to another */
	{ "[numa] pack:2 [numa] core:4 pu:1", 2 },
};

TEST(divides_by_the_innermost_memory)
{
	for (size_t i = 0; i < ROWS(memories); i++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = synthetic_load(memories[i].node);
		FREED(nic_domains_free) struct nic_domains d;

		assert_int_equal(nic_domains_find(t, &d, NULL), 0);
		assert_int_equal(d.n, memories[i].domains);
	}
}

/* --- who gets which --- */

enum { MAX_TASKS = 16 };

struct tasks {
	hwloc_bitmap_t mask[MAX_TASKS];
	unsigned n;
};

/* "0,1;2-3;": a task each, the last without a PU that anybody knows of. */
static struct tasks tasks_of(const char *words)
{
	struct tasks k = { .n = 0 };
	char copy[256], *rest = copy;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *one; (one = strsep(&rest, ";")); k.n++) {
		k.mask[k.n] = bitmap_of(one);
	}
	return k;
}

static void tasks_free(struct tasks *k)
{
	while (k->n)
		hwloc_bitmap_free(k->mask[--k->n]);
}

static char *choice(const int *chosen, unsigned n)
{
	struct buf b = {0};

	for (unsigned i = 0; i < n; i++) {
		buf_puts(&b, i ? " " : "");
		if (chosen[i] < 0)
			buf_puts(&b, "-");
		else
			buf_printf(&b, "%d", chosen[i]);
	}
	return b.data;
}

static const struct {
	const struct device *devices;
	bool distances;
	const char *tasks, *want;
} choices[] = {
	{ none, false, "0;1", "- -" },
	{ all_down, false, "0;1", "- -" },
	/* local ones; of two as near, the one with less to do, then the first */
	{ four_ib, false, "2;6;10;14", "1 0 3 2" },
	{ four_ib, false, "0;4;8;12", "0 1 2 3" },
	{ four_ib, false, "2;3;0;4", "1 1 0 0" },
	{ four_ib, true, "0;1;4;5", "1 1 0 0" },
	{ four_ib, true, "8;12", "3 2" },
	{ two_and_two_hfi, false, "0;2;4;6;8;10;12;14", "0 1 0 1 2 3 2 3" },
	/* as even as can be, though the first have a choice and the last have none */
	{ four_ib, false, "0;4;6;6;8;12;14;14", "1 1 0 0 3 3 2 2" },
	{ four_ib, false, "0-7;0-7;2;2;6;0", "0 0 1 1 0 1" },
	{ two_and_two_hfi, false, "0-15;0-15;0-15;0-15;0-15", "0 1 2 3 0" },
	/* the only one, remote for most */
	{ one_in_3, false, "0;2;4;6;8;10;12;14", "0 0 0 0 0 0 0 0" },
	/* of remote ones the nearest, in the package or as the firmware tells */
	{ four_ib, false, "0;8", "0 2" },
	{ hfi_far, false, "0;0", "0 1" },
	{ hfi_far, true, "0;0", "0 0" },
	{ hfi_far, true, "2;2", "0 1" },
	/* not those that are down */
	{ one_down, false, "0;1", "1 1" },
	/* a task of several NUMA nodes is near to what is near to any of them */
	{ four_ib, false, "0-3;8-11;4-7", "1 3 0" },
	{ four_ib, false, "0-7;0-7", "0 1" },
	/* of a task of which nothing is known, nothing */
	{ four_ib, false, "2;", "1 -" },
};

TEST(chooses_devices)
{
	for (size_t i = 0; i < ROWS(choices); i++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = node_of(choices[i].devices, choices[i].distances);
		FREED(tasks_free) struct tasks k = tasks_of(choices[i].tasks);
		FREED(nics_free) struct nics n;
		struct nic_request a = { .topology = t, .nics = &n, .masks = k.mask, .nlocal = k.n };
		int chosen[MAX_TASKS];
		OWNED(free) char *got;

		assert_int_equal(nics_find(t, &n, NULL), 0);
		assert_int_equal(nics_choose(&a, n.n ? n.nic[0].kind : NIC_VERBS, chosen, NULL), 0);
		got = choice(chosen, k.n);
		if (strcmp(got, choices[i].want))
			fail_msg("row %zu (%s): %s, not %s", i, choices[i].tasks, got, choices[i].want);
	}
}

/* --- machines with GPUs --- */

/*
 * As tests/data/gpu.md has them, of those whose network devices have a published place: "g3a" is a GPU at NUMA node 3
 * behind PCI switch a, "n0" a network device at NUMA node 0 behind none, in the order of PCI bus ids. want: the device
 * of each of so many tasks, which have the GPUs in order.
 */
static const struct {
	const char *name, *synthetic, *devices;
	unsigned ntasks;
	const char *want;
} sites[] = {
	{ "DGX A100", "Package:2 Group:4 [numa] L3:4 Core:4 PU:2",
	  "g3a g3a n3a n3a g1b g1b n1b n1b n0 n0 g7c g7c n7c n7c g5d g5d n5d n5d n4 n4", 8, "0 1 2 3 6 7 8 9" },
	{ "DGX A100", "Package:2 Group:4 [numa] L3:4 Core:4 PU:2",
	  "g3a g3a n3a n3a g1b g1b n1b n1b n0 n0 g7c g7c n7c n7c g5d g5d n5d n5d n4 n4", 4, "0 2 6 8" },
	{ "DGX H100", "Package:2 [numa] L3:1 Core:56 PU:2",
	  "g0a n0a n0 n0 g0b n0b g0c n0c g0d n0d g1e n1e n1 n1 g1f n1f g1g n1g g1h n1h", 8, "0 3 4 5 6 9 10 11" },
	{ "DGX H100", "Package:2 [numa] L3:1 Core:56 PU:2",
	  "g0a n0a n0 n0 g0b n0b g0c n0c g0d n0d g1e n1e n1 n1 g1f n1f g1g n1g g1h n1h", 2, "0 6" },
	{ "JUWELS Booster", "Package:2 Group:4 [numa] L3:2 Core:3 PU:2", "g3a n3a g1b n1b g7c n7c g5d n5d", 4,
	  "0 1 2 3" },
	{ "Leonardo Booster", "Package:1 L3:1 Group:2 [numa] Core:16 PU:1", "g0a n0a g0b n0b g0c n0c g0d n0d", 4,
	  "0 1 2 3" },
	{ "Perlmutter", "Package:1 Group:4 [numa] L3:2 Core:8 PU:2", "n0 n1 n2 n3 g3 g2 g1 g0", 4, "3 2 1 0" },
	/* Two devices for four GPUs: those at NUMA nodes 3 and 1 share them evenly. */
	{ "Polaris", "Package:1 Group:4 [numa] L3:2 Core:4 PU:2", "n0 n2 g3 g2 g1 g0", 4, "1 1 0 0" },
	{ "LUMI-G", "Package:1 Group:4 [numa] L3:2 Core:8 PU:2", "g3 g3 n3 g1 g1 n1 g0 g0 n0 g2 g2 n2", 8,
	  "0 0 1 1 2 2 3 3" },
};

#define GPU_CLASS "0302 [10de:20b0] [10de:144e] a1"

/* A switch has as many ports as devices are behind it, a bridge each, as in hardware. */
static void plug_bridged(struct buf *b, const char *word, unsigned bus, unsigned *gp)
{
	bool gpu = *word == 'g';

	buf_printf(b, "<object type=\"Bridge\" gp_index=\"%u\" bridge_type=\"1-1\" depth=\"2\" bridge_pci=\"0000:"
		   "[%02x-%02x]\" pci_busid=\"0000:01:%02x.0\" pci_type=\"0604 [1000:c010] [1000:a096] b0\" "
		   "pci_link_speed=\"31.5\">\n", (*gp)++, bus, bus, bus);
	buf_printf(b, "<object type=\"PCIDev\" gp_index=\"%u\" pci_busid=\"0000:%02x:00.0\" pci_type=\"%s\" "
		   "pci_link_speed=\"31.5\">\n", (*gp)++, bus, gpu ? GPU_CLASS : CARD("0207", "15b3", "101b"));
	if (!gpu)
		buf_printf(b, "<object type=\"OSDev\" gp_index=\"%u\" name=\"mlx5_%u\" osdev_type=\"3\"/>\n", (*gp)++,
			   bus);
	buf_puts(b, "</object></object>\n");
}

/* The devices of one switch, or one device without: a root port each, behind the host bridge of a NUMA node. */
static void plug_port(char **xml, const char *devices, const char *first, unsigned *gp)
{
	unsigned bus = 0x10;
	FREED(buf_free) struct buf b = {0};
	char copy[512], *rest = copy;
	bool begun = false;

	buf_printf(&b, "<object type=\"Bridge\" gp_index=\"%u\" bridge_type=\"0-1\" depth=\"0\" "
		   "bridge_pci=\"0000:[00-ff]\">\n", (*gp)++);
	buf_printf(&b, "<object type=\"Bridge\" gp_index=\"%u\" bridge_type=\"1-1\" depth=\"1\" bridge_pci=\"0000:"
		   "[01-ff]\" pci_busid=\"0000:00:01.0\" pci_type=\"0604 [1022:1483] [1022:1453] 00\" "
		   "pci_link_speed=\"31.5\">\n", (*gp)++);
	snprintf(copy, sizeof(copy), "%s", devices);
	for (char *word; (word = strsep(&rest, " ")); bus++) {
		begun |= devices + (word - copy) == first;
		if (begun && (word[2] ? word[2] == first[2] : devices + (word - copy) == first))
			plug_bridged(&b, word, bus, gp);
	}
	buf_puts(&b, "</object></object>\n");
	insert(xml, nth(*xml, "<object type=\"NUMANode\"", first[1] - '0'), b.data);
}

static hwloc_topology_t site_of(const char *synthetic, const char *devices)
{
	char seen[27] = "", *xml = synthetic_xml(synthetic).data;
	unsigned gp = 100000;
	hwloc_topology_t t;

	for (const char *at = devices; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL) {
		char letter = at[2] >= 'a' && at[2] <= 'z' ? at[2] : 0;

		if (letter && strchr(seen, letter))
			continue;
		if (letter)
			strncat(seen, &letter, 1);
		plug_port(&xml, devices, at, &gp);
	}
	t = loaded(xml);
	free(xml);
	return t;
}

static unsigned count_of(const char *devices, char kind)
{
	unsigned n = 0;

	for (const char *c = devices; *c; c++)
		n += *c == kind && (c == devices || c[-1] == ' ');
	return n;
}

/* Tasks with so many GPUs each, in order, and the PUs near to these. */
static char *devices_of_tasks(hwloc_topology_t t, unsigned ngpus, unsigned ntasks)
{
	static const char all[] = "0,1,2,3,4,5,6,7";
	char list[sizeof(all)];
	hwloc_bitmap_t near[MAX_TASKS], masks[MAX_TASKS];
	uint64_t which[MAX_TASKS] = {0};
	struct nic_request a = { .topology = t, .masks = masks, .nlocal = ntasks };
	OWNED(free) unsigned *beside;
	int chosen[MAX_TASKS];
	FREED(nics_free) struct nics n;
	char *got;

	snprintf(list, sizeof(list), "%.*s", (int) (2 * ngpus - 1), all);
	for (unsigned i = 0; i < ngpus; i++)
		near[i] = hwloc_bitmap_alloc();
	assert_ok(gpu_localities(t, list, near, &err));
	for (unsigned k = 0; k < ntasks; k++)
		masks[k] = hwloc_bitmap_alloc();
	for (unsigned i = 0; i < ngpus; i++) {
		which[i * ntasks / ngpus] |= 1u << i;
		hwloc_bitmap_or(masks[i * ntasks / ngpus], masks[i * ntasks / ngpus], near[i]);
	}
	assert_int_equal(nics_find(t, &n, NULL), 0);
	beside = nics_beside_gpus(t, &n, list, which, ntasks);
	a.nics = &n;
	a.beside = beside;
	assert_int_equal(nics_choose(&a, NIC_VERBS, chosen, NULL), 0);
	got = choice(chosen, ntasks);
	for (unsigned i = 0; i < ngpus; i++)
		hwloc_bitmap_free(near[i]);
	for (unsigned k = 0; k < ntasks; k++)
		hwloc_bitmap_free(masks[k]);
	return got;
}

TEST(devices_are_beside_the_gpus)
{
	for (size_t i = 0; i < ROWS(sites); i++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = site_of(sites[i].synthetic, sites[i].devices);
		OWNED(free) char *got = devices_of_tasks(t, count_of(sites[i].devices, 'g'), sites[i].ntasks);

		if (strcmp(got, sites[i].want))
			fail_msg("%s, %u tasks: %s, not %s", sites[i].name, sites[i].ntasks, got, sites[i].want);
	}
}

/* --- the paper's algorithms --- */

static const struct {
	const struct device *devices;
	int hfival;
	const char *here;
	int pick;
	int single;			/* algorithm 1 */
	const char *rails[3];		/* algorithm 2, by PSM2_MULTIRAIL */
} papers[] = {
	{ two_and_two_hfi, -1, "0", 1, 1, { "", "0-3", "0-1" } },	/* several near: spread */
	{ two_and_two_hfi, -1, "8", 2, 2, { "", "0-3", "2-3" } },
	{ two_and_two_hfi, 3, "0", 1, 3, { "", "0-3", "0-1" } },	/* the user's, near or not */
	{ two_and_two_hfi, 0, "8", 2, 0, { "", "0-3", "2-3" } },	/* 0 is one, too */
	{ mixed, -1, "0", 2, 0, { "", "0,2", "0" } },			/* one near: that one, whatever was picked */
	{ mixed, -1, "8", 0, 1, { "", "0,2", "2" } },			/* its unit, not where it stands */
	{ mixed, -1, "4", 2, 1, { "", "0,2", "" } },			/* none near: a remote one, and no multi-rail */
	{ one_hfi, -1, "0", 0, 0, { "", "0", "" } },			/* one on the node */
	{ one_hfi, -1, "6", 0, 0, { "", "0", "0" } },
	{ second_hfi_alone, -1, "0", 1, 0, { "", "1", "" } },		/* n == 1 says 0, to the letter */
	{ none, -1, "0", 0, -1, { "", "", "" } },
	{ four_ib, -1, "0", 0, -1, { "", "", "" } },			/* none that PSM2 drives */
};

TEST(follows_the_paper)
{
	for (size_t i = 0; i < ROWS(papers); i++) {
		OWNED(hwloc_topology_destroy) hwloc_topology_t t = node_of(papers[i].devices, false);
		FREED(tasks_free) struct tasks k = tasks_of(papers[i].here);
		OWNED(hwloc_bitmap_free) hwloc_bitmap_t rails = hwloc_bitmap_alloc();
		FREED(nics_free) struct nics n;
		char got[32];

		assert_int_equal(nics_find(t, &n, NULL), 0);
		if (psm2_unit(&n, papers[i].hfival, k.mask[0], papers[i].pick) != papers[i].single)
			fail_msg("row %zu: unit %d", i, psm2_unit(&n, papers[i].hfival, k.mask[0], papers[i].pick));
		for (int multirail = 0; multirail < 3; multirail++) {
			int count = psm2_rails(&n, multirail, k.mask[0], rails);

			hwloc_bitmap_list_snprintf(got, sizeof(got), rails);
			if (strcmp(got, papers[i].rails[multirail]) || count != hwloc_bitmap_weight(rails))
				fail_msg("row %zu, PSM2_MULTIRAIL=%d: %s (%d)", i, multirail, got, count);
		}
	}
}

/* --- what is exported --- */

struct env {
	const char *users;	/* names that are set, with a space on either side */
	struct buf set;
};

static bool env_has(void *env, const char *name)
{
	const struct env *v = env;
	char users[80], ours[80];

	snprintf(users, sizeof(users), " %s ", name);
	snprintf(ours, sizeof(ours), " %s=", name);
	return strstr(v->users, users) || (v->set.len && strstr(v->set.data, ours));
}

static void env_set(void *env, const char *name, const char *value)
{
	if (!env_has(env, name))
		buf_printf(&((struct env *) env)->set, " %s=%s", name, value);
}

static char *exported(const struct device *devices, const char *tasks, unsigned local, const char *option,
		      const char *users, bool bound)
{
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = node_of(devices, false);
	struct tasks k = tasks_of(tasks);
	struct env env = { .users = users };
	struct bind_vars v = { env_has, env_set, &env };
	struct bind_request r = {0};
	FREED(buf_free) struct buf told = {0};
	FREED(nics_free) struct nics n;
	struct nic_request a = { t, &n, &r, k.mask, local, k.n, bound, NULL };

	assert_int_equal(bind_request_set(&r, "topo-nic", option, NULL), 0);
	assert_int_equal(nics_find(t, &n, NULL), 0);
	assert_int_equal(nics_export(&a, &v, &told, NULL), 0);
	buf_printf(&env.set, "|%s", told.len ? told.data : "");
	tasks_free(&k);
	return env.set.data;
}

#define INTEL " I_MPI_MULTIRAIL=1 I_MPI_OFI_NIC_AFFINITY=cpu"
#define RAILS(n) "UCX_MAX_RNDV_RAILS=" n " UCX_MAX_EAGER_RAILS=" n
#define EACH "0;2;4;6;8;10;12;14"

static const struct {
	const struct device *devices;
	const char *tasks;
	unsigned local;
	const char *option, *users, *want;
} exports[] = {
	{ none, "0;1", 0, "all,strict", "", "|" },
	{ all_down, "0", 0, "one,strict", "", "|" },
	{ four_ib, "2;", 1, "one,strict", "", "|" },
	{ unknown, "0", 0, "all,strict", "", "|usnic_0" },

	/* PSM2: wrong by itself with two and two */
	{ two_and_two_hfi, EACH, 5, "auto", "", "HFI_UNIT=3" INTEL "|hfi1_3" },
	{ two_and_two_hfi, EACH, 0, "one", "", "HFI_UNIT=0" INTEL "|hfi1_0" },
	{ two_and_two_hfi, EACH, 5, "one,strict", "", "HFI_UNIT=3 FI_OPX_HFI_SELECT=3" INTEL "|hfi1_3" },
	{ two_and_two_hfi, EACH, 5, "local", "", "PSM2_MULTIRAIL=2 PSM2_MULTIRAIL_MAP=2:1,3:1" INTEL "|hfi1_2,hfi1_3" },
	{ two_and_two_hfi, EACH, 5, "all", "", "PSM2_MULTIRAIL=1 PSM2_MULTIRAIL_MAP=0:1,1:1,2:1,3:1"
		INTEL "|hfi1_0,hfi1_1,hfi1_2,hfi1_3" },
	{ hfi_far, "0;8", 0, "local", "", "HFI_UNIT=1" INTEL "|hfi1_0,hfi1_1" },
	{ one_hfi, EACH, 0, "auto", "", "HFI_UNIT=0|hfi1_0" },
	/* the algorithm's 0 would be the adapter that is down */
	{ second_hfi_alone, "0", 0, "auto", "", "|hfi1_1" },
	/* numbers that nobody knows */
	{ renamed_hfi, "0", 0, "one,strict", "", INTEL "|opap24s0" },
	{ renamed_hfi, "0", 0, "all", "", "PSM2_MULTIRAIL=1" INTEL "|opap24s0,opap175s0" },

	/* verbs: UCX and PSM3 choose well, MVAPICH2 and Cray's MPI do not */
	{ four_ib, EACH, 3, "auto", "", "MPICH_OFI_NIC_POLICY=NUMA" INTEL
		" MV2_RAIL_SHARING_POLICY=FIXED_MAPPING MV2_PROCESS_TO_RAIL_MAPPING=1:1:0:0:3:3:2:2|mlx5_0" },
	{ four_ib, "0;0-3", 0, "auto", "",
	  INTEL " MV2_RAIL_SHARING_POLICY=FIXED_MAPPING MV2_PROCESS_TO_RAIL_MAPPING=0:1|mlx5_0" },
	{ four_ib, "2;", 0, "auto", "", INTEL "|mlx5_1" },
	{ one_in_3, "0;6", 0, "auto", "", "|mlx5_0" },
	{ one_in_3, "0;6", 0, "one,strict", "",
		"PSM3_NIC=mlx5_0 FI_VERBS_DEVICE_NAME=mlx5_0 FI_VERBS_IFACE=ib0 UCX_NET_DEVICES=mlx5_0:1 "
		RAILS("1") " MV2_IBA_HCA=mlx5_0|mlx5_0" },
	{ second_port, "0", 0, "one,strict", "",
		"PSM3_NIC=mlx4_0 FI_VERBS_DEVICE_NAME=mlx4_0 FI_VERBS_IFACE=ib1 UCX_NET_DEVICES=mlx4_0:2 "
		RAILS("1") " MV2_IBA_HCA=mlx4_0|mlx4_0" },
	{ four_ib, "0;8", 1, "local,strict", "",
		"PSM3_MULTIRAIL=2 PSM3_MULTIRAIL_MAP=mlx5_2:1,mlx5_3:1 UCX_NET_DEVICES=mlx5_2:1,mlx5_3:1 "
		RAILS("2") " MPICH_OFI_NIC_POLICY=NUMA" INTEL " MV2_IBA_HCA=mlx5_2:mlx5_3|mlx5_2,mlx5_3" },
	{ four_ib, "0;8", 1, "all", "", "PSM3_MULTIRAIL=1 " RAILS("4") " MPICH_OFI_NIC_POLICY=NUMA"
	  INTEL "|mlx5_0,mlx5_1,mlx5_2,mlx5_3"
		},
	/* places in a list, where lists may be sorted one way or another, or hold others */
	{ crossed_ib, "0;8", 0, "auto", "", "MPICH_OFI_NIC_POLICY=NUMA" INTEL "|mlx5_1" },
	{ one_down, "0;8", 0, "auto", "", "|mlx5_1" },
	{ roce_beside, "0;8", 0, "auto", "", "|mlx5_1" },
	{ roce_left_out, "0;8", 0, "auto", "", "MPICH_OFI_NIC_POLICY=NUMA" INTEL "|mlx5_0" },

	/* several fabrics */
	{ two_subnets, "0;8", 0, "all,strict", "", "|" },
	{ one_subnet, "0;8", 1, "one", "", RAILS("1") " MPICH_OFI_NIC_POLICY=NUMA" INTEL
		" MV2_RAIL_SHARING_POLICY=FIXED_MAPPING MV2_PROCESS_TO_RAIL_MAPPING=0:1|mlx5_1" },

	/*
	 * Slingshot: the list where the adapters are known, the policy where they are not and tasks keep to a NUMA node
	 */
	{ four_cxi, "0;4;8;12;5", 2, "auto", "", "MPICH_OFI_NIC_POLICY=USER MPICH_OFI_NIC_MAPPING=0:1,4;1:0;2:3;3:2"
	  INTEL "|cxi3" },
	{ four_cxi, "0-7;8", 1, "one,strict", "", "FI_CXI_DEVICE_NAME=cxi3 MPICH_OFI_NIC_POLICY=USER"
	  " MPICH_OFI_NIC_MAPPING=0:0;3:1"
		INTEL "|cxi3" },
	{ two_hsn, "0;8", 0, "one,strict", "", "MPICH_OFI_NIC_POLICY=NUMA" INTEL "|hsn1" },
	{ two_hsn, "0-3;8", 0, "one,strict", "", INTEL "|hsn1" },

	{ two_efa, "0;8", 1, "auto", "", INTEL "|rdmap144s0" },
	{ two_efa, "0;8", 1, "all,strict", "", "FI_EFA_IFACE=rdmap16s0,rdmap144s0" INTEL "|rdmap16s0,rdmap144s0" },

	{ ethernet, "2;12", 1, "auto", "", "|eth1" },
	{ ethernet, "2;12", 1, "one,strict", "", "FI_TCP_IFACE=eth1 UCX_NET_DEVICES=eth1 " RAILS("1") "|eth1" },
	{ ethernet, "2;12", 1, "all,strict", "", "UCX_NET_DEVICES=eth0,eth1 " RAILS("2") "|eth0,eth1" },
	/* libfabric takes eth1 for eth10, too */
	{ begins_another, "2;12", 0, "one,strict", "", "UCX_NET_DEVICES=eth1 " RAILS("1") "|eth1" },
	{ begins_another, "2;12", 1, "one,strict", "", "FI_TCP_IFACE=eth10 UCX_NET_DEVICES=eth10 " RAILS("1")
	  "|eth10" },

	/* who set one variable of a stack has chosen for that stack; the others go on */
	{ two_and_two_hfi, EACH, 5, "one,strict", " HFI_UNIT ", "FI_OPX_HFI_SELECT=3" INTEL "|" },
	{ two_and_two_hfi, EACH, 5, "all,strict", " HFI_SELECTION_ALG FI_OPX_HFI_SELECT ", INTEL "|" },
	{ two_and_two_hfi, EACH, 5, "auto", " PSM2_MULTIRAIL I_MPI_MULTIRAIL ", "|" },
	{ four_ib, "0;8", 1, "one", " UCX_NET_DEVICES MV2_IBA_HCA MPICH_OFI_NUM_NICS PSM3_NIC ", INTEL "|" },
	{ mixed, "0;8", 0, "auto", " HFI_UNIT ", INTEL "|mlx5_0" },
	{ mixed, "0;8", 1, "one", "", "HFI_UNIT=1" INTEL " " RAILS("1") "|hfi1_1,mlx5_0" },
};

/* Without the space before the first. */
static const char *trimmed(const char *text)
{
	return text + (*text == ' ');
}

TEST(exports_variables)
{
	for (size_t i = 0; i < ROWS(exports); i++) {
		char *got = exported(exports[i].devices, exports[i].tasks, exports[i].local, exports[i].option,
				     exports[i].users, false);

		if (strcmp(trimmed(got), trimmed(exports[i].want)))
			fail_msg("row %zu (%s):\n%s\nnot\n%s", i, exports[i].option, got, exports[i].want);
		free(got);
	}
}

TEST(speaks_of_cpus_only_when_bound)
{
	char *got = exported(one_hfi, "0", 0, "auto", "", true);

	assert_string_equal(trimmed(got), "HFI_UNIT=0 HFI_NO_CPUAFFINITY=1|hfi1_0");
	free(got);
	got = exported(one_hfi, "0", 0, "auto", " HFI_FORCE_CPUAFFINITY ", true);
	assert_string_equal(trimmed(got), "HFI_UNIT=0|hfi1_0");
	free(got);
	got = exported(one_in_3, "0", 0, "auto", "", true);
	assert_string_equal(trimmed(got), "PSM3_NO_AFFINITY=1 PSM3_NO_CPUAFFINITY=1|mlx5_0");
	free(got);
}

/* NCCL finds the devices of each GPU; and no variable twice. */
TEST(restricts_no_nccl)
{
	static const char *const options[] = { "auto", "one", "local", "all", "auto,strict", "one,strict",
					       "local,strict", "all,strict"
		};

	for (size_t i = 0; i < ROWS(options); i++) {
		OWNED(free) char *got = exported(every_kind, "0;8", 0, options[i], "", true);

		assert_null(strstr(got, "NCCL"));
		assert_non_null(strstr(got, i == 0 ? "I_MPI_MULTIRAIL=1" : "HFI_NO_CPUAFFINITY=1"));
	}
}

/* --- real machines --- */

static const struct {
	const char *file, *devices, *tasks, *chosen;
} real[] = {
	/* 24 NUMA nodes with latencies, one InfiniBand adapter, six ports of Ethernet for management */
	{ "192em64t-24n8c2t.xml", "mlx4_0/ib0 01:00.0 verbs 0:1 near 48-55,240-247", "0;48;191", "0 0 0" },
	/* eight ports, two for each package */
	{ "96em64t-4n4d3ca2co-pci.xml", "/eth0 02:00.0 ethernet -1:1 near 0-23; /eth1 02:00.1 ethernet -1:1 near 0-23; "
		"/eth2 32:00.0 ethernet -1:1 near 24-47; /eth3 32:00.1 ethernet -1:1 near 24-47; "
		"/eth4 62:00.0 ethernet -1:1 near 48-71; "
		"/eth5 62:00.1 ethernet -1:1 near 48-71; "
		"/eth6 92:00.0 ethernet -1:1 near 72-95; /eth7 92:00.1 ethernet -1:1 near 72-95",
		"0;1;24;48;49;50;72", "0 1 2 4 5 4 6" },
	{ "32em64t-2n8c2t-pci-wholeio.xml", "mlx5_0/ib0 04:00.0 verbs 0:1 near 8-15,24-31", "0;8", "0 0" },
	{ "16intel64-manyVFs.xml", "usnic_0/eth4 0b:00.0 other -1:1 near 0-7; usnic_1/eth5 0c:00.0 other -1:1 near"
	  " 0-7; "
		"usnic_2/eth6 88:00.0 other -1:1 near 8-15", "0;1;8;9", "0 1 2 2" },
	{ "8em64t-2p2ca2co-nonodesets.v1tov2.xml", "mlx4_0/ib0 0a:00.0 verbs 0:1 near 0-7", "0;7", "0 0" },
	{ "8intel64-4n2t-memattrs.xml", "", "0", "-" },
};

static void check_real(size_t row)
{
	char path[128];
	FREED(tasks_free) struct tasks k = tasks_of(real[row].tasks);
	FREED(buf_free) struct buf xml = {0};
	int chosen[MAX_TASKS];
	OWNED(hwloc_topology_destroy) hwloc_topology_t t;
	FREED(nics_free) struct nics n;
	OWNED(free) char *devices, *got;

	snprintf(path, sizeof(path), CORPUS "%s", real[row].file);
	corpus_read(*cached(path), &xml);
	t = loaded(xml.data);
	assert_int_equal(nics_find(t, &n, NULL), 0);
	devices = listing(&n);
	assert_string_equal(devices, real[row].devices);
	assert_int_equal(nics_choose(&(struct nic_request){ .topology = t, .nics = &n, .masks = k.mask, .nlocal = k.n },
				     n.n ? n.nic[0].kind : NIC_VERBS, chosen, NULL), 0);
	got = choice(chosen, k.n);
	assert_string_equal(got, real[row].chosen);
}

TEST(knows_real_machines)
{
	for (size_t i = 0; i < ROWS(real); i++)
		check_real(i);
}

TESTS_MAIN(NULL, NULL)
