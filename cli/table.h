/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_TABLE_H
#define TOPIARY_CLI_TABLE_H

#include "base/err.h"
#include "base/std.h"

/*
 * A table on a terminal: columns as wide as their widest cell, the head in bold. Heads are borrowed, cells copied;
 * control characters become '?'.
 */
enum table_form {
	TABLE_LEFT,
	TABLE_RIGHT,	/* numbers */
	TABLE_CUT,	/* truncated on a terminal that is too narrow */
};

struct table_column {
	const char *head;	/* "" in the first column: no head is printed */
	enum table_form form;
};

enum table_colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_FAINT, COLOUR_RED, COLOUR_YELLOW, COLOUR_GREEN };

struct table;

#define TABLE_COLUMNS 16	/* at most */

/* NULL when memory is short; table_cell then does nothing and table_print fails. columns ends with a NULL head. */
struct table *table_new(const struct table_column *columns);
void table_free(struct table *t);

/* Add a cell: printf into the next column of the last row, or the first of a new row. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Colour the last cell on a terminal. */
void table_colour(struct table *t, enum table_colour colour);

/* A cell that names the next one, faint. */
void table_label(struct table *t, const char *label);

/* Colour the last cell by severity (hwcmp/compare.h). */
void table_severity(struct table *t, const char *severity);

/* 0, or -1 when memory was short at any time or writing failed. */
int table_print(const struct table *t, FILE *out);

/* Print it on stdout and free it. 0, or -1 with an error. */
int table_finish(struct table *t, struct err *e);

#endif
