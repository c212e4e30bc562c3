/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_H
#define TOPIARY_REGISTRY_CMD_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/settings.h"

/* What every subcommand of topiary is given. */
struct cmd {
	struct settings settings;
	const char *config;	/* --config, or NULL */
	const char *url;	/* --url, or NULL */
	bool json;		/* --json */
};

/* One subcommand each: parse argv, do it. 0, or -1 with an error for main to print. */
int cmd_nodes(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_shapes(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_show(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_snapshot(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_map(struct cmd *c, int argc, char **argv, struct err *e);

/*
 * Parse a subcommand's line with its own argp and the options that all have (--config, --url, --json), then read topiary.conf.
 * A usage error ends the process, as argp does. input is given to the argp's own parser. 0 or -1.
 */
int cmd_parse(struct cmd *c, const struct argp *own, void *input, int argc, char **argv, struct err *e);

/* GET path from the registry: the bytes (the caller frees them), or the JSON of them. 0 or -1, NULL. */
int cmd_get(const struct cmd *c, const char *path, struct buf *out, struct err *e);
json_t *cmd_get_json(const struct cmd *c, const char *path, struct err *e);

/* Print JSON as it is, indented, on stdout. */
int cmd_print_json(const json_t *j, struct err *e);

/* Write bytes to a file, whole or not at all, or to stdout when path is NULL. */
int cmd_write(const char *path, const struct buf *b, struct err *e);

#endif
