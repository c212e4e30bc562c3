/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topo/inventory.h"

#include <ctype.h>
#include <slurm/slurm.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "topo/shape.h"
#include "topo/snapshot.h"

struct kind {
	char name[SHAPE_NAME];
	char *shape;
	hostlist_t nodes;
};

struct inventory {
	struct kind *kinds;
	size_t count;
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

static void kind_clear(struct kind *k)
{
	free(k->shape);
	if (k->nodes)
		slurm_hostlist_destroy(k->nodes);
}

void inventory_free(struct inventory *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->count; i++)
		kind_clear(&v->kinds[i]);
	free(v->kinds);
	free(v);
}

static struct kind *kind_find(struct inventory *v, const char *name)
{
	for (size_t i = 0; i < v->count; i++)
		if (!strcmp(v->kinds[i].name, name))
			return &v->kinds[i];
	return NULL;
}

static struct kind *kind_add(struct inventory *v, const char *name, const char *shape)
{
	struct kind *bigger = realloc(v->kinds, (v->count + 1) * sizeof(*bigger)), *k;

	if (!bigger)
		return NULL;
	v->kinds = bigger;
	k = &bigger[v->count];
	snprintf(k->name, sizeof(k->name), "%s", name);
	k->shape = strdup(shape);
	k->nodes = slurm_hostlist_create(NULL);
	if (k->shape && k->nodes) {
		v->count++;
		return k;
	}
	kind_clear(k);
	return NULL;
}

static int shape_check(const char *nodes, const char *text, struct err *e)
{
	struct shape *s = shape_parse(text, e);

	if (!s)
		return err_within(e, "%s", nodes);
	shape_free(s);
	return 0;
}

/*
 * libslurm makes the best of a broken host list ("cn[1-" is a node "cn]" to it), so the form is checked before: names of letters,
 * digits, '.', '_' and '-', with numbers, ranges and commas in brackets that close.
 */
static bool is_host_list(const char *list)
{
	static const char inside[] = "0123456789-,";
	bool open = false, any = false;

	for (const char *p = list; *p; p++) {
		bool bracket = *p == (open ? ']' : '[');

		if (!bracket && !(open ? strchr(inside, *p) != NULL : isalnum((unsigned char) *p) || strchr("._-,", *p)))
			return false;
		if (bracket && !(any || !open))
			return false;
		any = !bracket && isdigit((unsigned char) *p);
		open ^= bracket;
	}
	return *list && !open;
}

int inventory_add(struct inventory *v, const char *nodes, const char *shape, struct err *e)
{
	char name[SHAPE_NAME];
	struct kind *k;

	if (!is_host_list(nodes))
		return err_set(e, "'%s': not a host list", nodes);
	shape_name(shape, name);
	k = kind_find(v, name);
	/* Eight digits can collide. */
	if (k && strcmp(k->shape, shape))
		return err_set(e, "%s: its shape and another have one name, %s", nodes, name);
	if (!k && shape_check(nodes, shape, e))
		return -1;
	if (!k && !(k = kind_add(v, name, shape)))
		return err_set(e, "%s: out of memory", nodes);
	if (slurm_hostlist_push(k->nodes, nodes) < 1)
		return err_set(e, "%s: not a host list", nodes);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct kind *) a)->name, ((const struct kind *) b)->name);
}

/* The nodes of all kinds together have no doubles that the kinds apart do not have. */
static int check_apart(const struct inventory *v, struct err *e)
{
	hostlist_t all = slurm_hostlist_create(NULL);
	int before = 0, after;

	for (size_t i = 0; i < v->count; i++) {
		char *list = slurm_hostlist_ranged_string_malloc(v->kinds[i].nodes);

		before += slurm_hostlist_count(v->kinds[i].nodes);
		if (list)
			slurm_hostlist_push(all, list);
		free(list);
	}
	slurm_hostlist_uniq(all);
	after = slurm_hostlist_count(all);
	slurm_hostlist_destroy(all);
	return before == after ? 0 : err_set(e, "%d node(s) stand in two shapes", before - after);
}

static void write_kind(const struct kind *k, struct buf *out)
{
	char *list = slurm_hostlist_ranged_string_malloc(k->nodes);

	if (!list) {
		out->failed = true;
		return;
	}
	snapshot_add_shape(out, k->name, k->shape);
	if (*list)
		snapshot_add_nodes(out, list, k->name);
	free(list);
}

int inventory_snapshot(const struct inventory *v, struct buf *out, struct err *e)
{
	struct buf b = {0};

	for (size_t i = 0; i < v->count; i++)
		slurm_hostlist_uniq(v->kinds[i].nodes);
	if (check_apart(v, e))
		return -1;
	if (v->count)
		qsort(v->kinds, v->count, sizeof(*v->kinds), by_name);
	snapshot_start(&b);
	for (size_t i = 0; i < v->count; i++)
		write_kind(&v->kinds[i], &b);
	snapshot_end(&b);
	if (b.failed) {
		buf_free(&b);
		return err_set(e, "out of memory");
	}
	*out = b;
	return 0;
}
