/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_TABLE_H
#define TOPIARY_REGISTRY_CMD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * A table for people: columns as wide as their widest cell, numbers to the right, the head in bold at a terminal. The heads are
 * borrowed, the cells copied.
 */
struct table_column {
	const char *head;
	bool right;
};

struct table;

/* NULL when memory is short; table_row then does nothing and table_print fails. columns ends with a NULL head. */
struct table *table_new(const struct table_column *columns);
void table_free(struct table *t);

/* One cell: printf into the next column of the last row, or the first of a new one. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* 0, or -1 when memory was short at any time or out cannot be written. */
int table_print(const struct table *t, FILE *out);

#endif
