/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/printable.h"

/* Bytes of the control character that text begins with, 0 if it begins with another. */
static unsigned control_length(const char *text)
{
	const unsigned char *c = (const unsigned char *) text;

	if (c[0] == 0xc2 && (c[1] & 0xe0) == 0x80)
		return 2;
	return *c && (*c < ' ' || *c == 0x7f);
}

bool is_printable(const char *text)
{
	for (; *text; text++)
		if (control_length(text))
			return false;
	return true;
}

char *printable(char *text)
{
	for (char *c = text; *c; c++)
		for (unsigned n = control_length(c); n; n--)
			c[n - 1] = '?';
	return text;
}
