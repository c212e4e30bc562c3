/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/nic.h"

#include <stdio.h>

#include "options.h"
#include "step.h"
#include "task.h"

static int give(struct task *t, hwloc_topology_t node, struct buf *told, struct err *e)
{
	struct nics devices;
	struct nic_ask a = { .topology = node, .nics = &devices, .request = &options.bind, .masks = t->masks, .local = t->local,
		.nlocal = t->nlocal, .bound = t->moved };
	int rc;

	if (nics_find(node, &devices, e))
		return -1;
	rc = nics_export(&a, &t->vars, told, e);
	nics_free(&devices);
	return rc;
}

int task_nic(struct task *t, struct err *e)
{
	struct buf told = {0};
	hwloc_topology_t node;
	int rc;

	if (!options.bind.nic || !step.node || step.settings.nic_planes > 1)
		return 0;
	if (step_node_adopt(&node, e))
		return err_within(e, "its network devices");
	rc = give(t, node, &told, e);
	if (told.len)
		snprintf(t->nic, sizeof(t->nic), "%s", told.data);
	buf_free(&told);
	hwloc_topology_destroy(node);
	return rc;
}
