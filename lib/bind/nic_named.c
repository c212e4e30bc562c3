/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <string.h>

#include "bind/locality.h"
#include "bind/nic.h"

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

static const struct nic *labelled(const struct nics *n, const char *label, size_t len)
{
	for (const struct nic *d = n->nic; d < n->nic + n->n; d++)
		if (strlen(nic_label(d)) == len && !memcmp(nic_label(d), label, len))
			return d;
	return NULL;
}

void nics_describe(hwloc_topology_t topology, const struct nics *n, const char *labels, hwloc_const_bitmap_t pus,
		   char *out, size_t size)
{
	size_t at = 0;

	*out = '\0';
	for (size_t len; *labels && at < size; labels += len + (labels[len] != '\0')) {
		const struct nic *d = labelled(n, labels, len = strcspn(labels, ","));
		char where[LOCALITY_SIZE] = "";

		if (d)
			locality_describe(topology, d->near, pus, where);
		at += snprintf(out + at, size - at, "%s%.*s%s", at ? "," : "", (int) len, labels, where);
	}
}
