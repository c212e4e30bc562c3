/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/verdict.h"

#include "base/number.h"
#include "score/score_tree.h"

#define MARK "topiary:"
#define VERSION "topiary:1"
#define END "end"
#define CUT "..."
#define BLANKS " \t\r\n\v\f"

static const char *const outcomes[VERDICT_COUNT] = { [VERDICT_PLACED] = "placed", [VERDICT_LEFT] = "left",
						     [VERDICT_WAITS] = "waits" };

/* The rows that are counted at several levels, and their levels. */
static const struct {
	const char *name;
	enum level first, last;
} rows[SCORE_ROWS] = {
	[SCORE_BEYOND] = { "beyond", LEVEL_NODE, LEVEL_NODE },
	[SCORE_CUTS] = { "cuts", LEVEL_NUMA, LEVEL_L3 },
	[SCORE_TOUCHED] = { "touched", LEVEL_PACKAGE, LEVEL_L2 },
	[SCORE_OPEN] = { "open", LEVEL_PACKAGE, LEVEL_L2 },
	[SCORE_BROKEN] = { "broken", LEVEL_PACKAGE, LEVEL_L2 },
	[SCORE_LEFT] = { "left", LEVEL_NODE, LEVEL_L2 },
};

const char *outcome_name(enum verdict_outcome outcome)
{
	return outcome < VERDICT_COUNT ? outcomes[outcome] : "?";
}

const char *score_row_name(enum score_row row)
{
	return row < SCORE_ROWS ? rows[row].name : "?";
}

#define FIELD(field) .at = offsetof(struct verdict, field), .size = sizeof(((struct verdict *) NULL)->field)
#define NUMBER(field) { #field, WORD_NUMBER, FIELD(field) }
#define COUNTS(name, which) { name, WORD_COUNTS, .row = which }
#define OTHER(name, kind) { name, kind, .at = 0 }

/* The cores are last, because they use the remaining room. */
const struct verdict_word verdict_words[] = {
	OTHER("fit", WORD_FIT),
	OTHER("level", WORD_LEVEL),
	OTHER("request", WORD_PATH),
	NUMBER(nodes),
	NUMBER(more_nodes),
	OTHER("tasks", WORD_TASKS),
	NUMBER(all_tasks),
	NUMBER(cores_per_node),
	NUMBER(own_cores),
	NUMBER(unspread),
	NUMBER(whole_nodes),
	NUMBER(whole_tasks),
	NUMBER(memory_far),
	NUMBER(gpus),
	NUMBER(gpus_far),
	NUMBER(gpus_unknown),
	NUMBER(cores_far),
	NUMBER(candidates),
	NUMBER(room),
	NUMBER(unknown),
	COUNTS("beyond", SCORE_BEYOND),
	COUNTS("cuts", SCORE_CUTS),
	COUNTS("touched", SCORE_TOUCHED),
	COUNTS("open", SCORE_OPEN),
	COUNTS("broken", SCORE_BROKEN),
	COUNTS("left", SCORE_LEFT),
	NUMBER(free_unknown),
	{ "lacks", WORD_TEXT, FIELD(lacks) },
	{ "beside", WORD_TEXT, FIELD(beside) },
	NUMBER(better),
	OTHER("decided", WORD_DECIDED),
	{ "reason", WORD_TEXT, FIELD(reason), .blank = '_' },
	{ "cores", WORD_TEXT, FIELD(cores), .blank = ';' },
};
const unsigned verdict_word_count = sizeof(verdict_words) / sizeof(verdict_words[0]);

static unsigned *number_at(const struct verdict *v, const struct verdict_word *w)
{
	return (unsigned *) ((char *) v + w->at);
}

unsigned verdict_number(const struct verdict *v, const struct verdict_word *w)
{
	return *number_at(v, w);
}

bool verdict_lacks(const struct verdict *v, enum level level)
{
	return strstr(v->lacks, level_name(level));
}

static bool has_levels(enum score_row row)
{
	return row < SCORE_ROWS && rows[row].first < rows[row].last;
}

