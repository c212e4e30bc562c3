/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "topo/canon.h"
#include "topo/shape.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever is accepted has a canonical form that is its own, and a shape that can be read. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct canon c, again;
	struct shape *s;

	if (canon_parse((const char *)data, size, "fuzz", &c, NULL))
		return 0;
	if (canon_parse(c.xml.data, c.xml.len, "again", &again, NULL) || again.xml.len != c.xml.len ||
	    memcmp(again.xml.data, c.xml.data, c.xml.len) || strcmp(again.shape, c.shape))
		abort();
	s = shape_parse(c.shape, NULL);
	if (!s && strlen(c.shape) < 256)
		abort();
	shape_free(s);
	canon_free(&again);
	canon_free(&c);
	return 0;
}
