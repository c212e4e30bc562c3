/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/log.h"
#include "base/order.h"
#include "nodes.h"

#define LIST_IN_PATH 4096	/* bytes; topiaryd accepts 32 KiB of headers, and escaping triples a byte */

struct wanted {
	struct hostlist_name host;	/* first, for host_compare and hosts_fold */
	bool found;
};

/* The names of the user's host list, as a sorted array: answers have up to 100,000 rows. */
struct hosts {
	struct buf list;	/* struct wanted[n], sorted, without doubles */
	size_t n;
};

static struct wanted *hosts_wanted(const struct hosts *h)
{
	return (struct wanted *) h->list.data;
}

static int hosts_add(const char *name, void *user)
{
	struct hosts *h = user;
	char *copy = strdup(name);
	struct wanted w = { .host = copy ? host_of(copy) : (struct hostlist_name){0} };

	if (copy)
		buf_add(&h->list, &w, sizeof(w));
	if (!copy || h->list.failed) {
		free(copy);
		return -1;
	}
	h->n++;
	return 0;
}

static void hosts_free(struct hosts *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->n; i++)
		free((char *) hosts_wanted(h)[i].host.name);
	buf_free(&h->list);
	free(h);
}

static struct hosts *hosts_new(const char *list, struct err *e)
{
	struct hosts *h = calloc(1, sizeof(*h));

	err_set(e, "out of memory");
	if (h && hostlist_expand(list, hosts_add, h, e) == 0 && h->n) {
		struct wanted *w = hosts_wanted(h);
		size_t n = 0;

		qsort(w, h->n, sizeof(*w), host_compare);
		for (size_t i = 0; i < h->n; i++)
			if (n && !host_compare(&w[n - 1], &w[i]))
				free((char *) w[i].host.name);
			else
				w[n++] = w[i];
		h->n = n;
		return h;
	}
	hosts_free(h);
	return NULL;
}

static bool hosts_find(struct hosts *h, const char *name)
{
	const struct hostlist_name host = host_of(name);
	struct wanted *w = bsearch(&host, hosts_wanted(h), h->n, sizeof(*w), host_compare);

	if (w)
		w->found = true;
	return w;
}

void hosts_query(struct buf *path, const char *list)
{
	if (list && strlen(list) <= LIST_IN_PATH)
		cmd_query(path, "hosts", list);
}

/* Nodes that a filter removed from the answer may still be known to the registry. */
static int check_unlisted(const struct cmd *c, struct hosts *h, const char *list, struct err *e)
{
	struct buf path = {0};
	const json_t *node;
	json_t *answer;
	size_t i;

	buf_puts(&path, "/v1/nodes");
	hosts_query(&path, list);
	if (!(answer = cmd_get_list(c, &path, "nodes", e)))
		return -1;
	json_array_foreach(json_object_get(answer, "nodes"), i, node)
		hosts_find(h, cmd_text(node, "node"));
	json_decref(answer);
	return 0;
}

int hosts_keep(struct cmd *c, const char *list, json_t *answer, const char *array, bool whole, struct err *e)
{
	struct hosts *h = hosts_new(list, e);
	json_t *kept = json_array(), *row;
	int rc = 0;
	size_t i;

	if (!h)
		goto error;
	json_array_foreach(json_object_get(answer, array), i, row)
		if (hosts_find(h, cmd_text(row, "node")))
			json_array_append(kept, row);
	json_object_set_new(answer, array, kept);
	for (i = 0; !whole && i < h->n && hosts_wanted(h)[i].found; i++)
		;
	if (!whole && i < h->n)
		rc = check_unlisted(c, h, list, e);
	if (rc == 0) {
		struct wanted *left = malloc(h->n * sizeof(*left));
		struct buf names = {0};
		size_t n = 0;

		for (size_t k = 0; left && k < h->n; k++)
			if (!hosts_wanted(h)[k].found)
				left[n++] = hosts_wanted(h)[k];
		if (n)
			hosts_fold(&left->host, n, sizeof(*left), &names);
		if (!left || names.failed) {
			rc = err_set(e, "out of memory");
		} else if (n == h->n) {
			rc = err_set(e, "%.400s: not in the registry", names.data);
		} else if (n) {
			log_warning("%s: not in the registry", names.data);
			c->status = EXIT_FAILURE;
		}
		free(left);
		buf_free(&names);
	}
	hosts_free(h);
	return rc;
error:
	json_decref(kept);
	return -1;
}

struct row {
	struct hostlist_name host;	/* first, for host_compare */
	json_t *row;
};

int hosts_sort(json_t *answer, const char *array, struct err *e)
{
	const json_t *rows = json_object_get(answer, array);
	size_t n = json_array_size(rows);
	struct row *list = malloc((n + 1) * sizeof(*list));
	json_t *sorted = json_array();

	if (!list)
		goto error;
	for (size_t i = 0; i < n; i++) {
		json_t *row = json_array_get(rows, i);

		list[i] = (struct row){ .host = host_of(cmd_text(row, "node")), .row = row };
	}
	qsort(list, n, sizeof(*list), host_compare);
	for (size_t i = 0; i < n; i++)
		if (json_array_append(sorted, list[i].row))
			goto error;
	free(list);
	return json_object_set_new(answer, array, sorted) ? err_set(e, "out of memory") : 0;
error:
	free(list);
	json_decref(sorted);
	return err_set(e, "out of memory");
}

/* --- groups --- */

ORDER(by_key, struct group_row, strcmp(x->key, y->key) ?: host_compare(&x->host, &y->host))

int groups_make(const json_t *rows, void (*key)(const json_t *row, struct buf *out), struct groups *out, struct err *e)
{
	size_t n = json_array_size(rows), kept = 0, i = 0;
	struct groups g = { .list = calloc(n + 1, sizeof(*g.list)), .rows = calloc(n + 1, sizeof(*g.rows)) };

	for (; g.list && g.rows && i < n; i++) {
		const json_t *row = json_array_get(rows, i);
		struct buf text = {0};

		buf_puts(&text, "");
		key(row, &text);
		if (text.failed) {
			buf_free(&text);
			break;
		}
		g.rows[i] = (struct group_row){ .host = host_of(cmd_text(row, "node")), .key = text.data, .row = row };
	}
	if (!g.list || !g.rows || i < n) {
		groups_free(&g);
		return err_set(e, "out of memory");
	}
	qsort(g.rows, n, sizeof(*g.rows), by_key);
	/* Adjacent rows with one key form a group; a node that repeats a row counts once. The last one has no key. */
	for (i = 0; i < n; i++) {
		const struct group_row *last = kept ? &g.rows[kept - 1] : NULL, *r = &g.rows[i];
		bool same = last && !strcmp(last->key, r->key);

		if (same && !host_compare(&last->host, &r->host)) {
			free((char *) r->key);
			continue;
		}
		if (!same)
			g.list[g.n++] = (struct group){ .rows = &g.rows[kept] };
		g.list[g.n - 1].n++;
		g.rows[kept++] = *r;
	}
	g.rows[kept].key = NULL;
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
