/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "shape/shape.h"

static void check_domain(const struct shape *s, size_t i)
{
	const struct shape_domain *d = &s->domains[i], *up = i ? &s->domains[d->parent] : d;

	if (!d->cores || d->first + d->cores > s->cores || (i && (d->parent < 0 || (size_t)d->parent >= i)))
		abort();
	if (d->first < up->first || d->first + d->cores > up->first + up->cores)
		abort();
}

/* Whatever is accepted has domains that nest, and devices at cores that are there. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = begin_with("", data, &size);
	struct err e;
	struct shape *s;
	unsigned pus = 0;

	s = shape_parse(text, &e);
	for (size_t i = 0; s && i < s->ndomains; i++)
		check_domain(s, i);
	for (unsigned i = 0; s && i < s->cores; i++)
		pus += s->threads[i];
	if (s && (pus != s->pus || pus < s->cores))
		abort();
	for (size_t i = 0; s && i < s->ndevices; i++)
		if (!s->devices[i].cores || s->devices[i].first + s->devices[i].cores > s->cores ||
		    !*s->devices[i].type)
			abort();
	shape_free(s);
	free(text);
	return 0;
}
