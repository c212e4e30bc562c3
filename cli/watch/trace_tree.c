/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace_tree.h"

#include <assert.h>
#include <langinfo.h>
#include <locale.h>

#include "base/file.h"
#include "base/order.h"

/* --- levels --- */

static bool has_same_objects(const struct trace_level *a, const struct trace_level *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (a->objects[i].first != b->objects[i].first || a->objects[i].count != b->objects[i].count)
			return false;
	return true;
}

/* Metrics of the levels down to the deepest, each once, where the metric is counted below. */
static int levels_add(struct trace_tree *t, const struct formula *f, int deepest, struct err *e)
{
	const struct trace_head *h = t->head;
	const struct trace_level **order = calloc(h->nlevels, sizeof(*order));
	bool is_last = false;
	int rc = order ? 0 : err_set(e, "out of memory");

	/* Memory hangs beside the tree, but has PUs: it is between the levels of more and of fewer PUs an object. */
	for (unsigned i = 0; order && i < h->nlevels; i++) {
		const struct trace_level *l = &h->levels[i];
		unsigned at = i;

		for (; at && !strcmp(l->type, "NUMANode") && l->n < order[at - 1]->n; at--)
			order[at] = order[at - 1];
		order[at] = l;
	}
	for (unsigned i = 0; rc == 0 && i < h->nlevels && !is_last; i++) {
		struct formula here;

		is_last = order[i] == &h->levels[deepest];
		if (t->n && has_same_objects(t->levels[t->n - 1].level, order[i])) {
			struct trace_tree_level *l = &t->levels[t->n - 1];

			if (l->nsame < TRACE_TREE_SAME)
				l->same[l->nsame++] = order[i];
			continue;
		}
		if (formula_copy(f, order[i]->type, &here, e) || trace_view_add(t->view, &here, e))
			rc = -1;
		else if (*t->view->metrics[t->view->n - 1].missing && t->n)
			break;
		else
			t->levels[t->n++].level = order[i];
	}
	free(order);
	return rc;
}

/* --- rows --- */

/* What contains others comes before them; of equal ones the wider level. */
ORDER(by_place, struct trace_tree_row, COMPARE(x->first, y->first) ?: COMPARE(y->end, x->end) ?:
      COMPARE(x->level, y->level))

static int rows_make(struct trace_tree *t, struct err *e)
{
	unsigned n = 0;

	for (unsigned l = 0; l < t->n; l++) {
		struct trace_tree_level *own = &t->levels[l];

		n += own->level->n;
		if (!(own->value = calloc(own->level->n, sizeof(*own->value))))
			return err_set(e, "out of memory");
		for (unsigned i = 0; i < own->level->n; i++)
			own->value[i] = NAN;
	}
	if (!(t->rows = calloc(n, sizeof(*t->rows))))
		return err_set(e, "out of memory");
	for (unsigned l = 0; l < t->n; l++)
		for (unsigned i = 0; i < t->levels[l].level->n; i++) {
			const struct trace_object *o = &t->levels[l].level->objects[i];

			t->rows[t->nrows++] = (struct trace_tree_row){ l, i, o->first, trace_object_end(o), 0, 0 };
		}
	qsort(t->rows, t->nrows, sizeof(*t->rows), by_place);
	/* Trees may be uneven: an object is below the narrowest one that contains it, of whatever level. */
	for (unsigned i = 1; i < t->nrows; i++) {
		struct trace_tree_row *r = &t->rows[i];
		unsigned above = i - 1;

		while (above && (r->end > t->rows[above].end || r->level == t->rows[above].level))
			above = t->rows[above].parent;
		assert(above < i);
		r->parent = above;
		r->depth = t->rows[above].depth + 1;
	}
	return 0;
}

/* --- metrics --- */

int trace_tree_formulas(const char *path, const struct trace_head *h, struct formula_list *out, struct err *e)
{
	struct buf text = {0};
	int rc = 0;

	*out = (struct formula_list){0};
	if (path) {
		rc = file_read(path, FORMULA_TEXT_MAX, &text, e) ||
			formula_list_parse(text.data, text.len, path, out, e) ? -1 : 0;
		buf_free(&text);
	} else if (h->formulas)
		rc = formula_list_parse(h->formulas, strlen(h->formulas), "formulas of the trace", out, e);
	return rc;
}

/* metric: NULL for the first event. */
static int find_formula(struct trace_tree *t, const struct trace_tree_request *how, const char *metric,
			struct formula *f, struct err *e)
{
	const struct trace_head *h = t->head;
	int event = metric ? trace_head_event(h, metric) : 0;
	const struct trace_event *x;

