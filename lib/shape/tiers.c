/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/strings_parts.h"

#include <stdlib.h>
#include <string.h>

struct memory_node {
	size_t object;
	unsigned first, cores;	/* local to it */
	struct tier_facts facts;
};

static struct memory_node node_read(const struct tree *t, const struct tree_extent *s, size_t i)
{
	const struct tree_extent *near = &s[tree_extent_around(t, s, i)];

	return (struct memory_node){
		.object = i, .first = near->first, .cores = near->cores,
		.facts = { .subtype = tree_attr(&t->objects[i], "subtype"),
			.dax = tree_info(&t->objects[i], "DAXType") },
	};
}

static int by_object(const void *object, const void *node)
{
	long a = *(const long *) object, b = ((const struct memory_node *) node)->object;

	return a < b ? -1 : a > b;
}

static void bandwidth_add(struct memory_node *nodes, size_t n, long object, unsigned long long value)
{
	struct memory_node *node = bsearch(&object, nodes, n, sizeof(*nodes), by_object);

	if (node && node->facts.bandwidth < value)
		node->facts.bandwidth = value;
}

static unsigned long long number_in(const struct tree_extra *x, const char *name)
{
	const char *value = tree_extra_attr(x, name);

	return value ? strtoull(value, NULL, 10) : 0;
}

/* The values of an attribute follow it. */
static void bandwidths_read(const struct tree *t, struct memory_node *nodes, size_t n)
{
	bool inside = false;

	for (size_t i = 0; i < t->nextras; i++) {
		const struct tree_extra *x = &t->extras[i];
		const char *name = tree_extra_attr(x, "name");

		if (x->element->tag != TAG_MEMATTR_VALUE)
			inside = x->element->tag == TAG_MEMATTR && name && !strcmp(name, "Bandwidth");
		else if (inside)
			bandwidth_add(nodes, n, tree_by_gp(t, number_in(x, "target_obj_gp_index")),
				      number_in(x, "value"));
	}
}

static bool share_cores(const struct memory_node *a, const struct memory_node *b)
{
	return a->first < b->first + b->cores && b->first < a->first + a->cores;
}

static void others_find(struct memory_node *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++) {
			unsigned long long *other = &nodes[i].facts.other, value = nodes[k].facts.bandwidth;

			if (k != i && value && tier_is_plain(&nodes[k].facts) && share_cores(&nodes[i], &nodes[k]) &&
			    (!*other || value < *other))
				*other = value;
		}
}

unsigned char *tiers_find(const struct tree *t, const struct tree_extent *extents)
{
	struct memory_node *nodes = malloc(t->n * sizeof(*nodes));
	unsigned char *tiers = calloc(t->n, sizeof(*tiers));
	size_t n = 0;

	for (size_t i = 0; nodes && i < t->n; i++)
		if (tree_object_is(t, i, "NUMANode"))
			nodes[n++] = node_read(t, extents, i);
	bandwidths_read(t, nodes, n);
	others_find(nodes, n);
	for (size_t i = 0; tiers && i < n; i++)
		tiers[nodes[i].object] = tier_of(&nodes[i].facts);
	if (!nodes) {
		free(tiers);
		tiers = NULL;
	}
	free(nodes);
	return tiers;
}
