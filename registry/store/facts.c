/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "facts.h"

#include "base/order.h"

/*
 * Notes
 *
 * No data. Any thread, with its connection.
 */

/* --- in the database --- */

int facts_add(struct facts *f, const char *key, const char *text, struct err *e)
{
	char *copy = strdup(text);
	int rc = copy ? 0 : err_set(e, "out of memory");

	for (char *line, *rest = copy; rc == 0 && (line = strsep(&rest, "\n")) && *line; f->n++) {
		db_array_text(&f->column[FACT_KEY], key);
		for (int c = FACT_LINE; c < FACT_COLUMNS; c++) {
			char *part = strsep(&line, c + 1 < FACT_COLUMNS ? "\t" : "");

			if (part)
				db_array_text(&f->column[c], part);
			else
				rc = err_set(e, "invalid facts: a line does not have four parts");
		}
	}
	free(copy);
	return rc;
}

int facts_insert(struct db *db, struct facts *f, const char *sql, struct err *e)
{
	PGresult *r = f->n ? db_query_arrays(db, true, sql, FACT_COLUMNS, f->column, 0, NULL, e) : NULL;

	PQclear(r);
	return f->n && !r ? -1 : 0;
}

void facts_free(struct facts *f)
{
	for (int c = 0; c < FACT_COLUMNS; c++)
		buf_free(&f->column[c]);
}

int facts_load(struct db *db, const char *base, struct buf *out, struct err *e)
{
	PGresult *r = db_query(db, e, "SELECT base, line, object, name, value FROM fact WHERE base = $1 ORDER BY line",
			       1, &DB_TEXT(base));

	if (!r)
		return -1;
	buf_puts(out, "");
	for (int i = 0; i < PQntuples(r); i++)
		buf_printf(out, "%s\t%s\t%s\t%s\n", PQgetvalue(r, i, FACT_LINE), PQgetvalue(r, i, FACT_OBJECT),
			   PQgetvalue(r, i, FACT_NAME), PQgetvalue(r, i, FACT_VALUE));
	PQclear(r);
	return out->failed ? err_set(e, "out of memory") : 0;
}

/* --- comparison --- */

struct line {
	const char *text;	/* the whole line */
	size_t key, key_len;	/* position of object and name in it */
	size_t end;		/* its newline */
};

struct lines {
	struct line *list;
	size_t n;
};

ORDER(line_compare, struct line,
      memcmp(x->text + x->key, y->text + y->key, x->key_len < y->key_len ? x->key_len : y->key_len) ?:
      COMPARE(x->key_len, y->key_len) ?: COMPARE(x->text, y->text))

static bool same_key(const struct line *x, const struct line *y)
{
	return x->key_len == y->key_len && !memcmp(x->text + x->key, y->text + y->key, x->key_len);
}

static int lines_sort(const char *text, struct lines *out, struct err *e)
{
	struct lines l = {0};
	size_t most = 1;

	for (const char *p = text; (p = strchr(p, '\n')); p++)
		most++;
	if (!(l.list = malloc(most * sizeof(*l.list))))
		return err_set(e, "out of memory");
	for (const char *p = text, *end; (end = strchr(p, '\n')); p = end + 1) {
		const char *object = strchr(p, '\t'), *name = object ? strchr(object + 1, '\t') : NULL;
		const char *value = name ? strchr(name + 1, '\t') : NULL;

		if (!value || value > end)
			continue;
		l.list[l.n++] = (struct line){ p, object + 1 - p, value - object - 1, end - p };
	}
	qsort(l.list, l.n, sizeof(*l.list), line_compare);
	*out = l;
	return 0;
}

/* How many lines from here on have the key of the first. */
static size_t group_len(const struct lines *l, size_t from)
{
	size_t n = from;

	while (n < l->n && same_key(&l->list[from], &l->list[n]))
		n++;
	return n - from;
}

static bool same_values(const struct line *x, const struct line *y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (x[i].end - x[i].key != y[i].end - y[i].key ||
		    memcmp(x[i].text + x[i].key, y[i].text + y[i].key, x[i].end - x[i].key))
			return false;
	return true;
}

int facts_diff(const char *base, const char *doc, struct buf *out, struct err *e)
{
	struct lines was = {0}, is = {0};
	int rc = lines_sort(base, &was, e) || lines_sort(doc, &is, e) ? -1 : 0;

	for (size_t i = 0, j = 0, gone = 1; rc == 0 && (i < was.n || j < is.n);) {
		int order = i == was.n ? 1 : j == is.n ? -1 : same_key(&was.list[i], &is.list[j]) ? 0 :
			line_compare(&was.list[i], &is.list[j]);
		size_t old = order <= 0 ? group_len(&was, i) : 0, new = order >= 0 ? group_len(&is, j) : 0;

		if (!new)
			buf_printf(out, "-%zu\t%.*s\t\n", gone++, (int) was.list[i].key_len,
				   was.list[i].text + was.list[i].key);
		else if (old != new || !same_values(&was.list[i], &is.list[j], new))
			for (size_t k = j; k < j + new; k++)
				buf_add(out, is.list[k].text, is.list[k].end + 1);
		i += old;
		j += new;
	}
	free(was.list);
	free(is.list);
	return rc ? -1 : out->failed ? err_set(e, "out of memory") : 0;
}