	t->unit = trace_unit_of(NULL, how->mode);
	for (unsigned i = 0; metric && i < how->formulas.n; i++)
		if (!strcmp(how->formulas.list[i].name, metric))
			return formula_copy(&how->formulas.list[i], how->formulas.list[i].level, f, e);
	if (event < 0)
		return err_set(e, "no event or formula '%s'; `topiary trace summary` lists them", metric);
	x = &h->events[event];
	t->unit = trace_unit_of(x, how->mode);
	return formula_of_event(x->name, h->levels[x->level].type, f, e);
}

/* --- */

static int beside_make(struct trace_tree *t, const struct trace_tree_request *how, const char *rest, struct err *e)
{
	struct trace_tree_request own = *how;
	unsigned more = 1;

	for (const char *c = rest; (c = strchr(c, ',')); c++)
		more++;
	if (more >= TRACE_TREE_METRICS)
		return err_set(e, "--metric=%s: more than %u metrics", how->metric, TRACE_TREE_METRICS);
	own.metric = rest;
	if (!(t->beside = calloc(1, sizeof(*t->beside))))
		return err_set(e, "out of memory");
	return trace_tree_make(t->beside, t->head, &own, e);
}

int trace_tree_make(struct trace_tree *t, const struct trace_head *h, const struct trace_tree_request *how,
		    struct err *e)
{
	size_t len = how->metric ? strcspn(how->metric, ",") : 0;
	char *metric = how->metric ? strndup(how->metric, len) : NULL;
	int deepest = -1, rc = -1;
	struct formula f = {0};

	*t = (struct trace_tree){ .head = h };
	if (how->metric && !metric)
		err_set(e, "out of memory");
	else if ((deepest = trace_head_level_named(h, how->level, e)) >= 0)
		rc = find_formula(t, how, metric, &f, e);
	free(metric);
	if (rc)
		return -1;
	snprintf(t->metric, sizeof(t->metric), "%s", f.name);
	t->view = trace_view_new(h, how->mode);
	t->levels = calloc(h->nlevels, sizeof(*t->levels));
	rc = t->view && t->levels ? levels_add(t, &f, deepest, e) : err_set(e, "out of memory");
	rc = rc || rows_make(t, e) || (len && how->metric[len] && beside_make(t, how, how->metric + len + 1, e)) ?
		-1 : 0;
	formula_free(&f);
	if (rc)
		trace_tree_free(t);
	return rc;
}

void trace_tree_free(struct trace_tree *t)
{
	if (t->beside)
		trace_tree_free(t->beside);
	free(t->beside);
	for (unsigned i = 0; i < t->n; i++)
		free(t->levels[i].value);
	free(t->levels);
	free(t->rows);
	trace_view_free(t->view);
	*t = (struct trace_tree){0};
}

int trace_tree_block(struct trace_tree *t, const struct trace_block *b, struct err *e)
{
	if (trace_view_block(t->view, b, e))
		return -1;
	for (unsigned l = 0; l < t->n; l++)
		for (unsigned i = 0; i < t->levels[l].level->n; i++)
			t->levels[l].most = fmax(t->levels[l].most, trace_unit_statistics(&t->unit, t->view, l, i).max);
	return t->beside ? trace_tree_block(t->beside, b, e) : 0;
}

static void tree_restart(struct trace_tree *t)
{
	trace_view_restart(t->view);
	if (t->beside)
		tree_restart(t->beside);
}

int trace_tree_read(struct trace_tree *t, const struct trace *from, unsigned i, struct trace_block *b, struct err *e)
{
	unsigned first = i;

	if (t->view->mode == TRACE_ACCUMULATED && i != t->next) {
		tree_restart(t);
		first = 0;
	}
	t->next = i + 1;
	for (; first <= i; first++)
		if (trace_read(from, first, b, e) || trace_tree_block(t, b, e))
			return -1;
	return 0;
}

void trace_tree_tick(struct trace_tree *t, const struct trace_block *b, unsigned tick)
{
	for (unsigned l = 0; l < t->n; l++)
		for (unsigned i = 0; i < t->levels[l].level->n; i++)
			t->levels[l].value[i] = trace_unit_value(&t->unit, &t->levels[l].level->objects[i],
							      t->view->metrics[l].values[(size_t) i * b->n + tick]);
	if (t->beside)
		trace_tree_tick(t->beside, b, tick);
}

static void name_object(const struct trace_level *l, unsigned object, struct buf *out)
{
	const char *name = trace_head_name(l, object);

	if (name)
		buf_puts(out, name);
	else
		buf_printf(out, "%s %u", l->type, l->objects[object].index);
}

void trace_tree_name(const struct trace_tree *t, const struct trace_tree_row *r, struct buf *out)
{
	const struct trace_tree_level *l = &t->levels[r->level];

	name_object(l->level, r->object, out);
	for (unsigned i = 0; i < l->nsame; i++) {
		buf_puts(out, " + ");
		name_object(l->same[i], r->object, out);
	}
}

