/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_PLACE_FABRIC_H
#define TOPIARY_CLI_PLACE_FABRIC_H

#include "cmd.h"
#include "fabric/write/export.h"
#include "fabric/model/json.h"
#include "shape/hostset.h"

/* A fabric and the options of the output. */
struct fabric_wish {
	const struct fabric *fabric;
	const struct fabric_hosts *chosen;	/* NULL: neither --nodes nor --job */
	const char *format;		/* of an export */
	unsigned plane;
};

/* Print tables on stdout; print everything as JSON; write the requested format. 0 or -1. */
int fabric_print(const struct fabric *f, struct err *e);
int fabric_write_json(const struct fabric_wish *w, struct buf *out, struct err *e);
int fabric_export(const struct fabric_wish *w, struct buf *out, struct err *e);
#define FABRIC_FORMATS "slurm, slurm-yaml, paper, scotch, dot or json"
bool fabric_format_exists(const char *name);

/*
 * The registry's fabric now (when "") or at a time that when_parse (target.h) returned; import one; print the history.
 */
struct fabric *fabric_fetch(const struct cmd *c, const char *when, struct err *e);
int fabric_send(const struct cmd *c, const struct fabric *f, struct err *e);
int fabric_history(const struct cmd *c, unsigned limit, struct err *e);	/* limit 0: the registry's */

#endif
