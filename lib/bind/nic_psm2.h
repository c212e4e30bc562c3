/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_NIC_PSM2_H
#define TOPIARY_BIND_NIC_PSM2_H

#include "bind/nic.h"

/*
 * The choice of devices for PSM2: Ganapathi, Gopalakrishnan, McGuire, "HPC process and optimal network device
 * affinitization" (IEEE TMSCS 2018), algorithms 1 and 2, over a node's devices of kind NIC_PSM2. here: the PUs of the
 * process. Called by nic_values.c.
 *
 * Algorithm 1: the unit for a single rail. hfival: the user's, or negative. pick: the index of the device for a
 * process with more than one local device (spread_hfi) or none (select_remote_hfi). The unit, or -1 where none is
 * active.
 */
int psm2_unit(const struct nics *n, int hfival, hwloc_const_bitmap_t here, int pick);

/* Algorithm 2: the rails, as indices, by PSM2_MULTIRAIL. Their number; 0: a single rail, as by psm2_unit. */
int psm2_rails(const struct nics *n, int multirail, hwloc_const_bitmap_t here, hwloc_bitmap_t rails);

#endif
