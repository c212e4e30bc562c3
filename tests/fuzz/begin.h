/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FUZZ_BEGIN_H
#define TOPIARY_FUZZ_BEGIN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The input behind what a reader is chosen by, so that no time goes into finding that. A NUL at its end. */
static inline char *begin_with(const char *begin, const uint8_t *data, size_t *size)
{
	size_t len = strlen(begin);
	char *text = malloc(len + *size + 1);

	if (!text)
		abort();
	memcpy(text, begin, len);
	memcpy(text + len, data, *size);
	*size += len;
	text[*size] = '\0';
	return text;
}

#endif
