/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_NODES_SHOW_H
#define TOPIARY_CLI_NODES_SHOW_H

#include <jansson.h>

#include "base/err.h"
#include "cmd.h"

/* Print an array of {"object", "fact", "value"} as a table on stdout. 0 or -1. */
int facts_print(const json_t *facts, struct err *e);

/*
 * Print a node on stdout: a line for each member of the registry's answer, and its drift, which is NULL for a node in
 * the past. 0 or -1.
 */
int summary_print(const json_t *node, const json_t *drift, struct err *e);

#endif
