/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <math.h>
#include <sys/mman.h>

#include "base/file.h"
#include "base/printable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input behind what a reader is chosen by, so that no time goes into finding that. A NUL at its end. */
static inline char *begin_with(const char *begin, const uint8_t *data, size_t *size)
{
	size_t len = strlen(begin);
	char *text = malloc(len + *size + 1);

	if (!text)
		abort();
	memcpy(text, begin, len);
	if (*size)
		memcpy(text + len, data, *size);
	*size += len;
	text[*size] = '\0';
	return text;
}

/* The descriptor of a file in memory that has these bytes. */
static inline int file_of(const void *bytes, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || file_write(fd, bytes, size))
		abort();
	return fd;
}
