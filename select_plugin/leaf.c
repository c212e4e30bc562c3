/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "leaf.h"

#include <stdlib.h>

#include "base/string_map.h"

static struct {
	int nodes;			/* 0: not read */
	struct place {
		uint32_t leaf;
		char *dynamic;		/* topology_str then: scontrol may move a node */
	} *places;			/* by node */
	struct string_map names;
} all;

void leaf_forget(void)
{
	for (int i = 0; i < all.nodes; i++)
		xfree(all.places[i].dynamic);
	free(all.places);
	string_map_free(&all.names);
	memset(&all, 0, sizeof(all));
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && !strcmp(text + len - n, end);
}

/*
 * The path of a node's leaf in its address, "top.leaf1" of "top.leaf1.cn1": NULL if it has none, or several as in
 * "leaf[1-2]" and "leaf1,other". Cuts the address.
 */
static char *leaf_path(char *address, const char *pattern, const char *node)
{
	size_t len = strlen(address), name = strlen(node) + 1;
	const char *last;

	if ((!ends_with(pattern, "switch.node") && !ends_with(pattern, "block.node")) || len <= name)
		return NULL;
	address[len - name] = 0;
	last = strrchr(address, '.');
	last = last ? last + 1 : address;
	return *last && !strpbrk(last, "[,") ? address : NULL;
}

static uint32_t leaf_read(const node_record_t *node)
{
	char *address = NULL, *pattern = NULL, *path = NULL;
	size_t leaf = STRING_MAP_NONE;

	if (node && !glue_network_address(node, &address, &pattern) && address && pattern)
		path = leaf_path(address, pattern, node->name);
	if (path)
		leaf = string_map_add(&all.names, path);
	xfree(address);
	xfree(pattern);
	return leaf == STRING_MAP_NONE ? LEAF_NONE : leaf;
}

unsigned leaf_count(const job_record_t *job)
{
	if (!glue_cluster_network(job))
		return 0;
	if (all.nodes == node_record_count)
		return all.names.count;
	leaf_forget();
	if (!(all.places = calloc(node_record_count, sizeof(*all.places))))
		return 0;
	all.nodes = node_record_count;
	for (int i = 0; i < all.nodes; i++)
		all.places[i] = (struct place){ leaf_read(node_record_table_ptr[i]),
						xstrdup(glue_network_place(node_record_table_ptr[i])) };
	return all.names.count;
}

uint32_t leaf_of(int node)
{
	const struct place *p = &all.places[node];

	return xstrcmp(p->dynamic, glue_network_place(node_record_table_ptr[node])) ? LEAF_NONE : p->leaf;
}
