/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "base/settings.h"
#include "base/cmd_line.h"

/* What every subcommand gets. */
struct cmd {
	struct settings settings;
	const char *config;	/* --config, or NULL */
	const char *url;	/* --url, or NULL */
	bool json;		/* --json */
	int status;		/* the exit status of commands that have more than success and failure */
};

/*
 * One subcommand each: parse argv, do it. 0, or -1 with an error for main to print. They are weak because `make tool`
 * links some of them.
 */
typedef int cmd_fn(struct cmd *c, int argc, char **argv, struct err *e);
extern cmd_fn __attribute__((weak))
	cmd_nodes, cmd_shapes, cmd_show, cmd_snapshot, cmd_matrix, cmd_map, cmd_fabric, cmd_history, cmd_facts,
	cmd_diff, cmd_drift, cmd_accept, cmd_forget, cmd_verify, cmd_shape, cmd_pack, cmd_fsck, cmd_why,
	cmd_whatif, cmd_fragmentation, cmd_audit, cmd_observed, cmd_replay, cmd_record, cmd_top, cmd_trace,
	cmd_advise, cmd_memory, cmd_move, cmd_bind, cmd_bench, cmd_enable, cmd_disable, cmd_doctor, cmd_reorder;

/*
 * Parse the common options (--config, --url, --json) that precede the command. Returns the index of the command in
 * argv, or argc when there is none. A usage error ends the process, as argp does.
 */
int cmd_parse_common(struct cmd *c, int argc, char **argv);

/*
 * Parse a subcommand's arguments and the common options, then read topiary.conf. args is the command's struct args. A
 * usage error ends the process, as argp does. 0 or -1.
 */
int cmd_parse(struct cmd *c, const struct cmd_syntax *s, void *args, int argc, char **argv, struct err *e);

/*
 * GET path from the registry: the body (the caller frees it). 0 or -1. The JSON of an answer, or of one with an array
 * named `list`, for a path that is freed; a path whose buffer failed is an error. NULL on error.
 */
int cmd_get(const struct cmd *c, const char *path, struct buf *out, struct err *e);
json_t *cmd_get_json(const struct cmd *c, struct buf *path, struct err *e);
json_t *cmd_get_list(const struct cmd *c, struct buf *path, const char *list, struct err *e);

/* Warn when the registry truncated its answer; advice is what to do about it. */
void cmd_warn_truncated(const json_t *answer, const char *advice);

/*
 * A munge credential for a request that only administrators may make, about a node or another subject. malloc'ed; NULL
 * on error.
 */
char *cmd_sign(const struct cmd *c, const char *purpose, const char *what, const char *sha256, size_t length,
	       struct err *e);

/*
 * POST path without a body, authorized by a munge credential, or PUT a text, compressed and signed for this purpose
 * and subject: the JSON of the answer, or NULL with an error. Both free path; cmd_post also the credential, where NULL
 * is an error of cmd_sign.
 */
json_t *cmd_post(const struct cmd *c, struct buf *path, char *credential, struct err *e);
json_t *cmd_put(const struct cmd *c, struct buf *path, const char *purpose, const char *what, const char *text,
		size_t len, struct err *e);

/* Append "/v1/nodes/NODE" and tail; append "?key=value" or "&key=value", nothing when value is NULL. Both escape. */
void cmd_node_path(struct buf *path, const char *node, const char *tail);
void cmd_query(struct buf *path, const char *key, const char *value);
void cmd_query_number(struct buf *path, const char *key, unsigned n);	/* nothing when n is 0 */

/* GET "/v1/nodes/NODE" and tail, as JSON. */
json_t *cmd_get_node(const struct cmd *c, const char *node, const char *tail, struct err *e);

/* Whether a list of words, separated by this character, has the word. */
bool cmd_has_word(const char *list, char separator, const char *word);

/* A member of an answer, borrowed from it: "-", or 0, when it is missing or null. */
const char *cmd_text(const json_t *o, const char *key);
json_int_t cmd_number(const json_t *o, const char *key);

/* Print JSON on stdout, indented. */
int cmd_print_json(const json_t *j, struct err *e);
/* The same of what was made for it, and free it. NULL, of a json_pack that failed, is an error. */
int cmd_print_new(json_t *j, struct err *e);

/* Append JSON for a script element: no text in it can end that or begin a comment, since '<' is in strings alone. */
void cmd_add_json(struct buf *out, const json_t *j);

/*
 * Print the answer of cmd_get_list, as JSON, or its list as a table with these heads (table.h), to which row adds the
 * cells of each. truncated: what to do about an answer that is, or NULL. 0 or -1.
 */
struct table;
int cmd_print_list(const struct cmd *c, struct buf *path, const char *list, const char *truncated, const char *heads,
		   void (*row)(struct table *t, const json_t *row), struct err *e);

/*
 * Write bytes to a file, atomically; directly into a device or pipe; to stdout when path is NULL. cmd_writable: whether
 * it can be, before the work; cmd_parse has asked for each option of CMD_OUTPUT.
 */
bool cmd_is_device(const char *path);
int cmd_writable(const char *path, struct err *e);
int cmd_write(const char *path, const struct buf *b, struct err *e);
