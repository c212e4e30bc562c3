/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/printable.h"

/* In UTF-8: all bytes but the last, and the range of the last. */
static const struct { const char *before; unsigned char low, high; } controls[] = {
	{ "", 0x01, 0x1f }, { "", 0x7f, 0x7f },
	{ "\xc2", 0x80, 0x9f },						/* U+0080 to U+009F */
	{ "\xd8", 0x9c, 0x9c },						/* U+061C */
	{ "\xe2\x80", 0x8b, 0x8f }, { "\xe2\x80", 0xaa, 0xae },	/* U+200B to U+200F, U+202A to U+202E */
	{ "\xe2\x81", 0xa0, 0xaf },					/* U+2060 to U+206F */
	{ "\xef\xbb", 0xbf, 0xbf },					/* U+FEFF */
};

/* Bytes of the control character that text begins with, 0 if it begins with another. */
static unsigned control_length(const char *text)
{
	for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
		size_t n = strlen(controls[i].before);

		if (!strncmp(text, controls[i].before, n) && (unsigned char) text[n] >= controls[i].low &&
		    (unsigned char) text[n] <= controls[i].high)
			return n + 1;
	}
	return 0;
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
			c[n - 1] = strchr("\t\r\n", *c) ? ' ' : '?';
	return text;
}