double trace_tree_value(const struct trace_tree *t, const struct trace_tree_row *r)
{
	return t->levels[r->level].value[r->object];
}

double trace_tree_value_of(const struct trace_tree *beside, const struct trace_tree *t, const struct trace_tree_row *r)
{
	const struct trace_level *level = t->levels[r->level].level;

	for (const struct trace_tree_level *l = beside->levels; l < beside->levels + beside->n; l++) {
		bool found = l->level == level;

		for (unsigned i = 0; i < l->nsame && !found; i++)
			found = l->same[i] == level;
		if (found)
			return l->value[r->object];
	}
	return NAN;
}

void trace_tree_title(const struct trace_tree *t, struct buf *out)
{
	buf_printf(out, "%s%s%s", t->metric, *t->unit.text ? ", " : "", t->unit.text);
	if (t->beside) {
		buf_puts(out, "; ");
		trace_tree_title(t->beside, out);
	}
}

double trace_tree_part(const struct trace_tree *t, const struct trace_tree_row *r)
{
	double x = trace_tree_value(t, r), most = t->levels[r->level].most;

	return isnan(x) || most <= 0 || x < 0 ? 0 : x / most;
}

const char *trace_tree_number(double x, char text[static TRACE_NUMBER])
{
	static const struct { double by; const char *prefix; } prefixes[] = {
		{ 1e15, "P" }, { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" },
	};
	double size = fabs(x);

	if (isnan(x))
		return "-";
	snprintf(text, TRACE_NUMBER, size < 9999.995 && (size >= 0.01 || !x) ? "%.2f" : "%.3g", x);
	for (unsigned i = 0; size >= 9999.995 && i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (size >= 0.99995 * prefixes[i].by) {
			snprintf(text, TRACE_NUMBER, "%.4g%s", x / prefixes[i].by, prefixes[i].prefix);
			break;
		}
	return text;
}

/* --- as a table --- */

#define BAR 24			/* columns of the longest */

/* Of the user's locale: batch jobs have C, and what shows their output may know no other characters. */
static bool is_utf8(void)
{
	locale_t user = newlocale(LC_CTYPE_MASK, "", 0);
	bool found = user && !strcmp(nl_langinfo_l(CODESET, user), "UTF-8");

	if (user)
		freelocale(user);
	return found;
}

int trace_tree_print(const struct trace_tree *t, const char *when, struct err *e)
{
	struct table *table = table_new("OBJECT|>VALUE|>MIN|>MAX");
	struct buf title = {0};

	for (const struct trace_tree *b = t->beside; b; b = b->beside)
		table_column(table, '>', b->metric);
	table_column(table, ' ', "OF THE GREATEST AT ITS LEVEL");
	trace_tree_title(t, &title);
	printf("%s: %s, %s\n\n", *t->head->node ? t->head->node : "node", title.failed ? "" : title.data, when);
	buf_free(&title);
	for (unsigned i = 0; i < t->nrows; i++) {
		const struct trace_tree_row *r = &t->rows[i];
		struct trace_statistics s = trace_unit_statistics(&t->unit, t->view, r->level, r->object);
		char value[TRACE_NUMBER], least[TRACE_NUMBER], most[TRACE_NUMBER];
		struct buf name = {0};

		buf_printf(&name, "%*s", 2 * r->depth, "");
		trace_tree_name(t, r, &name);
		table_cell(table, "%s|%s|%s|%s", name.data ? name.data : "",
			   trace_tree_number(trace_tree_value(t, r), value),
			   trace_tree_number(s.min, least), trace_tree_number(s.max, most));
		buf_free(&name);
		for (const struct trace_tree *b = t->beside; b; b = b->beside)
			table_cell(table, "%s", trace_tree_number(trace_tree_value_of(b, t, r), value));
		/* Green, yellow and red thirds, in characters that are a full and a half column wide. */
		double part = trace_tree_part(t, r);
		const char *full = is_utf8() ? "\u2588" : "#", *half = is_utf8() ? "\u258c" : "-";
		unsigned halves = lround(part * BAR * 2);
		struct buf bar = {0};

		for (unsigned k = 0; k < halves / 2; k++)
			buf_puts(&bar, full);
		if (halves % 2)
			buf_puts(&bar, half);
		table_cell(table, "%.*s", (int) bar.len, bar.len ? bar.data : "");
		table_colour(table, part > 2 / 3. ? COLOUR_RED : part > 1 / 3. ? COLOUR_YELLOW : COLOUR_GREEN);
		buf_free(&bar);
	}
	return table_finish(table, e);
}

const char *trace_tree_level_shown(const struct trace_head *h)
{
	return trace_head_level(h, "L3Cache") >= 0 ? "L3Cache" : trace_head_level(h, "Core") >= 0 ? "Core" : "PU";
}
