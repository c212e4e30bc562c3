/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/matrix/numbers.h"

#include <stdlib.h>

#include "hwxml/extents.h"

static struct numbers *numbers_new(const struct tree_extent *root)
{
	struct numbers *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->first = calloc(root->cores + 1, sizeof(*n->first));
	n->pu = calloc(root->pus + 1, sizeof(*n->pu));
	if (n->first && n->pu)
		return n;
	numbers_free(n);
	return NULL;
}

/* PUs are in logical order, and so are their cores. */
static int numbers_fill(struct numbers *n, const struct tree *t, const struct tree_extent *extents, struct err *e)
{
	unsigned pus = 0;
	long core = -1;

	for (size_t i = 0; i < t->n; i++) {
		if (!tree_object_is(t, i, "PU"))
			continue;
		if (t->objects[i].os_index < 0)
			return err_set(e, "PU %u has no number", pus);
		if (extents[i].core != core)
			n->first[n->cores++] = pus;
		core = extents[i].core;
		n->pu[pus++] = t->objects[i].os_index;
	}
	n->first[n->cores] = pus;
	return 0;
}

struct numbers *numbers_of(const struct tree *t, struct err *e)
{
	struct tree_extent *extents = tree_extents(t);
	struct numbers *n = extents ? numbers_new(&extents[0]) : NULL;

	if (!n) {
		err_set(e, "out of memory");
	} else if (numbers_fill(n, t, extents, e)) {
		numbers_free(n);
		n = NULL;
	}
	free(extents);
	return n;
}

void numbers_free(struct numbers *n)
{
	if (!n)
		return;
	free(n->first);
	free(n->pu);
	free(n);
}
