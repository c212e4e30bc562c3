/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "hwcmp/compare_parts.h"

/* The number at the end of "core 17", if the label has one. */
static bool label_number(const char *label, const char *kind, unsigned long *number)
{
	size_t len = kind ? strlen(kind) : 0;
	char *end;

	if (!len || strncmp(label, kind, len) || label[len] != ' ' || label[len + 1] < '0' || label[len + 1] > '9')
		return false;
	*number = strtoul(label + len + 1, &end, 10);
	return !*end;
}

void compare_remark_add(struct compare_remarks *r, enum severity s, enum change_direction d, size_t order,
			const char *kind, const char *label, const char *what, const char *from, const char *to,
			struct buf *tail)
{
	struct compare_remark *x = r->failed || tail->failed ? NULL : array_add(r->list, r->n);

	if (!x) {
		r->failed = true;
		buf_free(tail);
		return;
	}
	*x = (struct compare_remark){
		.c = { s, d, strdup(label), strdup(what), strdup(from), strdup(to), tail->data },
		.order = order,
	};
	*tail = (struct buf){0};
	x->kind = label_number(label, kind, &x->number) ? kind : NULL;
	r->failed |= !x->c.object || !x->c.what || !x->c.from || !x->c.to || !x->c.words;
}

/* --- merging --- */

static int same_order(const struct compare_remark *a, const struct compare_remark *b)
{
	int rc;

	if (a->c.severity != b->c.severity)
		return a->c.severity > b->c.severity ? -1 : 1;
	if (a->c.direction != b->c.direction)
		return a->c.direction < b->c.direction ? -1 : 1;
	if (!a->kind || !b->kind)
		return (a->kind != NULL) - (b->kind != NULL);
	rc = strcmp(a->kind, b->kind);
	return rc ? rc : strcmp(a->c.words, b->c.words);
}

static int fold_order(const void *x, const void *y)
{
	const struct compare_remark *a = x, *b = y;
	int rc = same_order(a, b);

	if (!rc && a->number != b->number)
		rc = a->number < b->number ? -1 : 1;
	return rc ? rc : (a->order > b->order) - (a->order < b->order);
}

static int final_order(const void *x, const void *y)
{
	const struct compare_remark *a = x, *b = y;

	if (a->c.severity != b->c.severity)
		return a->c.severity > b->c.severity ? -1 : 1;
	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	return strcmp(a->c.words, b->c.words);
}

/* "cores 3,16-19" */
static char *fold_label(const struct compare_remark *list, size_t n)
{
	struct buf b = {0};

	buf_printf(&b, "%ss ", list->kind);
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && list[j].number - list[j - 1].number <= 1; j++)
			;
		buf_printf(&b, "%s%lu", i ? "," : "", list[i].number);
		if (list[j - 1].number > list[i].number)
			buf_printf(&b, "-%lu", list[j - 1].number);
	}
	if (b.failed)
		buf_free(&b);
	return b.data;
}

/* Equal remarks about several objects of a kind become one. */
static int remarks_fold(struct compare_remarks *r)
{
	size_t n = 0;

	for (size_t i = 0, j; i < r->n; i = j) {
		struct compare_remark *first = &r->list[i];

		for (j = i + 1; j < r->n && first->kind && !same_order(first, &r->list[j]); j++)
			if (r->list[j].order < first->order)
				first->order = r->list[j].order;
		if (j - i > 1) {
			char *label = fold_label(first, j - i);

			free(first->c.object);
			first->c.object = label;
			r->failed |= !label;
		}
		for (size_t k = i + 1; k < j; k++)
			change_free(&r->list[k].c);
		r->list[n++] = *first;
	}
	r->n = n;
	return r->failed ? -1 : 0;
}

static int sentence_complete(struct change *c)
{
	struct buf b = {0};

	buf_puts(&b, c->object);
	buf_puts(&b, c->words);
	if (b.failed) {
		buf_free(&b);
		return -1;
	}
	free(c->words);
	c->words = b.data;
	return 0;
}

static void remarks_free(struct compare_remarks *r)
{
	for (size_t i = 0; i < r->n; i++)
		change_free(&r->list[i].c);
	free(r->list);
	*r = (struct compare_remarks){0};
}

int compare_remarks_finish(struct compare_remarks *r, struct changes *out)
{
	struct changes c = {0};
	int rc = r->failed ? -1 : 0;

	if (!rc && r->n) {
		qsort(r->list, r->n, sizeof(*r->list), fold_order);
		rc = remarks_fold(r);
	}
	if (!rc && r->n) {
		qsort(r->list, r->n, sizeof(*r->list), final_order);
		if (!(c.list = calloc(r->n, sizeof(*c.list))))
			rc = -1;
	}
	for (size_t i = 0; !rc && i < r->n; i++)
		rc = sentence_complete(&r->list[i].c);
	if (!rc) {
		for (; c.n < r->n; c.n++)
			c.list[c.n] = r->list[c.n].c;
		*out = c;
		r->n = 0;
	} else {
		free(c.list);
	}
	remarks_free(r);
	return rc;
}
