/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "fabric/model/fabric.h"

/*
 * Some hosts of a fabric: those of a job, or those known to Slurm. Where it may be NULL, that means all, or none to
 * colour.
 */
struct fabric_hosts {
	bool (*has)(const char *host, void *user);
	void *user;
};

/*
 * Writes Slurm's topology.conf(5) for topology/tree, leaf switches first. Switches that act as one are one; a torus or
 * a graph is written as the tree of its levels. Hosts without a name or a switch are left out. A host in
 * several planes is written once, because a Slurm node has one place. Each returns 0, or -1 with out undefined.
 */
int fabric_write_slurm(const struct fabric *f, const struct fabric_hosts *c, struct buf *out, struct err *e);

/* The same as topology.yaml(5) of Slurm 25.05 and later, the cluster's default topology. */
int fabric_write_slurm_yaml(const struct fabric *f, const struct fabric_hosts *c, struct buf *out, struct err *e);

/*
 * Writes Scotch's target architecture for the hosts of a plane: a "tleaf" and, where branches lack hosts, a "sub" of
 * it. Trees only.
 */
int fabric_write_scotch(const struct hierarchy *h, struct buf *out, struct err *e);

/*
 * Writes it for Graphviz: a table for each switch with its hosts, a host a line; an edge for each trunk with the number
 * of its cables; chosen hosts are coloured. dot(1) draws trees with the spines above, by name; all else as sfdp(1).
 */
int fabric_write_dot(const struct fabric *f, const struct fabric_hosts *c, struct buf *out, struct err *e);
