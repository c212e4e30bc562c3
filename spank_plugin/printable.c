/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "printable.h"

char *printable(char *text)
{
	for (unsigned char *c = (unsigned char *) text; *c; c++)
		if (*c < ' ' || *c == 0x7f)
			*c = '?';
	return text;
}
