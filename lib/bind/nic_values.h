/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_NIC_VALUES_H
#define TOPIARY_BIND_NIC_VALUES_H

#include "bind/nic.h"

/* The devices of one kind for the calling task. For nic_vars.c. */
struct nic_share {
	const struct nic_request *ask;
	enum nic_kind kind;
	unsigned active;		/* devices of the kind */
	const int *chosen;		/* of each task; that of this one is not -1 */
	hwloc_bitmap_t rails;		/* of this task */
};

/* Values of variables. Each appends to out, or nothing where the value is not certain. */
typedef void nic_value(const struct nic_share *s, struct buf *out);

nic_value value_psm2_unit;		/* "1": algorithm 1 */
nic_value value_psm2_map;		/* "0:1,1:1": algorithm 2 */
nic_value value_unit;			/* "1", of the only rail */
nic_value value_name;			/* "mlx5_0", of the only rail, unless it is a prefix of another's */
nic_value value_net;			/* "eth0", the same */
nic_value value_names;			/* "cxi0,cxi1" */
nic_value value_names_colon;		/* "mlx5_0:mlx5_1" */
nic_value value_ports;			/* "mlx5_0:1,mlx5_1:1"; interfaces of Ethernet, "eth0,eth1" */
nic_value value_count;			/* "2" */
nic_value value_cray_policy;		/* "USER" with value_cray_mapping, else "NUMA" unless MPICH would abort */
nic_value value_cray_mapping;		/* "0:0,2;1:1,3": device, its local ranks */
nic_value value_mvapich_policy;		/* "FIXED_MAPPING" with value_mvapich_list */
nic_value value_mvapich_list;		/* "0:1:0:1": devices of the local ranks */

/* Conditions of rows of the table. */
typedef bool nic_when(const struct nic_share *s);

nic_when when_near;			/* a device is local to the task */
nic_when when_remote;			/* none is */
nic_when when_several;			/* the node has several */
nic_when when_bound;			/* Topiary bound the task */

#endif
