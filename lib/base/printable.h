/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

/*
 * Text of others', which is to stay one line and must not control a terminal. Control characters are those of ASCII;
 * U+0080 to U+009F, which terminals obey as ESC and a letter; and Unicode's of format, which are invisible or change
 * the order of what follows: zero width spaces and joiners, marks and overrides of direction.
 */

bool is_printable(const char *text);

/*
 * Replace control characters in place, each of their bytes: by '?', and tabs and ends of lines by blanks, so that lines
 * that are joined remain words. Returns text.
 */
char *printable(char *text);
