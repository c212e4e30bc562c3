/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/nic.h"

#include "base/std.h"
#include "bind/gpu.h"

/* PCI classes (PCI Code and ID Assignment Specification). */
enum { CLASS_NETWORK = 0x02, CLASS_INFINIBAND = 0x0207 };

enum { VENDOR_CRAY = 0x17db, VENDOR_AMAZON = 0x1d0f };

/* Vendors with a single fabric, whatever the driver or udev names the device. */
static const struct {
	unsigned vendor;
	enum nic_kind kind;
} vendors[] = {
	{ VENDOR_CRAY, NIC_CXI },
	{ VENDOR_AMAZON, NIC_EFA },
};

/*
 * Adapters by their kernel driver's names, and by udev's (rdma-core, rdma_rename): InfiniBand, RoCE, iWARP, Omni-Path.
 */
static const struct {
	const char *prefix;
	enum nic_kind kind;
} drivers[] = {
	{ "hfi1_", NIC_PSM2 }, { "opap", NIC_PSM2 }, { "cxi", NIC_CXI }, { "efa_", NIC_EFA },
	{ "mlx5_", NIC_VERBS }, { "mlx4_", NIC_VERBS }, { "mthca", NIC_VERBS }, { "bnxt_re", NIC_VERBS },
		{ "irdma", NIC_VERBS },
	{ "i40iw", NIC_VERBS }, { "qedr", NIC_VERBS }, { "cxgb", NIC_VERBS }, { "hns_", NIC_VERBS },
		{ "ib", NIC_VERBS },
	{ "roce", NIC_VERBS }, { "iw", NIC_VERBS },
};

/* A device before management links are left out. */
struct nic_candidate {
	struct nic nic;
	bool fabric;
	bool roce;		/* verbs, not of the InfiniBand class and without a LID */
	float speed;		/* of its link, GB/s */
};

#if HWLOC_API_VERSION >= 0x00030000
#define INFO_COUNT(o) (o)->infos.count
#define INFO(o, i) (&(o)->infos.array[i])

/* To hwloc 3 a device of verbs is a network device, too. */
static bool osdev_is(hwloc_obj_t o, unsigned long type)
{
	const unsigned long types = o->attr->osdev.types;

	return types & type && (type == HWLOC_OBJ_OSDEV_OPENFABRICS || !(types & HWLOC_OBJ_OSDEV_OPENFABRICS));
}
#else
#define INFO_COUNT(o) (o)->infos_count
#define INFO(o, i) (&(o)->infos[i])

static bool osdev_is(hwloc_obj_t o, unsigned long type)
{
	return o->attr->osdev.type == type;
}
#endif

static hwloc_obj_t os_device(hwloc_obj_t pci, unsigned long type, hwloc_obj_t after)
{
	hwloc_obj_t o = after ? after->next_sibling : pci->io_first_child;

	while (o && (o->type != HWLOC_OBJ_OS_DEVICE || !osdev_is(o, type) || !o->name))
		o = o->next_sibling;
	return o;
}

static enum nic_kind kind_of(hwloc_obj_t pci, const char *adapter)
{
	for (size_t i = 0; i < sizeof(vendors) / sizeof(*vendors); i++)
		if (pci->attr->pcidev.vendor_id == vendors[i].vendor)
			return vendors[i].kind;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(*drivers); i++)
		if (!strncmp(adapter, drivers[i].prefix, strlen(drivers[i].prefix)))
			return drivers[i].kind;
	return NIC_OTHER;
}

/* hfi1_1, mlx5_0, cxi2: the driver's own names end in the unit number. udev's names have slot numbers. */
static int unit_of(const char *name)
{
	static const char *const own[] = { "hfi1_", "mlx5_", "mlx4_", "cxi" };

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
		const char *digits;

		if (strncmp(name, own[i], strlen(own[i])))
			continue;
		digits = name + strlen(own[i]);
		return *digits && strlen(digits) < 5 && !digits[strspn(digits, "0123456789")] ? atoi(digits) : -1;
	}
	return -1;
}

/*
 * hwloc's info of an OpenFabrics device: Port1State, Port2State; 4 is active (InfiniBand Architecture Specification,
 * PortState).
 */
