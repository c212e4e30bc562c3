/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "fabric/recognise/grid.h"
#include "fabric/read/readers.h"
#include "fabric/read/slurm_parts.h"

/*
 * Slurm's topology.yaml(5): of several topologies the cluster's default, else the first. Trees and blocks have the
 * meaning of topology.conf. A torus3d or a ring becomes a switch for each place, with its node.
 */
struct yaml {
	struct lines *lines;
	struct fabric_draft *draft;
	yaml_document_t document;
};

static int wrong_at(struct yaml *y, const yaml_node_t *at, const char *what)
{
	y->lines->line = at->start_mark.line + 1;
	return lines_wrong(y->lines, "%s", what);
}

static yaml_node_t *node_of(struct yaml *y, int index)
{
	return yaml_document_get_node(&y->document, index);
}

static char *scalar_text(const yaml_node_t *n)
{
	return n && n->type == YAML_SCALAR_NODE ? (char *) n->data.scalar.value : NULL;
}

/* For an empty value `scontrol show topoconf` writes a key without a value, {} or []. */
static bool is_empty(const yaml_node_t *n)
{
	switch (n->type) {
	case YAML_MAPPING_NODE:
		return n->data.mapping.pairs.start == n->data.mapping.pairs.top;
	case YAML_SEQUENCE_NODE:
		return n->data.sequence.items.start == n->data.sequence.items.top;
	default:
		return n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !n->data.scalar.length;
	}
}

/* The value of a key of a mapping, or NULL when there is none. */
static yaml_node_t *value_of(struct yaml *y, const yaml_node_t *map, const char *key)
{
	if (map->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
		const char *name = scalar_text(node_of(y, p->key));

		if (name && !strcmp(name, key))
			return is_empty(node_of(y, p->value)) ? NULL : node_of(y, p->value);
	}
	return NULL;
}

/*
 * The host list of a key of a mapping: text, without the breaks of a folded or literal block, or the items of a list,
 * put together into out. NULL: there is none, or an error in y->lines->err.
 */
static const char *hosts_of(struct yaml *y, const yaml_node_t *map, const char *key, struct buf *out)
{
	const yaml_node_t *value = value_of(y, map, key);
	bool list = value && value->type == YAML_SEQUENCE_NODE;
	size_t n = list ? value->data.sequence.items.top - value->data.sequence.items.start : value ? 1 : 0;

	for (size_t i = 0; i < n; i++) {
		const char *text = scalar_text(list ? node_of(y, value->data.sequence.items.start[i]) : value);

		if (!text) {
			wrong_at(y, value, "expected names of hosts or switches, as text or as a list");
			return NULL;
		}
		buf_puts(out, i ? "," : "");
		for (; *text; text++)
			if (!strchr(" \t\r\n", *text))
				buf_add(out, text, 1);
	}
	if (out->failed)
		lines_wrong(y->lines, "out of memory");
	return out->failed || !n ? NULL : out->data;
}

/* The list of a key of a mapping, or NULL with an error. */
static yaml_node_t *list_of(struct yaml *y, const yaml_node_t *map, const char *key)
{
	yaml_node_t *list = value_of(y, map, key);

	if (list && list->type == YAML_SEQUENCE_NODE)
		return list;
	y->lines->line = map->start_mark.line + 1;
	lines_wrong(y->lines, "expected a list of %s", key);
	return NULL;
}

/* Checks that a mapping has no keys but these. */
static int check_keys(struct yaml *y, const yaml_node_t *map, const char *const *known)
{
	if (map->type != YAML_MAPPING_NODE)
		return wrong_at(y, map, "expected a mapping");
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = node_of(y, p->key);
		const char *name = scalar_text(key);
		size_t i = 0;

		while (name && known[i] && strcmp(known[i], name))
			i++;
		if (name && known[i])
			continue;
		y->lines->line = key->start_mark.line + 1;
		return lines_wrong(y->lines, "%.60s: unknown key", name ? name : "this");
	}
	return 0;
}

/* Calls a function for each item of a list. */
static int items_each(struct yaml *y, const yaml_node_t *list,
		      int (*add)(struct yaml *y, const yaml_node_t *item, void *user), void *user)
{
	for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top; i++)
		if (add(y, node_of(y, *i), user))
			return -1;
	return 0;
}

