/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_TABLE_H
#define TOPIARY_REGISTRY_CMD_TABLE_H

#include <stddef.h>
#include <stdio.h>

/*
 * A table for people: columns as wide as their widest cell, the head in bold at a terminal. The heads are borrowed, the cells
 * copied; what a terminal would take for a command becomes '?'.
 */
enum table_form {
	TABLE_LEFT,
	TABLE_RIGHT,	/* numbers */
	TABLE_CUT,	/* cut at a terminal that is too narrow for the whole */
};

struct table_column {
	const char *head;	/* when the first column's is "", no head is printed */
	enum table_form form;
};

enum table_colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_FAINT, COLOUR_RED, COLOUR_YELLOW, COLOUR_GREEN };

struct table;

#define TABLE_COLUMNS 16	/* at most */

/* NULL when memory is short; table_cell then does nothing and table_print fails. columns ends with a NULL head. */
struct table *table_new(const struct table_column *columns);
void table_free(struct table *t);

/* One cell: printf into the next column of the last row, or the first of a new one. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Colour the last cell, at a terminal. */
void table_colour(struct table *t, enum table_colour colour);

/* The same, as grave as this is (topo/compare.h). */
void table_severity(struct table *t, const char *severity);

/* 0, or -1 when memory was short at any time or out cannot be written. */
int table_print(const struct table *t, FILE *out);

#endif