/* Of the cores as many nodes as there is room for: the line ends after them. */
static void write_text(const struct verdict *v, const struct verdict_word *w, struct buf *out)
{
	size_t max = VERDICT_TEXT - strlen(" " END), from = out->len;
	const char *text = (const char *) v + w->at;

	for (size_t i = 0; i < w->size && text[i]; i++) {
		bool fits = text[i] > ' ' && text[i] <= '~' && !strchr("\"'`\\|", text[i]);
		char c = fits ? text[i] : text[i] == ' ' && w->blank ? w->blank : '?';

		buf_add(out, &c, 1);
	}
	if (out->failed || out->len <= max || w != &verdict_words[verdict_word_count - 1])
		return;
	max -= max < strlen(CUT) ? max : strlen(CUT);
	while (out->len > from && (out->len > max || out->data[out->len - 1] != w->blank))
		out->len--;
	buf_puts(out, CUT);
}

/* Appends the value, or nothing to omit the word. */
static void write_value(const struct verdict *v, const struct verdict_word *w, struct buf *out)
{
	char path[VERDICT_TEXT];
	unsigned all = 0;

	switch (w->kind) {
	case WORD_NUMBER:
		if (verdict_number(v, w))
			buf_printf(out, "%u", verdict_number(v, w));
		break;
	case WORD_TEXT:
		write_text(v, w, out);
		break;
	case WORD_FIT:
		buf_puts(out, fit_name(v->request.fit));
		break;
	case WORD_LEVEL:
		if (v->request.level != LEVEL_NODE)
			buf_puts(out, level_name(v->request.level));
		break;
	case WORD_PATH:
		request_path_text(&v->request.path, path, sizeof(path));
		buf_puts(out, path);
		break;
	case WORD_TASKS:
		if (v->tasks || v->task_cores)
			buf_printf(out, "%ux%u", v->tasks, v->task_cores);
		break;
	case WORD_COUNTS:
		for (enum level level = rows[w->row].first; level <= rows[w->row].last; level++)
			all |= score_count(&v->cost, w->row, level);
		for (enum level level = rows[w->row].first; all && level <= rows[w->row].last; level++)
			buf_printf(out, "%s%u", level > rows[w->row].first ? "," : "",
				   score_count(&v->cost, w->row, level));
		break;
	case WORD_DECIDED:
		if (*v->beside && v->decided_row >= 0)
			buf_printf(out, "%s%s%s", score_row_name(v->decided_row), has_levels(v->decided_row) ? ":" : "",
				   has_levels(v->decided_row) ? level_name(v->decided_level) : "");
		break;
	}
}

static int read_decided(struct verdict *v, const char *value)
{
	size_t len = strcspn(value, ":");
	int row = 0, level = value[len] ? level_parse(value + len + 1) : LEVEL_NODE;

	while (row < SCORE_ROWS && (strlen(rows[row].name) != len || memcmp(rows[row].name, value, len)))
		row++;
	if (row == SCORE_ROWS || has_levels(row) != (value[len] != '\0') || level < (int) rows[row].first ||
	    level > (int) rows[row].last)
		return -1;
	v->decided_row = row;
	v->decided_level = level;
	return 0;
}

static int read_text(struct verdict *v, const struct verdict_word *w, const char *value)
{
	char *text = (char *) v + w->at;

	if (strlen(value) >= w->size)
		return -1;
	strcpy(text, value);
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			return -1;
		if (w->blank && *text == w->blank)
			*text = ' ';
	}
	return 0;
}

static int read_value(struct verdict *v, const struct verdict_word *w, const char *value)
{
	char option[32];
	unsigned count;

	switch (w->kind) {
	case WORD_NUMBER:
		return number_read(&value, UINT32_MAX, number_at(v, w)) || *value ? -1 : 0;
	case WORD_TEXT:
		return read_text(v, w, value);
	case WORD_TASKS:
		return number_read(&value, UINT32_MAX, &v->tasks) || *value++ != 'x' ||
		       number_read(&value, UINT32_MAX, &v->task_cores) || *value ? -1 : 0;
	case WORD_COUNTS:
		for (enum level level = rows[w->row].first; level <= rows[w->row].last; level++) {
			if (number_read(&value, SCORE_MAX_CORES, &count) ||
			    *value++ != (level < rows[w->row].last ? ',' : '\0'))
				return -1;
			cost_set(&v->cost, w->row, level, count);
		}
		return 0;
	case WORD_DECIDED:
		return read_decided(v, value);
	default:	/* these have the names of the options */
		snprintf(option, sizeof(option), "topo-%s", w->name);
		return request_set(&v->request, option, value, NULL);
	}
}

