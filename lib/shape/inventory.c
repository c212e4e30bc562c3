/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/inventory.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/order.h"
#include "shape/shape.h"
#include "shape/snapshot.h"

struct kind {
	char name[SHAPE_NAME];
	char *shape;
};

struct node {
	struct hostlist_name host;	/* first, as host_compare and hosts_fold require; owns its name */
	const struct kind *kind;
};

struct inventory {
	struct kind **kinds;
	size_t nkinds;
	struct node *nodes;
	size_t nnodes;
	struct hostlist_usage usage;
};

void shape_name(const char *shape, char out[static SHAPE_NAME])
{
	char hex[HASH_HEX];

	hash_hex(shape, strlen(shape), hex);
	snprintf(out, SHAPE_NAME, "s%.8s", hex);
}

struct inventory *inventory_new(void)
{
	return calloc(1, sizeof(struct inventory));
}

static void drop_nodes(struct inventory *v, size_t keep)
{
	while (v->nnodes > keep)
		free((char *) v->nodes[--v->nnodes].host.name);
}

void inventory_free(struct inventory *v)
{
	if (!v)
		return;
	drop_nodes(v, 0);
	for (size_t i = 0; i < v->nkinds; i++) {
		free(v->kinds[i]->shape);
		free(v->kinds[i]);
	}
	free(v->nodes);
	free(v->kinds);
	free(v);
}

static const struct kind *kind_of(struct inventory *v, const char *shape, struct err *e)
{
	struct shape *parsed;
	struct kind *k = NULL;
	char name[SHAPE_NAME];

	for (size_t i = 0; i < v->nkinds; i++)
		if (!strcmp(v->kinds[i]->shape, shape))
			return v->kinds[i];
	shape_name(shape, name);
	/* Eight digits can collide. */
	for (size_t i = 0; i < v->nkinds; i++)
		if (!strcmp(v->kinds[i]->name, name))
			return err_null(e, "the hash of its shape, %s, collides with that of another shape", name);
	/* Of a text that is a shape. */
	if (!(parsed = shape_parse(shape, e)))
		return NULL;
	shape_free(parsed);
	if (array_reserve(v->kinds, v->nkinds, 1) || !(k = calloc(1, sizeof(*k))) || !(k->shape = strdup(shape))) {
		free(k);
		return err_null(e, "out of memory");
	}
	memcpy(k->name, name, sizeof(k->name));
	return v->kinds[v->nkinds++] = k;
}

struct adding {
	struct inventory *inventory;
	const struct kind *kind;
	struct err *err;
};

static int node_add(const char *name, void *user)
{
	struct adding *a = user;
	struct inventory *v = a->inventory;
	char *copy;

	if (array_reserve(v->nodes, v->nnodes, 1) || !(copy = strdup(name)))
		return err_set(a->err, "%s: out of memory", name);
	v->nodes[v->nnodes++] = (struct node){ host_of(copy), a->kind };
	return 0;
}

int inventory_add(struct inventory *v, const char *nodes, const char *shape, struct err *e)
{
	struct adding adding = { v, kind_of(v, shape, e), e };
	struct hostlist_usage usage = v->usage;
	size_t before = v->nnodes;

	if (!adding.kind)
		return err_within(e, "%.200s", nodes);
	if (hostlist_expand_more(nodes, &usage, node_add, &adding, e)) {
		drop_nodes(v, before);
		return -1;
	}
	v->usage = usage;
	return 0;
}

ORDER(by_kind, struct node,
      (x->kind == y->kind ? 0 : strcmp(x->kind->name, y->kind->name)) ?: host_compare(x, y))

/* Removes duplicates from nodes sorted by host. Returns the number that remain, or -1 when a node has two shapes. */
static long nodes_unite(struct node *nodes, size_t n, struct err *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const struct node *last = kept ? &nodes[kept - 1] : NULL;

		if (!last || host_compare(last, &nodes[i]))
			nodes[kept++] = nodes[i];
		else if (last->kind != nodes[i].kind)
			return err_set(e, "node %s is listed in two shapes, %s and %s", last->host.name,
				       last->kind->name, nodes[i].kind->name);
	}
	return kept;
}

int inventory_snapshot(const struct inventory *v, const char *database, struct buf *out, struct err *e)
{
	struct node *nodes = malloc((v->nnodes + 1) * sizeof(*nodes));
	struct buf b = {0};
	long n = -1;

	if (!nodes)
		return err_set(e, "out of memory");
	if (v->nnodes)
		memcpy(nodes, v->nodes, v->nnodes * sizeof(*nodes));
	qsort(nodes, v->nnodes, sizeof(*nodes), host_compare);
	if ((n = nodes_unite(nodes, v->nnodes, e)) >= 0) {
		qsort(nodes, n, sizeof(*nodes), by_kind);
		struct buf hosts = {0};

		snapshot_start(&b);
		if (database)
			buf_printf(&b, SNAPSHOT_DATABASE "%s\n", database);
		for (long first = 0, end; first < n; first = end) {
			for (end = first + 1; end < n && nodes[end].kind == nodes[first].kind;)
				end++;
			hosts.len = 0;
			hosts_fold(&nodes[first].host, end - first, sizeof(*nodes), &hosts);
			if (hosts.failed)
				break;
			snapshot_add_shape(&b, nodes[first].kind->name, nodes[first].kind->shape);
			snapshot_add_nodes(&b, hosts.data, nodes[first].kind->name);
		}
		b.failed |= hosts.failed;
		buf_free(&hosts);
		snapshot_end(&b);
	}
	free(nodes);
	if (n >= 0 && !b.failed) {
		*out = b;
		return 0;
	}
	buf_free(&b);
	return n < 0 ? -1 : err_set(e, "out of memory");
}
