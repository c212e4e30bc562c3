/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_NODES_GROUP_H
#define TOPIARY_CLI_NODES_GROUP_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "shape/hostlist.h"

/*
 * Groups of nodes for which the answer's rows are equal: each row has a "node", and the caller's key function says what
 * makes two rows equal. Rows are borrowed.
 */
struct group_row {
	struct hostlist_name host;	/* first, for hosts_fold */
	const char *key;
	const json_t *row;
};

struct group {
	const struct group_row *rows;	/* sorted by node, each node once */
	size_t n;
};

struct groups {
	struct group *list;	/* in the order of their keys */
	size_t n;
	struct group_row *rows;
};

/* key appends a row's key to a buf. 0, or -1 with out untouched. Free with groups_free. */
int groups_make(const json_t *rows, void (*key)(const json_t *row, struct buf *out), struct groups *out, struct err *e);
void groups_free(struct groups *g);

/* The nodes of a group, folded; appended to out. */
void group_hosts(const struct group *g, struct buf *out);

#endif
