/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_HOSTS_H
#define TOPIARY_REGISTRY_CMD_HOSTS_H

#include <stdbool.h>

#include "cmd.h"

/*
 * Ask for the nodes of a host list alone; NULL is all. A list that is too long for a path is not sent: then all nodes come, and
 * hosts_keep drops the others.
 */
void hosts_query(struct buf *path, const char *list);

/*
 * Keep in the answer's array of this name what is about the nodes of the host list. The names that the registry does not know are
 * told in one line on stderr, and the exit status becomes 1. `whole`: the registry left no node that it knows out of the array, so
 * that it need not be asked again. 0, or -1 with an error when not one name is known or memory is short.
 */
int hosts_keep(struct cmd *c, const char *list, json_t *answer, const char *array, bool whole, struct err *e);

/* Put the rows of that array in the order of their nodes as people count, cn2 before cn10. 0, or -1 when memory is short. */
int hosts_sort(json_t *answer, const char *array, struct err *e);

#endif
