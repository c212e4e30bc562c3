/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cmd_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct table {
	const struct table_column *columns;
	size_t ncolumns, ncells;
	char **cells;
	bool failed;
};

struct table *table_new(const struct table_column *columns)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->columns = columns;
	while (columns[t->ncolumns].head)
		t->ncolumns++;
	return t;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->ncells; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t);
}

void table_cell(struct table *t, const char *fmt, ...)
{
	char *text, **bigger;
	va_list ap;
	int n;

	if (!t || t->failed)
		return;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	bigger = n < 0 ? NULL : realloc(t->cells, (t->ncells + 1) * sizeof(*bigger));
	if (!bigger) {
		if (n >= 0)
			free(text);
		t->failed = true;
		return;
	}
	t->cells = bigger;
	t->cells[t->ncells++] = text;
}

static int width(const struct table *t, size_t column)
{
	size_t w = strlen(t->columns[column].head);

	for (size_t i = column; i < t->ncells; i += t->ncolumns)
		if (strlen(t->cells[i]) > w)
			w = strlen(t->cells[i]);
	return w;
}

/* The last cell of a line is not padded. */
static void print_cell(const struct table *t, size_t column, const char *text, FILE *out)
{
	bool last = column + 1 == t->ncolumns;
	int w = t->columns[column].right ? width(t, column) : last ? 0 : -width(t, column);

	fprintf(out, "%*s%s", w, text, last ? "\n" : "  ");
}

int table_print(const struct table *t, FILE *out)
{
	bool colour = isatty(fileno(out));

	if (!t || t->failed)
		return -1;
	fputs(colour ? "\033[1m" : "", out);
	for (size_t c = 0; c < t->ncolumns; c++)
		print_cell(t, c, t->columns[c].head, out);
	fputs(colour ? "\033[0m" : "", out);
	for (size_t i = 0; i < t->ncells; i++)
		print_cell(t, i % t->ncolumns, t->cells[i], out);
	return fflush(out) || ferror(out) ? -1 : 0;
}
