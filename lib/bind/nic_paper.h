/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_NIC_PAPER_H
#define TOPIARY_BIND_NIC_PAPER_H

#include "bind/nic.h"

/*
 * What PSM2 should do: Ganapathi, Gopalakrishnan, McGuire, "HPC process and optimal network device affinitization" (IEEE TMSCS 2018),
 * algorithms 1 and 2, over a node's devices of kind NIC_PSM2. here: the PUs of the process.
 *
 * Algorithm 1: the unit for a single rail. hfival: the user's, or negative. pick: the index of the device for whoever has more
 * than one near (spread_hfi) or none (select_remote_hfi). The unit, or -1 where none is active.
 */
int paper_single(const struct nics *n, int hfival, hwloc_const_bitmap_t here, int pick);

/*
 * Algorithm 2: the rails, as indices, by PSM2_MULTIRAIL; how many they are. 0: no multi-rail, paper_single says which.
 */
int paper_rails(const struct nics *n, int multirail, hwloc_const_bitmap_t here, hwloc_bitmap_t rails);

#endif
