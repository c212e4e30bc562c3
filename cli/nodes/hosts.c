/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hosts.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "shape/hostlist.h"

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

static void drop_doubles(struct hosts *h)
{
	struct wanted *w = hosts_wanted(h);
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++) {
		if (n && !host_compare(&w[n - 1], &w[i]))
			free((char *) w[i].host.name);
		else
			w[n++] = w[i];
	}
	h->n = n;
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
		qsort(hosts_wanted(h), h->n, sizeof(struct wanted), host_compare);
		drop_doubles(h);
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

/* Folded; how many they are. */
static size_t hosts_missing(const struct hosts *h, struct buf *out)
{
	struct wanted *left = malloc(h->n * sizeof(*left));
	size_t n = 0;

	if (!left) {
		out->failed = true;
		return 0;
	}
	for (size_t i = 0; i < h->n; i++)
		if (!hosts_wanted(h)[i].found)
			left[n++] = hosts_wanted(h)[i];
	if (n)
		hosts_fold(&left->host, n, sizeof(*left), out);
	free(left);
	return n;
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

static void rows_keep(struct hosts *h, json_t *answer, const char *array)
{
	json_t *kept = json_array(), *row;
	size_t i;

	json_array_foreach(json_object_get(answer, array), i, row)
		if (hosts_find(h, cmd_text(row, "node")))
			json_array_append(kept, row);
	json_object_set_new(answer, array, kept);
}

static int report_missing(struct cmd *c, const struct hosts *h, struct err *e)
{
	struct buf names = {0};
	size_t n = hosts_missing(h, &names);
	int rc = 0;

	if (names.failed) {
		rc = err_set(e, "out of memory");
	} else if (n == h->n) {
		rc = err_set(e, "%.400s: not in the registry", names.data);
	} else if (n) {
		log_warning("%s: not in the registry", names.data);
		c->status = EXIT_FAILURE;
	}
	buf_free(&names);
	return rc;
}

static bool all_found(const struct hosts *h)
{
	for (size_t i = 0; i < h->n; i++)
		if (!hosts_wanted(h)[i].found)
			return false;
	return true;
}

int hosts_keep(struct cmd *c, const char *list, json_t *answer, const char *array, bool whole, struct err *e)
{
	struct hosts *h = hosts_new(list, e);
	int rc;

	if (!h)
		return -1;
	rows_keep(h, answer, array);
	rc = whole || all_found(h) ? 0 : check_unlisted(c, h, list, e);
	if (rc == 0)
		rc = report_missing(c, h, e);
	hosts_free(h);
	return rc;
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
