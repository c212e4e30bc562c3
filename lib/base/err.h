/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

/*
 * One error, in words. Libraries fill it and return; only rooms log it, once, naming the node, job or file.
 */
struct err {
	char text[512];
};

/*
 * Set the text of e, which may be NULL. Always returns -1, so that an error is one line:
 *	return err_set(e, "%s: not a snapshot", path);
 */
int err_set(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Put "context: " before the text of e, unless it begins with it already. Always returns -1. */
int err_within(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* In messages: "%u node%s", n, PLURAL(n). n is evaluated once. */
#define PLURAL(n) ((n) == 1 ? "" : "s")

/* err_set for functions that return a pointer: always NULL. */
#define err_null(...) (err_set(__VA_ARGS__), NULL)