static int add_record(struct yaml *y, const yaml_node_t *item, void *slurm, const char *what)
{
	const bool is_switch = !strcmp(what, "switch");
	const char *const known[] = { what, "nodes", is_switch ? "children" : NULL, NULL };
	struct slurm_record r = {0};
	struct buf nodes = {0}, children = {0};
	char *name = scalar_text(value_of(y, item, what));
	int rc = -1;

	if (check_keys(y, item, known))
		return -1;
	*(is_switch ? &r.name : &r.block) = name;
	if ((value_of(y, item, "nodes") && !(r.nodes = (char *) hosts_of(y, item, "nodes", &nodes))) ||
	    (is_switch && value_of(y, item, "children") &&
	     !(r.switches = (char *) hosts_of(y, item, "children", &children))))
		goto end;
	y->lines->line = item->start_mark.line + 1;
	rc = name ? slurm_add(slurm, &r) : lines_wrong(y->lines, "expected %s, a name", what);
end:
	buf_free(&nodes);
	buf_free(&children);
	return rc;
}

static int add_switch(struct yaml *y, const yaml_node_t *item, void *slurm)
{
	return add_record(y, item, slurm, "switch");
}

static int add_block(struct yaml *y, const yaml_node_t *item, void *slurm)
{
	return add_record(y, item, slurm, "block");
}

static int add_size(struct yaml *y, const yaml_node_t *item, void *slurm)
{
	const struct slurm_record r = { .sizes = scalar_text(item) };

	y->lines->line = item->start_mark.line + 1;
	return r.sizes ? slurm_add(slurm, &r) : lines_wrong(y->lines, "expected a number of nodes");
}

static int read_tree(struct yaml *y, const yaml_node_t *tree)
{
	static const char *const known[] = { "switches", NULL };
	struct slurm s = { .lines = y->lines, .draft = y->draft };
	yaml_node_t *list = check_keys(y, tree, known) ? NULL : list_of(y, tree, "switches");

	return slurm_end(&s, list ? items_each(y, list, add_switch, &s) : -1);
}

static int read_blocks(struct yaml *y, const yaml_node_t *block)
{
	static const char *const known[] = { "block_sizes", "blocks", NULL };
	struct slurm s = { .lines = y->lines, .draft = y->draft };
	yaml_node_t *sizes = check_keys(y, block, known) ? NULL : list_of(y, block, "block_sizes");
	yaml_node_t *blocks = sizes ? list_of(y, block, "blocks") : NULL;

	return slurm_end(&s, blocks && items_each(y, sizes, add_size, &s) == 0 ?
			 items_each(y, blocks, add_block, &s) : -1);
}

/* "x: 4, y: 4, z: 2", each from min up. */
static int read_xyz(struct yaml *y, const yaml_node_t *of, const char *key, unsigned min, unsigned out[GRID_DIMS])
{
	static const char *const known[] = { "x", "y", "z", NULL };
	const yaml_node_t *map = value_of(y, of, key);

	if (!map) {
		y->lines->line = of->start_mark.line + 1;
		return lines_wrong(y->lines, "expected %s with x, y and z", key);
	}
	if (check_keys(y, map, known))
		return -1;
	for (unsigned d = 0; d < GRID_DIMS; d++) {
		const char *number = scalar_text(value_of(y, map, known[d]));

		if (!number || !lines_word_number(number, GRID_MAX, &out[d]) || out[d] < min)
			return wrong_at(y, map, "expected a number for each of x, y and z");
	}
	return 0;
}

/* The nodes of a region of a torus; without a region, of all of it. */
static int set_nodes(struct yaml *y, const yaml_node_t *of, struct grid *g, const unsigned *anchor,
		     const unsigned *dims)
{
	struct buf list = {0};
	const char *nodes = hosts_of(y, of, "nodes", &list);
	int rc = -1;

	y->lines->line = of->start_mark.line + 1;
	if (nodes)
		rc = grid_place(g, y->lines, nodes, anchor, dims);
	else if (!value_of(y, of, "nodes"))
		rc = lines_wrong(y->lines, "expected nodes");
	buf_free(&list);
	return rc;
}

static int set_region(struct yaml *y, const yaml_node_t *item, void *user)
{
	static const char *const known[] = { "anchor", "dims", "nodes", NULL };
	unsigned anchor[GRID_DIMS], dims[GRID_DIMS];

	return check_keys(y, item, known) || read_xyz(y, item, "anchor", 0, anchor) ||
			read_xyz(y, item, "dims", 1, dims)
		? -1
		: set_nodes(y, item, user, anchor, dims);
}

