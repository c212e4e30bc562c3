/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_FABRIC_H
#define TOPIARY_REGISTRY_CMD_FABRIC_H

#include <stdint.h>

#include "cmd.h"
#include "fabric/export.h"
#include "fabric/json.h"

/* A fabric, and what is wished of it. */
struct fabric_wish {
	const struct fabric *fabric;
	const struct chosen *chosen;	/* NULL: neither --nodes nor --job */
	const char *format;		/* of an export */
	unsigned plane;
};

/* Tables for people on stdout; all of it as JSON; the format wished. 0 or -1. */
int fabric_print(const struct fabric *f, struct err *e);
int fabric_write_json(const struct fabric_wish *w, struct buf *out, struct err *e);
int fabric_export(const struct fabric_wish *w, struct buf *out, struct err *e);

/* The registry's: as it is now (when ""), or was then, as when_parse (cmd_target.h) has it; sent as what is now; its history. */
struct fabric *fabric_fetch(const struct cmd *c, const char *when, struct err *e);
int fabric_send(const struct cmd *c, const struct fabric *f, struct err *e);
int fabric_history(const struct cmd *c, const char *limit, struct err *e);

/* What came, went and changed from one to the other, printed; names are what they are called. 1: something; 0: nothing; -1. */
int fabric_diff(const struct cmd *c, const struct fabric *const f[2], const char *const names[2], struct err *e);

/* What exports of nodes (XML files) tell of GUIDs: each node's HostName, and the GUIDs of its adapters and their ports. 0 or -1. */
int fabric_names_learn(struct fabric_names *names, const char *path, struct err *e);

/* The hosts of a list, or those of a job of Slurm's, to be asked for by name. NULL on error. */
struct hosts;
struct hosts *hosts_of_list(const char *list, struct err *e);
struct hosts *hosts_of_job(uint32_t job, struct err *e);
void hosts_free(struct hosts *h);
/* For struct chosen: user is a struct hosts. */
bool hosts_has(const char *host, void *user);

#endif
