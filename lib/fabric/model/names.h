/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "fabric/model/fabric.h"

/* The host whose adapter or port has this GUID, or NULL; names may be NULL. */
const char *names_find(const struct fabric_names *n, uint64_t guid);

/*
 * Appends to out the host in an adapter's NodeDescription, as rdma-ndd(8) and the vendors' start scripts write it:
 * "cn001 mlx5_0", "cn001 HCA-1", or "cn001" alone. Returns the device there, "" if it has none, or NULL if there is no
 * host's name, as in "MT25408 ConnectX Mellanox Technologies", "MT4123" or "localhost.localdomain mlx5_0".
 */
const char *names_host(const char *description, struct buf *out);

/* The length of a host's name without its domain. "10.1.2.3" has none. */
size_t names_short(const char *name);

/* Is it of an adapter inside a switch, as those that sum what passes (SHARP)? It is no host's. */
bool names_serve_network(const char *description);

/*
 * Appends to out a switch's description as a name valid in Slurm: letters, digits, '.', '_' and '-'. False: nothing is
 * left of it.
 */
bool names_switch(const char *description, struct buf *out);

/* Letters, digits, '.', '_' and '-', at least one. */
bool names_fit(const char *name);
