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
	int status;		/* the exit status where there is more to tell than failure; when run gives 0 */
};

/* One subcommand each: parse argv, do it. 0, or -1 with an error for main to print. */
int cmd_nodes(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_shapes(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_show(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_snapshot(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_matrix(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_map(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_fabric(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_history(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_facts(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_diff(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_drift(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_accept(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_verify(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_shape(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_pack(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_why(struct cmd *c, int argc, char **argv, struct err *e);
int cmd_replay(struct cmd *c, int argc, char **argv, struct err *e);

/*
 * Parse a subcommand's line with its own argp and the options that all have (--config, --url, --json), then read topiary.conf.
 * A usage error ends the process, as argp does. input is given to the argp's own parser. 0 or -1.
 */
int cmd_parse(struct cmd *c, const struct argp *own, void *input, int argc, char **argv, struct err *e);

/* For commands that take nothing but files or nodes, one at least: input is a struct words. */
struct words {
	const char *what;	/* "FILE", "node": set by the command */
	char **list;
	int n;
};
error_t cmd_words(int key, char *arg, struct argp_state *state);

/* An option's number, at least min and at most UINT32_MAX; else a usage error that names `what`. */
unsigned cmd_arg_number(struct argp_state *state, const char *what, const char *text, unsigned min);

/* GET path from the registry: the bytes (the caller frees them), or the JSON of them. 0 or -1, NULL. */
int cmd_get(const struct cmd *c, const char *path, struct buf *out, struct err *e);
json_t *cmd_get_json(const struct cmd *c, const char *path, struct err *e);

/* The same for JSON with an array of this name in it. path is freed; one that failed is an error. */
json_t *cmd_get_list(const struct cmd *c, struct buf *path, const char *list, struct err *e);

/* Warn when the registry cut its answer short. */
void cmd_tell_truncated(const json_t *answer, const char *advice);

/* A munge credential for what only administrators may: a claim for a node, or what stands in its place. malloc'ed; NULL on error. */
char *cmd_sign(const struct cmd *c, const char *what, const char *sha256, size_t length, struct err *e);

/* POST path, without a body, or PUT a body of zstd, signed by a munge credential: the JSON of the answer, or NULL. */
json_t *cmd_post(const struct cmd *c, const char *path, const char *credential, struct err *e);
json_t *cmd_put(const struct cmd *c, const char *path, const char *credential, const struct buf *body, struct err *e);

/* Paths: "/v1/nodes/NODE" and what follows; then "?key=value" or "&key=value", nothing when value is NULL. Escaped. */
void cmd_node_path(struct buf *path, const char *node, const char *tail);
void cmd_query(struct buf *path, const char *key, const char *value);

/* GET "/v1/nodes/NODE" and what follows, as JSON. */
json_t *cmd_get_node(const struct cmd *c, const char *node, const char *tail, struct err *e);

/* A member of an answer: "-" when it has none, or null; borrowed from it. */
const char *cmd_text(const json_t *o, const char *key);
json_int_t cmd_number(const json_t *o, const char *key);

/* Print JSON as it is, indented, on stdout. */
int cmd_print_json(const json_t *j, struct err *e);

/* Write bytes to a file, whole or not at all, or to stdout when path is NULL. */
int cmd_write(const char *path, const struct buf *b, struct err *e);

#endif
