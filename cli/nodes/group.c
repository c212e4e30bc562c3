/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "group.h"

#include <stdlib.h>
#include <string.h>

#include "cmd.h"

static int by_key(const void *a, const void *b)
{
	const struct group_row *x = a, *y = b;
	int order = strcmp(x->key, y->key);

	return order ? order : host_compare(&x->host, &y->host);
}

static int group_row_init(const json_t *row, void (*key)(const json_t *row, struct buf *out), struct group_row *out)
{
	struct buf text = {0};

	buf_puts(&text, "");
	key(row, &text);
	if (text.failed) {
		buf_free(&text);
		return -1;
	}
	*out = (struct group_row){ .host = host_of(cmd_text(row, "node")), .key = text.data, .row = row };
	return 0;
}

/* Adjacent rows with one key form a group; a node that repeats a row counts once. The row after the last has no key. */
static void groups_collect(struct groups *g, struct group_row *rows, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		bool same = kept && !strcmp(rows[kept - 1].key, rows[i].key);

		if (same && !host_compare(&rows[kept - 1].host, &rows[i].host)) {
			free((char *) rows[i].key);
			continue;
		}
		if (!same)
			g->list[g->n++] = (struct group){ .rows = &rows[kept] };
		g->list[g->n - 1].n++;
		rows[kept++] = rows[i];
	}
	rows[kept].key = NULL;
}

int groups_make(const json_t *rows, void (*key)(const json_t *row, struct buf *out), struct groups *out, struct err *e)
{
	size_t n = json_array_size(rows), i = 0;
	struct groups g = { .list = calloc(n + 1, sizeof(*g.list)), .rows = calloc(n + 1, sizeof(*g.rows)) };

	for (; g.list && g.rows && i < n; i++)
		if (group_row_init(json_array_get(rows, i), key, &g.rows[i]))
			break;
	if (!g.list || !g.rows || i < n) {
		groups_free(&g);
		return err_set(e, "out of memory");
	}
	qsort(g.rows, n, sizeof(*g.rows), by_key);
	groups_collect(&g, g.rows, n);
	*out = g;
	return 0;
}

void groups_free(struct groups *g)
{
	for (struct group_row *r = g->rows; r && r->key; r++)
		free((char *) r->key);
	free(g->rows);
	free(g->list);
	*g = (struct groups){0};
}

void group_hosts(const struct group *g, struct buf *out)
{
	hosts_fold(&g->rows->host, g->n, sizeof(*g->rows), out);
}
