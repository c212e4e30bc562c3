/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BENCH_CLONES_H
#define TOPIARY_BENCH_CLONES_H

#include "base/buf.h"
#include "base/err.h"

/* Many nodes out of one, by a template of tests/rig/clones.py. */
struct clones;

/* NULL with an error that begins with name; free with clones_free. */
struct clones *clones_new(const char *text, const char *name, struct err *e);
void clones_free(struct clones *c);

/*
 * Node `number` (below 2^24), "cn" and six digits; another generation of it has other serial numbers and pages of
 * memory, as after a repair. The same to the byte each time. Replaces what is in out; out->failed when memory is short.
 */
void clones_make(const struct clones *c, unsigned number, unsigned generation, struct buf *out);

#endif
