/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_NODES_BENCH_NODE_H
#define TOPIARY_CLI_NODES_BENCH_NODE_H

#include "cmd.h"
#include "hwbench/result.h"

/* What was measured of a node in the registry: send it, and show it beside the node's class. 0 or -1. */
int bench_node_send(const struct cmd *c, const char *node, const struct hwbench *b, struct err *e);
int bench_node_show(const struct cmd *c, const char *node, struct err *e);

#endif
