/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_INGEST_BELIEF_H
#define TOPIARY_REGISTRY_INGEST_BELIEF_H

#include <stdbool.h>

#include "base/buf.h"

/*
 * Validation of worker replies, since a worker has just parsed untrusted bytes. Called by parser.c. Pure functions; the
 * bytes are followed by a NUL, as those of every buf.
 */

/* UTF-8 without NUL, as PostgreSQL and JSON require. */
bool validate_text(const struct buf *b);
/* The same without control characters, and not empty. */
bool validate_line(const struct buf *b);
/* Lines as tree_facts (hwxml/tree.h) writes them. */
bool validate_facts(const struct buf *b);
/* A shape (shape/shape.h) of so many cores and PUs. */
bool validate_shape(const struct buf *text, unsigned cores, unsigned pus);
/*
 * The highest severity (hwcmp/compare.h) in a list of changes as parser_compare returns it, or -1 when it is invalid.
 */
int validate_changes(const struct buf *text);

#endif
