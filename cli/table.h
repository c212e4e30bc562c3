/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"

/*
 * A table on a terminal: columns as wide as their widest cell, the head in bold. Heads and cells are copied; control
 * characters become '?'.
 */
enum table_colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_FAINT, COLOUR_RED, COLOUR_YELLOW, COLOUR_GREEN };

struct table;

#define TABLE_COLUMNS 16	/* at most */

/*
 * Heads of columns, as "HOST|>CORES|~CHANGE": with > a column is of numbers, to the right, with ~ it is truncated on a
 * terminal that is too narrow. If the first is "" no head is printed. NULL when memory is short; table_cell then does
 * nothing and table_print fails. table_column adds one more of the same form, before the first cell.
 */
struct table *table_new(const char *heads);
void table_column(struct table *t, char form, const char *head);
void table_free(struct table *t);

/*
 * Add a cell: printf into the next column of the last row, or the first of a new row; with a | in the format several,
 * "%s|%u|||%s".
 */
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