static void read_ports(hwloc_obj_t adapter, struct nic_candidate *c)
{
	bool has_state = false;

	for (unsigned i = 0; i < INFO_COUNT(adapter); i++) {
		const struct hwloc_info_s *info = INFO(adapter, i);
		unsigned port;
		int end = 0;

		if (sscanf(info->name, "Port%uState%n", &port, &end) != 1 || !end || info->name[end])
			continue;
		if (!has_state)
			c->nic.active = false;
		has_state = true;
		if (atoi(info->value) == 4 && (!c->nic.active || port < c->nic.port)) {
			c->nic.active = true;
			c->nic.port = port;
		}
	}
}

static const char *port_info(hwloc_obj_t adapter, unsigned port, const char *what)
{
	char name[32];

	snprintf(name, sizeof(name), "Port%u%s", port, what);
	return hwloc_obj_get_info_by_name(adapter, name);
}

/* The interface of the active port: the only one, or the one whose "Port" info has that number. */
static void read_net(hwloc_obj_t pci, struct nic *n)
{
	hwloc_obj_t o = os_device(pci, HWLOC_OBJ_OSDEV_NETWORK, NULL);
	bool only = o && !os_device(pci, HWLOC_OBJ_OSDEV_NETWORK, o);

	for (; o; o = os_device(pci, HWLOC_OBJ_OSDEV_NETWORK, o)) {
		const char *port = hwloc_obj_get_info_by_name(o, "Port");

		if (!only && (!port || strtoul(port, NULL, 10) != n->port))
			continue;
		snprintf(n->net, sizeof(n->net), "%s", o->name);
		return;
	}
}

static bool candidate_read(hwloc_obj_t pci, struct nic_candidate *c)
{
	const struct hwloc_pcidev_attr_s *a = &pci->attr->pcidev;
	hwloc_obj_t adapter = os_device(pci, HWLOC_OBJ_OSDEV_OPENFABRICS, NULL);
	bool network = a->class_id >> 8 == CLASS_NETWORK && os_device(pci, HWLOC_OBJ_OSDEV_NETWORK, NULL);
	const char *gid, *lid = NULL;

	if (!adapter && !network)
		return false;
	*c = (struct nic_candidate){ .speed = a->linkspeed, .nic = { .domain = a->domain, .bus = a->bus, .slot = a->dev,
		.function = a->func, .kind = NIC_ETHERNET, .unit = -1, .port = 1, .active = true } };
	if (adapter) {
		snprintf(c->nic.name, sizeof(c->nic.name), "%s", adapter->name);
		c->nic.unit = unit_of(adapter->name);
		read_ports(adapter, c);
		gid = port_info(adapter, c->nic.port, "GID0");
		lid = port_info(adapter, c->nic.port, "LID");
		if (gid && strlen(gid) > sizeof(c->nic.subnet))
			snprintf(c->nic.subnet, sizeof(c->nic.subnet), "%.*s", (int) sizeof(c->nic.subnet) - 1, gid);
	}
	/* hwloc 2 has no OpenFabrics object for this vendor's adapters, only their network interfaces. */
	if (adapter || a->vendor_id == VENDOR_CRAY)
		c->nic.kind = kind_of(pci, c->nic.name);
	c->fabric = c->nic.kind != NIC_ETHERNET;
	c->roce = c->nic.kind == NIC_VERBS && a->class_id != CLASS_INFINIBAND && !(lid && strtoul(lid, NULL, 0));
	read_net(pci, &c->nic);
	return true;
}

/* The PUs local to a device, extended to whole NUMA nodes of its package. */
static hwloc_bitmap_t local_pus(hwloc_topology_t t, hwloc_obj_t pci, const struct nic_domains *d)
{
	hwloc_obj_t around = hwloc_get_non_io_ancestor_obj(t, pci), package = around;
	hwloc_bitmap_t near = hwloc_bitmap_dup(around->cpuset);

	while (package && package->type != HWLOC_OBJ_PACKAGE)
		package = package->parent;
	if (!near)
		return NULL;
	if (hwloc_bitmap_iszero(near))
		hwloc_bitmap_copy(near, hwloc_get_root_obj(t)->cpuset);
	for (unsigned i = 0; i < d->n; i++)
		if (hwloc_bitmap_intersects(d->node[i]->cpuset, around->cpuset) &&
		    (!package || hwloc_bitmap_isincluded(d->node[i]->cpuset, package->cpuset)))
			hwloc_bitmap_or(near, near, d->node[i]->cpuset);
	return near;
}

static int by_bus(const void *a, const void *b)
{
	const struct nic *x = a, *y = b;

	return COMPARE(x->domain, y->domain) ?: COMPARE(x->bus, y->bus) ?:
	       COMPARE(x->slot, y->slot) ?: COMPARE(x->function, y->function);
}

