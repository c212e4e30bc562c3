/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_FABRIC_H
#define TOPIARY_REGISTRY_CMD_FABRIC_H

#include <stdint.h>

#include "cmd.h"
#include "fabric/export.h"

/* What exports of nodes (XML files) tell of GUIDs: each node's HostName, and the GUIDs of its adapters and their ports. 0 or -1. */
int fabric_names_learn(struct fabric_names *names, const char *path, struct err *e);

/* The whole of a fabric: planes, levels, switches, hosts with their places, links, what is odd. NULL when memory is short. */
json_t *fabric_json(const struct fabric *f);

/* The hosts of a list, or those of a job of Slurm's, to be asked for by name. NULL on error. */
struct hosts;
struct hosts *hosts_of_list(const char *list, struct err *e);
struct hosts *hosts_of_job(uint32_t job, struct err *e);
void hosts_free(struct hosts *h);
/* For struct chosen: user is a struct hosts. */
bool hosts_has(const char *host, void *user);

#endif
