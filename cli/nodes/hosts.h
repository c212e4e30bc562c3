/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_NODES_HOSTS_H
#define TOPIARY_CLI_NODES_HOSTS_H

#include <stdbool.h>

#include "cmd.h"

/*
 * Restrict a request to the nodes of a host list; NULL is all. A list too long for a path is not sent: the answer then
 * has all nodes, and hosts_keep removes the others.
 */
void hosts_query(struct buf *path, const char *list);

/*
 * Keep only rows about nodes of the host list in the answer's array of this name. Names that the registry does not know
 * are reported in one line on stderr, and the exit status becomes 1. `whole`: the array has every known node, so that
 * no second request is needed. 0, or -1 with an error when no name is known or memory is short.
 */
int hosts_keep(struct cmd *c, const char *list, json_t *answer, const char *array, bool whole, struct err *e);

/* Sort the rows of that array by node in natural order, cn2 before cn10. 0, or -1 when memory is short. */
int hosts_sort(json_t *answer, const char *array, struct err *e);

#endif
