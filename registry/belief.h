/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_BELIEF_H
#define TOPIARY_REGISTRY_BELIEF_H

#include <stdbool.h>

#include "base/buf.h"

/*
 * What is believed of a worker's answer: only what is checked here, for the worker has just read a stranger's bytes. All of it is pure.
 * The bytes are followed by a NUL, as those of every buf.
 */

/* UTF-8 without NUL, which is what PostgreSQL and JSON take. */
bool belief_text(const struct buf *b);
/* That without control characters, and not empty. */
bool belief_line(const struct buf *b);
/* Lines as tree_facts (topo/tree.h) writes them. */
bool belief_facts(const struct buf *b);
/* A shape (topo/shape.h) of so many cores and PUs. */
bool belief_shape(const struct buf *text, unsigned cores, unsigned pus);
/* The gravest severity (topo/compare.h) in a list of changes as parser_compare gives it, or -1 when it is no such list. */
int belief_changes(const struct buf *text);

#endif
