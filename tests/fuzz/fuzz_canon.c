/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "hwxml/canon.h"
#include "shape/shape.h"
#include "shape/strings.h"

static void check_string(const char *text, const struct strings *s)
{
	struct shape *shape = shape_parse(text, NULL);

	if (shape ? shape->cores != s->ncores || shape->pus != s->npus : strlen(text) < 256)
		abort();
	shape_free(shape);
}

static void check_strings(const char *xml, size_t len)
{
	struct tree *t = tree_parse(xml, len, "fuzz", NULL);
	struct strings s;

	if (!t || strings_make(t, &s, NULL))
		abort();
	check_string(s.cores, &s);
	check_string(s.hierarchy, &s);
	check_string(s.detail, &s);
	check_string(s.allocation, &s);
	strings_free(&s);
	tree_free(t);
}

/* Whatever is accepted has a canonical form that is its own, and strings that can be read and count alike. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct canon c, again;

	if (canon_parse((const char *)data, size, "fuzz", &c, NULL))
		return 0;
	if (canon_parse(c.xml.data, c.xml.len, "again", &again, NULL) || again.xml.len != c.xml.len ||
	    memcmp(again.xml.data, c.xml.data, c.xml.len))
		abort();
	check_strings((const char *)data, size);
	canon_free(&again);
	canon_free(&c);
	return 0;
}
