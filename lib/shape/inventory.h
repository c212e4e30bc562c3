/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "shape/hostlist.h"

/*
 * Nodes grouped by shape, to be written as a snapshot (shape/snapshot.h). A shape's name is derived from its text, so
 * that it is the same in every snapshot.
 */
struct inventory;

#define SHAPE_NAME 10	/* "s" and 8 digits, with the NUL */

/* "s" and the first 8 hexadecimal digits of the SHA-256 of the text. */
void shape_name(const char *shape, char out[static SHAPE_NAME]);

/* NULL when memory is short. Free with inventory_free, which accepts NULL. */
struct inventory *inventory_new(void);
void inventory_free(struct inventory *v);

/*
 * Adds nodes, a host list expression, with the text of their shape, which is checked. 0, or -1 with an error naming the
 * nodes, and v unchanged.
 */
int inventory_add(struct inventory *v, const char *nodes, const char *shape, struct err *e);

/*
 * Writes the snapshot: shapes in the order of their names, each with its nodes sorted and without duplicates. 0, or -1
 * with an error: memory is short, or the named node has two shapes. The caller frees out. database: what
 * snapshot_replace compares, or NULL.
 */
int inventory_snapshot(const struct inventory *v, const char *database, struct buf *out, struct err *e);
