/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "cmd.h"
#include "shape/hostlist.h"
#include "shape/strings.h"

/* What the commands about nodes share. */

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

/* A severity that counts as drift: cosmetic, wiring, slow or capacity; -1 for other words. */
int drift_severity_parse(const char *name);

/* Print an array of {"object", "fact", "value"} as a table on stdout. 0 or -1. */
int facts_print(const json_t *facts, struct err *e);

/* XML of hwloc 1 has no version, or a version of its own. */
bool xml_is_of_hwloc1(const struct buf *xml);

/* The same as xml_strings for a file of hwloc 2 or hwloc 1; hwloc itself converts the latter, in a child process. */
int xml_file_strings(const char *file, struct strings *out, struct err *e);