void verdict_write(const struct verdict *v, struct buf *out)
{
	struct buf line = {0};

	buf_printf(&line, VERSION " %s", outcome_name(v->outcome));
	for (size_t i = 0; i < verdict_word_count; i++) {
		size_t from = line.len, value;

		buf_printf(&line, " %s=", verdict_words[i].name);
		value = line.len;
		write_value(v, &verdict_words[i], &line);
		if (line.failed || line.len > value)
			continue;
		/* No value: without the word. */
		line.len = from;
		line.data[from] = '\0';
	}
	buf_puts(&line, " " END);
	if (line.failed)
		out->failed = true;
	else
		buf_add(out, line.data, line.len);
	buf_free(&line);
}

/*
 * After its first two words a line has only name=value until its end, so that a truncated line does not absorb words of
 * others, or another line. Returns 0, 1 when there is none, -1 when there is only a part of one.
 */
static int line_find(const char *comment, size_t *start, size_t *len)
{
	const char *mark = NULL;
	bool cut = false;
	size_t n, nth = 0, m = strlen(MARK);

	for (const char *at = comment ? comment : ""; *(at += strspn(at, BLANKS)); at += n, nth++) {
		n = strcspn(at, BLANKS);
		if (n > m && !memcmp(at, MARK, m) && isdigit((unsigned char) at[m])) {
			cut = true;
			mark = at;
			nth = 0;
		} else if (mark && nth > 1 && n == strlen(END) && !memcmp(at, END, n)) {
			*start = mark - comment;
			*len = at + n - mark;
			return 0;
		} else if (nth > 1 && !memchr(at, '=', n)) {
			mark = NULL;
		}
	}
	return cut ? -1 : 1;
}

int verdict_find(const char *comment, size_t *start, size_t *len)
{
	return line_find(comment, start, len) ? 1 : 0;
}

static int read_word(struct verdict *v, const char *text, size_t len, uint64_t *seen, struct err *e)
{
	size_t name = strcspn(text, "= "), nth = 0;
	const struct verdict_word *w;
	char value[VERDICT_TEXT];

	while (nth < verdict_word_count &&
	       (strlen(verdict_words[nth].name) != name || memcmp(verdict_words[nth].name, text, name)))
		nth++;
	if (nth == verdict_word_count || name >= len)
		return 0;
	w = &verdict_words[nth];
	if (*seen & UINT64_C(1) << nth)
		return err_set(e, "'%s' occurs twice", w->name);
	*seen |= UINT64_C(1) << nth;
	len -= name + 1;
	if (len < sizeof(value)) {
		memcpy(value, text + name + 1, len);
		value[len] = '\0';
	}
	return len >= sizeof(value) || read_value(v, w, value) ? err_set(e, "'%s' cannot be read", w->name) : 0;
}

/* Reads the words of a line from the second on, without the end. */
static int read_line(struct verdict *v, const char *at, const char *end, struct err *e)
{
	uint64_t seen = 0;
	size_t n;

	for (unsigned nth = 1; (at += strspn(at, BLANKS)) < end; at += n, nth++) {
		n = strcspn(at, BLANKS);
		if (nth > 1 && read_word(v, at, n, &seen, e))
			return -1;
		if (nth > 1)
			continue;
		for (v->outcome = 0; v->outcome < VERDICT_COUNT; v->outcome++)
			if (strlen(outcomes[v->outcome]) == n && !memcmp(outcomes[v->outcome], at, n))
				break;
		if (v->outcome == VERDICT_COUNT)
			return err_set(e, "the outcome cannot be read");
	}
	return 0;
}

int verdict_read(const char *comment, struct verdict *out, struct err *e)
{
	struct verdict v = { .decided_row = -1, .decided_level = -1 };
	size_t start, len;
	int rc = line_find(comment, &start, &len);

	if (rc > 0)
		return 1;
	if (rc < 0)
		return err_set(e, MARK " the line has no end");
	if (strcspn(comment + start, BLANKS) != strlen(VERSION) || memcmp(comment + start, VERSION, strlen(VERSION)))
		return err_set(e, MARK " the line is of a later version of Topiary");
	if (read_line(&v, comment + start + strlen(VERSION), comment + start + len - strlen(END), e))
		return err_within(e, VERSION);
	*out = v;
	return 0;
}
