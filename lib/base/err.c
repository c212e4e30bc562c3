/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "base/err.h"

#include <stdarg.h>

int err_set(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (e) {
		va_start(ap, fmt);
		vsnprintf(e->text, sizeof(e->text), fmt, ap);
		va_end(ap);
	}
	errno = saved;
	return -1;
}

int err_within(struct err *e, const char *fmt, ...)
{
	char inner[sizeof(e->text)];
	va_list ap;
	size_t n;

	if (!e)
		return -1;
	memcpy(inner, e->text, sizeof(inner));
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	if (!strncmp(inner, e->text, n) && inner[n] == ':')
		memcpy(e->text, inner, sizeof(inner));
	else
		snprintf(e->text + n, sizeof(e->text) - n, ": %s", inner);
	return -1;
}
