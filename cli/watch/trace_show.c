/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace_show.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "table.h"

#define BAR 24			/* columns of the longest */

/* The values of the tick at a time, which is from..until. 1: the block has none. */
static int take_tick(struct trace_tree *t, const struct trace_block *b, double at, double *from, double *until)
{
	for (unsigned k = 0; k < b->n; k++) {
		if (b->times[k] * 1e-9 < at)
			continue;
		trace_tree_tick(t, b, k);
		*from = (k ? b->times[k - 1] : b->begin) * 1e-9;
		*until = b->times[k] * 1e-9;
		return 0;
	}
	return 1;
}

/* The values at a time; the average if it is NAN. All ticks count for the greatest ones. */
static int read_values(struct trace_tree *t, const struct trace *from, double at, double *begin, double *end,
		       struct err *e)
{
	struct trace_block b = {0};
	bool is_found = isnan(at);
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < from->nblocks; i++) {
		rc = trace_tree_read(t, from, i, &b, e);
		if (rc == 0 && !is_found)
			is_found = take_tick(t, &b, at, begin, end) == 0;
	}
	trace_block_free(&b);
	if (rc == 0 && !is_found)
		rc = err_set(e, "nothing at %.3f s: the trace ends at %.3f s", at, from->end * 1e-9);
	for (; rc == 0 && isnan(at) && t; t = t->beside)
		for (unsigned l = 0; l < t->n; l++)
			for (unsigned i = 0; i < t->levels[l].level->n; i++)
				t->levels[l].value[i] = trace_unit_statistics(&t->unit, t->view, l, i).average;
	return rc;
}

/* Of the user's locale: batch jobs have C, and what shows their output may know no other characters. */
static bool is_utf8(void)
{
	locale_t user = newlocale(LC_CTYPE_MASK, "", 0);
	bool found = user && !strcmp(nl_langinfo_l(CODESET, user), "UTF-8");

	if (user)
		freelocale(user);
	return found;
}

/* Green, yellow and red thirds, in characters that are a full and a half column wide. */
static void bar_cell(struct table *table, double part)
{
	const char *full = is_utf8() ? "\u2588" : "#", *half = is_utf8() ? "\u258c" : "-";
	unsigned halves = lround(part * BAR * 2);
	struct buf bar = {0};

	for (unsigned i = 0; i < halves / 2; i++)
		buf_puts(&bar, full);
	if (halves % 2)
		buf_puts(&bar, half);
	table_cell(table, "%.*s", (int) bar.len, bar.len ? bar.data : "");
	table_colour(table, part > 2 / 3. ? COLOUR_RED : part > 1 / 3. ? COLOUR_YELLOW : COLOUR_GREEN);
	buf_free(&bar);
}

static void add_row(struct table *table, const struct trace_tree *t, const struct trace_tree_row *r)
{
	struct trace_statistics s = trace_unit_statistics(&t->unit, t->view, r->level, r->object);
	struct buf name = {0};

	buf_printf(&name, "%*s", 2 * r->depth, "");
	trace_tree_name(t, r, &name);
	table_cell(table, "%s", name.data ? name.data : "");
	buf_free(&name);
	trace_tree_cell(table, trace_tree_value(t, r));
	trace_tree_cell(table, s.min);
	trace_tree_cell(table, s.max);
	for (const struct trace_tree *b = t->beside; b; b = b->beside)
		trace_tree_cell(table, trace_tree_value_of(b, t, r));
	bar_cell(table, trace_tree_part(t, r));
}

int trace_show_tree(const struct trace_tree *t, const char *when, struct err *e)
{
	struct table_column columns[4 + TRACE_TREE_METRICS + 1] = {
		{ "OBJECT", TABLE_LEFT }, { "VALUE", TABLE_RIGHT }, { "MIN", TABLE_RIGHT }, { "MAX", TABLE_RIGHT },
	};
	struct buf title = {0};
	struct table *table;
	unsigned n = 4;

	for (const struct trace_tree *b = t->beside; b; b = b->beside)
		columns[n++] = (struct table_column){ b->metric, TABLE_RIGHT };
	columns[n] = (struct table_column){ "OF THE GREATEST AT ITS LEVEL", TABLE_LEFT };
	table = table_new(columns);
	trace_tree_title(t, &title);
	printf("%s: %s, %s\n\n", *t->head->node ? t->head->node : "node", title.failed ? "" : title.data, when);
	buf_free(&title);
	for (unsigned i = 0; i < t->nrows; i++)
		add_row(table, t, &t->rows[i]);
	return table_finish(table, e);
}

const char *trace_show_level(const struct trace_head *h)
{
	return trace_head_level(h, "L3Cache") >= 0 ? "L3Cache" : trace_head_level(h, "Core") >= 0 ? "Core" : "PU";
}

int trace_show(const struct trace *from, struct trace_tree_request *how, double at, struct err *e)
{
	double begin = 0, end = 0;
	struct trace_tree t;
	char when[64];
	int rc;

	if (!how->level)
		how->level = trace_show_level(&from->head);
	if (trace_tree_make(&t, &from->head, how, e))
		return -1;
	rc = read_values(&t, from, at, &begin, &end, e);
	if (isnan(at))
		snprintf(when, sizeof(when), "average of %.1f s", from->end * 1e-9);
	else
		snprintf(when, sizeof(when), "from %.3f to %.3f s", begin, end);
	if (rc == 0)
		rc = trace_show_tree(&t, when, e);
	trace_tree_free(&t);
	return rc;
}