static int add_torus(struct yaml *y, const yaml_node_t *item, void *user)
{
	static const char *const known[] = { "name", "dims", "nodes", "regions", "placements", NULL };
	static const unsigned origin[GRID_DIMS];
	const char *name = scalar_text(value_of(y, item, "name"));
	const yaml_node_t *regions = value_of(y, item, "regions");
	struct grid g = {0};
	int rc;

	(void) user;
	if (check_keys(y, item, known) || read_xyz(y, item, "dims", 1, g.dim))
		return -1;
	y->lines->line = item->start_mark.line + 1;
	if (!name || grid_begin(&g, y->lines, y->draft, name))
		return name ? -1 : lines_wrong(y->lines, "expected name");
	if (!regions)
		rc = set_nodes(y, item, &g, origin, g.dim);
	else
		rc = list_of(y, item, "regions") ? items_each(y, regions, set_region, &g) : -1;
	free(g.switches);
	return rc;
}

static int add_ring(struct yaml *y, const yaml_node_t *item, void *user)
{
	static const char *const known[] = { "ring", "nodes", NULL };
	const char *name = scalar_text(value_of(y, item, "ring")), *nodes;
	struct buf list = {0};
	int rc = -1;

	(void) user;
	if (check_keys(y, item, known))
		return -1;
	nodes = hosts_of(y, item, "nodes", &list);
	y->lines->line = item->start_mark.line + 1;
	if (name && nodes)
		rc = grid_ring(y->lines, y->draft, name, nodes);
	else if (!name || !value_of(y, item, "nodes"))
		rc = lines_wrong(y->lines, "expected ring, a name, and nodes");
	buf_free(&list);
	return rc;
}

static int read_toruses(struct yaml *y, const yaml_node_t *torus)
{
	yaml_node_t *list = list_of(y, torus, "toruses");

	return list ? items_each(y, list, add_torus, NULL) : -1;
}

static int read_rings(struct yaml *y, const yaml_node_t *ring)
{
	yaml_node_t *list = list_of(y, ring, "rings");

	return list ? items_each(y, list, add_ring, NULL) : -1;
}

static int read_topology(struct yaml *y, const yaml_node_t *topology)
{
	static const struct {
		const char *key;
		int (*read)(struct yaml *y, const yaml_node_t *of);
	} kinds[] = {
		{ "tree", read_tree }, { "block", read_blocks }, { "torus3d", read_toruses }, { "ring", read_rings },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const yaml_node_t *of = value_of(y, topology, kinds[i].key);

		if (of)
			return kinds[i].read(y, of);
	}
	if (value_of(y, topology, "flat"))
		return wrong_at(y, topology, "topology/flat: it has no switches");
	return wrong_at(y, topology, "expected a topology of tree, block, torus3d or ring");
}

/* YAML 1.1 has many spellings of true. */
static bool is_true(const char *word)
{
	return word && (!strcasecmp(word, "true") || !strcasecmp(word, "yes") || !strcasecmp(word, "on"));
}

static int read_document(struct yaml *y)
{
	yaml_node_t *list = yaml_document_get_root_node(&y->document), *first = NULL;

	if (!list || list->type != YAML_SEQUENCE_NODE ||
	    list->data.sequence.items.start == list->data.sequence.items.top) {
		y->lines->line = 1;
		return lines_wrong(y->lines, "expected a list of topologies");
	}
	for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top; i++) {
		yaml_node_t *topology = node_of(y, *i);

		if (!first || is_true(scalar_text(value_of(y, topology, "cluster_default"))))
			first = topology;
		if (is_true(scalar_text(value_of(y, topology, "cluster_default"))))
			break;
	}
	return read_topology(y, first);
}

int read_yaml(struct lines *l, struct fabric_draft *m)
{
	struct yaml y = { .lines = l, .draft = m };
	yaml_parser_t parser;
	int rc;

	if (!yaml_parser_initialize(&parser))
		return lines_wrong(l, "out of memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *) l->at, strlen(l->at));
	if (yaml_parser_load(&parser, &y.document)) {
		rc = read_document(&y);
		yaml_document_delete(&y.document);
	} else {
		l->line = parser.problem_mark.line + 1;
		rc = lines_wrong(l, "%s", parser.problem ? parser.problem : "out of memory");
	}
	yaml_parser_delete(&parser);
	return rc;
}
