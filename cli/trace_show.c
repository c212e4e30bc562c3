/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace_show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "table.h"

#define BAR 24			/* columns of the longest */

#define SAME_MAX 8

/* A level of the tree that is shown, widest first, and its values. */
struct shown_level {
	const struct trace_level *level, *same[SAME_MAX];	/* same: narrower ones that have the same PUs each */
	unsigned nsame;
	double *value, most;		/* of each object, NAN: absent; the greatest of all ticks */
	struct trace_statistics *statistics;
};

struct shown_tree {
	const struct trace *trace;
	struct trace_view *view;	/* a metric for each level */
	struct shown_level *levels;
	unsigned n;
	double at;
	double from, until;		/* of the tick at that time */
};

/* --- levels --- */

static bool is_numa(const struct trace_level *l)
{
	return !strcmp(l->type, "NUMANode");
}

static unsigned end_of(const struct trace_object *o)
{
	return o->first + o->count;
}

/* Memory hangs beside the tree, but has PUs: it is shown between the levels of more and of fewer PUs an object. */
static bool is_wider(const struct trace_level *a, const struct trace_level *b)
{
	return a->n < b->n || (a->n == b->n && !is_numa(a) && is_numa(b));
}

static void levels_order(const struct trace_head *h, const struct trace_level **order)
{
	for (unsigned i = 0; i < h->nlevels; i++) {
		unsigned at = i;

		for (; at && is_numa(&h->levels[i]) && is_wider(&h->levels[i], order[at - 1]); at--)
			order[at] = order[at - 1];
		order[at] = &h->levels[i];
	}
}

static bool has_same_objects(const struct trace_level *a, const struct trace_level *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (a->objects[i].first != b->objects[i].first || a->objects[i].count != b->objects[i].count)
			return false;
	return true;
}

static const char *default_deepest(const struct trace_head *h)
{
	return trace_head_level(h, "L3Cache") >= 0 ? "L3Cache" : trace_head_level(h, "Core") >= 0 ? "Core" : "PU";
}

/* As lstopo(1) does in its text: "Package 0 + NUMANode 0". */
static void level_name(struct shown_level *l, const struct trace_level *same)
{
	if (l->nsame < SAME_MAX)
		l->same[l->nsame++] = same;
}

/* Metrics of the levels down to the deepest, each once, where the metric is counted below. */
static int levels_add(struct shown_tree *s, const struct formula *f, int deepest, struct err *e)
{
	const struct trace_head *h = &s->trace->head;
	const struct trace_level **order = calloc(h->nlevels, sizeof(*order));
	bool is_last = false;
	int rc = order ? 0 : err_set(e, "out of memory");

	if (order)
		levels_order(h, order);
	for (unsigned i = 0; rc == 0 && i < h->nlevels && !is_last; i++) {
		struct formula here;

		is_last = order[i] == &h->levels[deepest];
		if (s->n && has_same_objects(s->levels[s->n - 1].level, order[i])) {
			level_name(&s->levels[s->n - 1], order[i]);
			continue;
		}
		if (formula_copy(f, order[i]->type, &here, e) || trace_view_add(s->view, &here, e))
			rc = -1;
		else if (s->view->metrics[s->view->n - 1].missing >= 0 && s->n)
			break;
		else
			s->levels[s->n++].level = order[i];
	}
	free(order);
	return rc;
}

/* --- values --- */

static int level_alloc(struct shown_level *l, struct err *e)
{
	l->value = calloc(l->level->n, sizeof(*l->value));
	l->statistics = calloc(l->level->n, sizeof(*l->statistics));
	return l->value && l->statistics ? 0 : err_set(e, "out of memory");
}

/* The values of a tick, if it is that of the time wanted. */
static bool take_tick(struct shown_tree *s, const struct trace_block *b)
{
	for (unsigned t = 0; t < b->n; t++) {
		if (b->times[t] * 1e-9 < s->at)
			continue;
		for (unsigned l = 0; l < s->n; l++)
			for (unsigned i = 0; i < s->levels[l].level->n; i++)
				s->levels[l].value[i] = s->view->metrics[l].values[(size_t) i * b->n + t];
		s->from = (t ? b->times[t - 1] : b->begin) * 1e-9;
		s->until = b->times[t] * 1e-9;
		return true;
	}
	return false;
}