int nics_find(hwloc_topology_t t, struct nics *out, struct err *e)
{
	int most = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PCI_DEVICE);
	struct nic_candidate *all = calloc(most + 1, sizeof(*all));
	struct nics found = { .nic = calloc(most + 1, sizeof(*found.nic)) };
	struct nic_domains d = {0};
	bool failed = !all || !found.nic || nic_domains_find(t, &d, NULL), fabric = false, infiniband = false;
	hwloc_obj_t pci = NULL;
	float fastest = 0;
	unsigned n = 0;

	while (!failed && (pci = hwloc_get_next_pcidev(t, pci))) {
		struct nic_candidate *c = &all[n];

		if (!candidate_read(pci, c))
			continue;
		failed = !(c->nic.near = local_pus(t, pci, &d));
		n += !failed;
		fabric |= c->fabric;
		infiniband |= c->nic.kind == NIC_VERBS && c->nic.active && !c->roce;
		fastest = c->speed > fastest ? c->speed : fastest;
	}
	for (struct nic_candidate *c = all; c < all + n; c++) {
		bool is_data = fabric ? c->fabric && !(c->roce && infiniband) : c->speed >= fastest / 4;

		if (is_data && !failed) {
			found.nic[found.n++] = c->nic;
			continue;
		}
		found.others += c->fabric;
		hwloc_bitmap_free(c->nic.near);
	}
	nic_domains_free(&d);
	free(all);
	if (failed) {
		free(found.nic);
		return err_set(e, "out of memory");
	}
	qsort(found.nic, found.n, sizeof(*found.nic), by_bus);
	*out = found;
	return 0;
}

void nics_free(struct nics *n)
{
	for (unsigned i = 0; i < n->n; i++)
		hwloc_bitmap_free(n->nic[i].near);
	free(n->nic);
	*n = (struct nics){0};
}

const char *nic_label(const struct nic *n)
{
	return *n->name ? n->name : n->net;
}

const char *const nics_variables[] = {
	"UCX_NET_DEVICES", "FI_VERBS_DEVICE_NAME", "FI_VERBS_IFACE", "FI_CXI_DEVICE_NAME", "FI_EFA_IFACE",
	"FI_TCP_IFACE", "PSM3_NIC", "HFI_UNIT", "MV2_IBA_HCA", NULL,
};

/* "mlx5_0:1,mlx5_1:1", "mlx5_0:mlx5_1", or the number of a PSM2 device. */
static bool is_named(const struct nic *d, const char *value)
{
	char unit[16];

	snprintf(unit, sizeof(unit), "%d", d->unit);
	if (d->kind == NIC_PSM2 && !strcmp(value, unit))
		return true;
	for (size_t len; *value; value += len + (value[len] != '\0')) {
		len = strcspn(value, ",:");
		if (len && ((strlen(d->name) == len && !memcmp(value, d->name, len)) ||
			    (strlen(d->net) == len && !memcmp(value, d->net, len))))
			return true;
	}
	return false;
}

void nics_describe_far(const struct nics *n, const char *value, hwloc_const_bitmap_t cpus, char *out, size_t size)
{
	const struct nic *named = NULL, *near = NULL;

	*out = '\0';
	for (const struct nic *d = n->nic; d < n->nic + n->n; d++)
		if (is_named(d, value)) {
			if (hwloc_bitmap_intersects(d->near, cpus))
				return;
			named = named ? named : d;
		}
	for (const struct nic *d = n->nic; named && !near && d < n->nic + n->n; d++)
		if (d->kind == named->kind && d->active && hwloc_bitmap_intersects(d->near, cpus))
			near = d;
	if (near)
		snprintf(out, size, "%s (%s is near)", nic_label(named), nic_label(near));
}

void nics_describe(hwloc_topology_t topology, const struct nics *n, const char *labels, hwloc_const_bitmap_t pus,
		   char *out, size_t size)
{
	size_t at = 0;

	*out = '\0';
	for (size_t len; *labels && at < size; labels += len + (labels[len] != '\0')) {
		const struct nic *d = n->nic, *end = n->nic + n->n;
		char where[LOCALITY_SIZE] = "";

		len = strcspn(labels, ",");
		while (d < end && (strlen(nic_label(d)) != len || memcmp(nic_label(d), labels, len)))
			d++;
		if (d < end)
			locality_describe(topology, d->near, pus, where);
		at += snprintf(out + at, size - at, "%s%.*s%s", at ? "," : "", (int) len, labels, where);
	}
}
