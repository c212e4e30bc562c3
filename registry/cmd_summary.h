/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_SUMMARY_H
#define TOPIARY_REGISTRY_CMD_SUMMARY_H

#include <jansson.h>

#include "base/err.h"

/*
 * A node for people, on stdout: what the registry's answer about it has, a line each, and how it drifted, which is NULL for one
 * of the past. 0 or -1.
 */
int summary_print(const json_t *node, const json_t *drift, struct err *e);

#endif