static int read_values(struct shown_tree *s, struct err *e)
{
	struct trace_block b = {0};
	bool is_found = false;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < s->trace->nblocks; i++) {
		rc = trace_read(s->trace, i, &b, e) || trace_view_block(s->view, &b, e) ? -1 : 0;
		is_found |= rc == 0 && !isnan(s->at) && !is_found && take_tick(s, &b);
	}
	trace_block_free(&b);
	if (rc == 0 && !isnan(s->at) && !is_found)
		rc = err_set(e, "nothing at %.3f s: the trace ends at %.3f s", s->at, s->trace->end * 1e-9);
	for (unsigned l = 0; rc == 0 && l < s->n; l++) {
		struct shown_level *own = &s->levels[l];

		for (unsigned i = 0; i < own->level->n; i++) {
			own->statistics[i] = trace_view_statistics(s->view, l, i);
			if (isnan(s->at))
				own->value[i] = own->statistics[i].average;
			own->most = fmax(own->most, own->statistics[i].max);
		}
	}
	return rc;
}

/* --- rows --- */

static void number_cell(struct table *table, double x)
{
	if (isnan(x))
		table_cell(table, "-");
	else
		table_cell(table, fabs(x) < 1e6 ? "%.2f" : "%.5g", x);
}

/* Green, yellow and red thirds, in characters that are a full and a half column wide. */
static void bar_cell(struct table *table, double x, double most)
{
	double part = isnan(x) || most <= 0 || x < 0 ? 0 : x / most;
	unsigned halves = lround(part * BAR * 2);
	struct buf bar = {0};

	for (unsigned i = 0; i < halves / 2; i++)
		buf_add(&bar, "\u2588", strlen("\u2588"));
	if (halves % 2)
		buf_add(&bar, "\u258c", strlen("\u258c"));
	table_cell(table, "%.*s", (int) bar.len, bar.len ? bar.data : "");
	table_colour(table, part > 2 / 3. ? COLOUR_RED : part > 1 / 3. ? COLOUR_YELLOW : COLOUR_GREEN);
	buf_free(&bar);
}

struct row {
	unsigned level, object, first, end;	/* PUs */
};

/* What contains others comes before them; of equal ones the wider level. */
static int by_place(const void *x, const void *y)
{
	const struct row *a = x, *b = y;

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return a->level < b->level ? -1 : a->level > b->level;
}

static void print_row(const struct shown_tree *s, struct table *table, const struct row *r, unsigned depth)
{
	const struct shown_level *l = &s->levels[r->level];
	struct buf name = {0};

	buf_printf(&name, "%*s%s %u", 2 * depth, "", l->level->type, l->level->objects[r->object].index);
	for (unsigned i = 0; i < l->nsame; i++)
		buf_printf(&name, " + %s %u", l->same[i]->type, l->same[i]->objects[r->object].index);
	table_cell(table, "%s", name.data ? name.data : "");
	buf_free(&name);
	number_cell(table, l->value[r->object]);
	number_cell(table, l->statistics[r->object].min);
	number_cell(table, l->statistics[r->object].max);
	bar_cell(table, l->value[r->object], l->most);
}

