/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_SUMMARY_H
#define TOPIARY_CLI_SUMMARY_H

#include <jansson.h>

#include "base/err.h"

/*
 * Print a node on stdout: a line for each member of the registry's answer, and its drift, which is NULL for a node in
 * the past. 0 or -1.
 */
int summary_print(const json_t *node, const json_t *drift, struct err *e);

#endif
