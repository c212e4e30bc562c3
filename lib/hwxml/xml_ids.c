/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwxml/xml_ids.h"

#include "base/array.h"

unsigned xml_ids_add(struct xml_ids *s, uint64_t gp)
{
	if (array_reserve(s->ids, s->n, 1))
		return 0;
	s->ids[s->n] = (struct xml_id){ .gp = gp, .place = s->n + 1 };
	return ++s->n;
}

static int id_order(const void *a, const void *b)
{
	const struct xml_id *x = a, *y = b;

	return (x->gp > y->gp) - (x->gp < y->gp);
}

int xml_ids_seal(struct xml_ids *s, uint64_t *twice)
{
	qsort(s->ids, s->n, sizeof(*s->ids), id_order);
	for (size_t i = 1; i < s->n; i++)
		if (s->ids[i].gp == s->ids[i - 1].gp) {
			*twice = s->ids[i].gp;
			return -1;
		}
	return 0;
}

unsigned xml_ids_find(const struct xml_ids *s, uint64_t gp)
{
	struct xml_id key = { .gp = gp };
	struct xml_id *found = s->n ? bsearch(&key, s->ids, s->n, sizeof(key), id_order) : NULL;

	return found ? found->place : 0;
}

void xml_ids_free(struct xml_ids *s)
{
	free(s->ids);
	*s = (struct xml_ids){0};
}
