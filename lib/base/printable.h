/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BASE_PRINTABLE_H
#define TOPIARY_BASE_PRINTABLE_H

#include <stdbool.h>

/*
 * Text of others', which is to stay one line and must not control a terminal. Control characters are those of ASCII,
 * and U+0080 to U+009F, which UTF-8 writes as C2 80 to C2 9F and terminals obey as ESC and a letter.
 */

bool is_printable(const char *text);

/* Replace control characters by '?' in place: each of their bytes. Returns text. */
char *printable(char *text);

#endif
