/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "table.h"

#include <stdarg.h>
#include <sys/ioctl.h>

#include "base/buf.h"
#include "base/printable.h"

#define GAP 2			/* between two columns */
#define NARROWEST 12		/* columns are not truncated below that width */
#define CUT_MARK "..."

struct cell {
	size_t at;		/* in text */
	enum table_colour colour;
};

struct column {
	char *head, form;	/* '>', '~', or ' ' */
};

struct table {
	struct column columns[TABLE_COLUMNS];
	size_t ncolumns;
	struct buf text;	/* of all cells, each with its NUL */
	struct buf cells;	/* struct cell[] */
};

static const char *const colours[] = {
	[COLOUR_NONE] = "", [COLOUR_BOLD] = "\033[1m", [COLOUR_FAINT] = "\033[2m", [COLOUR_RED] = "\033[31m",
	[COLOUR_YELLOW] = "\033[33m", [COLOUR_GREEN] = "\033[32m",
};

static void column_add(struct table *t, char form, const char *head, size_t len)
{
	if (!t || t->ncolumns == TABLE_COLUMNS)
		return;
	t->columns[t->ncolumns] = (struct column){ strndup(head, len), form };
	t->text.failed |= !t->columns[t->ncolumns++].head;
}

struct table *table_new(const char *heads)
{
	struct table *t = calloc(1, sizeof(*t));

	for (const char *at = heads; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
		bool formed = *at == '>' || *at == '~';

		column_add(t, formed ? *at : ' ', at + formed, strcspn(at + formed, "|"));
	}
	return t;
}

void table_column(struct table *t, char form, const char *head)
{
	column_add(t, form, head, strlen(head));
}

void table_free(struct table *t)
{
	if (!t)
		return;
	for (size_t c = 0; c < t->ncolumns; c++)
		free(t->columns[c].head);
	buf_free(&t->text);
	buf_free(&t->cells);
	free(t);
}

void table_cell(struct table *t, const char *fmt, ...)
{
	static const char between = '\037';	/* cells, in the place of each bar of the format */
	char *format = t ? strdup(fmt) : NULL, *text = NULL, *rest;
	unsigned cells = 1, found = 1;
	va_list ap;

	if (!t)
		return;
	for (char *bar = format; bar && (bar = strchr(bar, '|')); cells++)
		*bar = between;
	va_start(ap, fmt);
	if (!format || vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	t->text.failed |= !text;
	for (const char *at = text; at && (at = strchr(at, between)); at++)
		found++;
	rest = text;
	for (unsigned i = 0; text && i < cells; i++) {
		struct cell cell = { .at = t->text.len };
		/* A value that has this character, too: all in the first cell. */
		const char *one = found == cells ? strsep(&rest, (char []){ between, '\0' }) : i ? "" : text;

		buf_puts(&t->text, one);
		buf_add(&t->text, "", 1);
		buf_add(&t->cells, &cell, sizeof(cell));
		if (!t->text.failed)
			printable(t->text.data + cell.at);
	}
	free(format);
	free(text);
}

void table_colour(struct table *t, enum table_colour colour)
{
	if (t && t->cells.len)
		((struct cell *) (t->cells.data + t->cells.len))[-1].colour = colour;
}

void table_severity(struct table *t, const char *severity)
{
	table_colour(t,
		     !strcmp(severity, "capacity")	   ? COLOUR_RED
			     : !strcmp(severity, "wiring") || !strcmp(severity, "slow") ? COLOUR_YELLOW
									      : COLOUR_NONE);
}

void table_label(struct table *t, const char *label)
{
	table_cell(t, "%s", label);
	table_colour(t, COLOUR_FAINT);
}

/* The number of UTF-8 characters. */
static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

/* The widest column that may be truncated, or -1. */
static long widest_cut(const struct table *t, const size_t *widths)
{
	long widest = -1;

	for (size_t c = 0; c < t->ncolumns; c++)
		if (t->columns[c].form == '~' && widths[c] > NARROWEST &&
		    (widest < 0 || widths[c] > widths[widest]))
			widest = c;
	return widest;
}

static void widths_narrow(const struct table *t, FILE *out, size_t *widths)
{
	size_t total = GAP * (t->ncolumns - 1);
	struct winsize terminal;
	long c;

	if (ioctl(fileno(out), TIOCGWINSZ, &terminal) || !terminal.ws_col)
		return;
	for (size_t i = 0; i < t->ncolumns; i++)
		total += widths[i];
	for (; total > terminal.ws_col && (c = widest_cut(t, widths)) >= 0; total--)
		widths[c]--;
}

static void print_text(const char *text, size_t width, FILE *out)
{
	size_t n = 0;

	if (width_of(text) <= width) {
		fputs(text, out);
		return;
	}
	for (; n < width - strlen(CUT_MARK) || (*text & 0xc0) == 0x80; text++) {
		putc(*text, out);
		n += (text[1] & 0xc0) != 0x80;
	}
	fputs(CUT_MARK, out);
}

/* Padding is written only before a further cell, so that no line ends in blanks. */
static void print_row(const struct table *t, const char *const *texts, const enum table_colour *hues,
		      const size_t *widths, FILE *out)
{
	size_t owed = 0;

	for (size_t c = 0; c < t->ncolumns; c++) {
		size_t have = width_of(texts[c]), pad = have < widths[c] ? widths[c] - have : 0;
		bool right = t->columns[c].form == '>';

		owed += right ? pad : 0;
		if (have) {
			fprintf(out, "%*s%s", (int) owed, "", colours[hues[c]]);
			print_text(texts[c], widths[c], out);
			fputs(hues[c] ? "\033[0m" : "", out);
			owed = 0;
		}
		owed += (right ? 0 : pad) + GAP;
	}
	putc('\n', out);
}

int table_print(const struct table *t, FILE *out)
{
	const char *none = getenv("NO_COLOR"), *texts[TABLE_COLUMNS];
	bool colour = isatty(fileno(out)) && !(none && *none);
	enum table_colour hues[TABLE_COLUMNS];
	size_t widths[TABLE_COLUMNS];
	const struct cell *list;

	if (!t || t->text.failed || t->cells.failed)
		return -1;
	list = (const struct cell *) t->cells.data;
	size_t n = t->cells.len / sizeof(*list);

	for (size_t c = 0; c < t->ncolumns; c++)
		widths[c] = width_of(t->columns[c].head);
	for (size_t i = 0; i < n; i++) {
		size_t w = width_of(t->text.data + list[i].at), *widest = &widths[i % t->ncolumns];

		if (w > *widest)
			*widest = w;
	}
	widths_narrow(t, out, widths);
	for (size_t c = 0; c < t->ncolumns; c++) {
		texts[c] = t->columns[c].head;
		hues[c] = colour ? COLOUR_BOLD : COLOUR_NONE;
	}
	if (**texts)
		print_row(t, texts, hues, widths, out);
	for (size_t i = 0; i < n; i++) {
		size_t c = i % t->ncolumns;

		texts[c] = t->text.data + list[i].at;
		hues[c] = colour ? list[i].colour : COLOUR_NONE;
		if (c + 1 == t->ncolumns)
			print_row(t, texts, hues, widths, out);
	}
	return fflush(out) || ferror(out) ? -1 : 0;
}

int table_finish(struct table *t, struct err *e)
{
	int rc = table_print(t, stdout);

	table_free(t);
	return rc ? err_set(e, "cannot write the table to standard output") : 0;
}
