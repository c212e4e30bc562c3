/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"

/* A text split into lines, each NUL-terminated in a copy of the text, so that a reader may split it further. */
struct lines {
	const char *name;
	char *copy, *at;
	unsigned line;		/* the number of the last line returned, from 1 */
	struct err *err;
};

/* A byte order mark of UTF-8 is no part of the text. 0, or -1 (memory; a NUL in the text). */
int lines_open(struct lines *l, const char *text, size_t len, const char *name, struct err *e);
void lines_close(struct lines *l);

/* The next line without its end and surrounding blanks, or NULL. Valid until lines_close. */
char *lines_next(struct lines *l);

/* "NAME:LINE: what". Always -1. */
int lines_wrong(const struct lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The next word of *at, NUL-terminated in place; NULL at the end. */
char *lines_word_next(char **at);
/* Parses a decimal number that is the whole word, at most max. False otherwise. */
bool lines_word_number(const char *word, unsigned max, unsigned *out);
