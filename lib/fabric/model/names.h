/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_MODEL_NAMES_H
#define TOPIARY_FABRIC_MODEL_NAMES_H

#include "base/buf.h"
#include "fabric/model/fabric.h"

/* The host whose adapter or port has this GUID, or NULL; names may be NULL. */
const char *names_find(const struct fabric_names *n, uint64_t guid);

/*
 * The host that an adapter's NodeDescription names, as rdma-ndd(8) and the vendors' start scripts write it: "cn001
 * mlx5_0", "cn001 HCA-1", or "cn001" alone; appended to out. False: it does not, as "MT25408 ConnectX Mellanox
 * Technologies".
 */
bool names_host(const char *description, struct buf *out);

/*
 * A switch's description as a name that Slurm takes: letters, digits, '.', '_' and '-'; appended to out. False: nothing
 * is left.
 */
bool names_switch(const char *description, struct buf *out);

/* Letters, digits, '.', '_' and '-', one at least. */
bool names_fit(const char *name);

#endif