/* Trees may be uneven: an object is below the narrowest one that contains it, of whatever level. */
static int print_rows(const struct shown_tree *s, struct table *table, struct err *e)
{
	const struct row **inside = calloc(s->n, sizeof(struct row *));
	unsigned n = 0, depth = 0;
	struct row *rows;

	for (unsigned l = 0; l < s->n; l++)
		n += s->levels[l].level->n;
	rows = calloc(n, sizeof(*rows));
	n = 0;
	for (unsigned l = 0; rows && l < s->n; l++)
		for (unsigned i = 0; i < s->levels[l].level->n; i++) {
			const struct trace_object *o = &s->levels[l].level->objects[i];

			rows[n++] = (struct row){ l, i, o->first, end_of(o) };
		}
	if (rows)
		qsort(rows, n, sizeof(*rows), by_place);
	for (unsigned i = 0; inside && i < n; i++) {
		while (depth && (rows[i].end > inside[depth - 1]->end || rows[i].level == inside[depth - 1]->level))
			depth--;
		print_row(s, table, &rows[i], depth);
		if (depth < s->n)
			inside[depth++] = &rows[i];
	}
	n = rows && inside;
	free(rows);
	free(inside);
	return n ? 0 : err_set(e, "out of memory");
}

static const struct table_column columns[] = {
	{ "OBJECT", TABLE_LEFT }, { "VALUE", TABLE_RIGHT }, { "MIN", TABLE_RIGHT }, { "MAX", TABLE_RIGHT },
	{ "OF THE GREATEST AT ITS LEVEL", TABLE_LEFT }, {0},
};

static int print(const struct shown_tree *s, const char *metric, const char *unit, enum trace_mode mode, struct err *e)
{
	const struct trace_head *h = &s->trace->head;
	struct table *table = table_new(columns);

	printf("%s: %s", *h->node ? h->node : "node", metric);
	if (mode == TRACE_RATE && *unit)
		printf(", %s", unit);
	if (isnan(s->at))
		printf(", average of %.1f s\n\n", s->trace->end * 1e-9);
	else
		printf(", from %.3f to %.3f s\n\n", s->from, s->until);
	if (!print_rows(s, table, e))
		return table_finish(table, e);
	table_free(table);
	return -1;
}

/* --- */

/* The formula that is shown, and its unit in words, "" for a formula of several events. */
static int find_formula(const struct trace_head *h, const struct trace_show *s, struct formula *f,
			char unit[2 * TRACE_NAME], struct err *e)
{
	int event = s->metric ? trace_head_event(h, s->metric) : 0;
	const struct trace_event *x;

	*unit = '\0';
	for (unsigned i = 0; s->metric && i < s->formulas.n; i++)
		if (!strcmp(s->formulas.list[i].name, s->metric))
			return formula_copy(&s->formulas.list[i], s->formulas.list[i].level, f, e);
	if (event < 0)
		return err_set(e, "no event or formula '%s'; `topiary trace summary` lists them", s->metric);
	x = &h->events[event];
	snprintf(unit, 2 * TRACE_NAME, "%s%s", *x->unit ? x->unit : x->kind == TRACE_GAUGE ? "" : "count",
		 x->kind == TRACE_GAUGE ? "" : "/s");
	return formula_of_event(x->name, h->levels[x->level].type, f, e);
}

static void tree_free(struct shown_tree *s)
{
	for (unsigned i = 0; s->levels && i < s->n; i++) {
		free(s->levels[i].value);
		free(s->levels[i].statistics);
	}
	free(s->levels);
	trace_view_free(s->view);
}

int trace_show(const struct trace *t, const struct trace_show *how, struct err *e)
{
	const struct trace_head *h = &t->head;
	const char *deepest = how->level ? how->level : default_deepest(h);
	struct shown_tree s = { .trace = t, .at = how->at };
	char unit[2 * TRACE_NAME];
	struct formula f = {0};
	int level = trace_head_level(h, deepest), rc;

	if (level < 0)
		return err_set(e, "the trace has no level '%s'", deepest);
	if (find_formula(h, how, &f, unit, e))
		return -1;
	s.view = trace_view_new(h, how->mode);
	s.levels = calloc(h->nlevels, sizeof(*s.levels));
	rc = s.view && s.levels ? levels_add(&s, &f, level, e) : err_set(e, "out of memory");
	for (unsigned i = 0; rc == 0 && i < s.n; i++)
		rc = level_alloc(&s.levels[i], e);
	rc = rc || read_values(&s, e) || print(&s, f.name, unit, how->mode, e) ? -1 : 0;
	formula_free(&f);
	tree_free(&s);
	return rc;
}
