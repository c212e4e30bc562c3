/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <math.h>

#include "base/file.h"
#include "map/matrix/matrix.h"

#define MAX_BYTES ((size_t) 2 << 30)

/* Sums of weights times distances then cannot become infinite. */
#define MAX_WEIGHT 1e200

/* A position in a text that ends with a NUL, at end. */
struct matrix_scan {
	const char *name;
	const char *at, *end;
	unsigned line;
	unsigned ranks;		/* 0: unknown yet */
	bool sure;		/* the file itself states the number of ranks */
	struct matrix_entries *found;
	struct err *err;
};

static int scan_wrong(struct matrix_scan *s, const char *what)
{
	return err_set(s->err, "%s:%u: %s", s->name, s->line, what);
}

/* Whether only blanks are left on the line. */
static bool line_ends(struct matrix_scan *s)
{
	while (*s->at == ' ' || *s->at == '\t' || *s->at == '\r')
		s->at++;
	return *s->at == '\n' || s->at == s->end;
}

static void line_skip(struct matrix_scan *s)
{
	const char *newline = memchr(s->at, '\n', s->end - s->at);

	s->at = newline ? newline + 1 : s->end;
	s->line += newline != NULL;
}

static bool line_seek_past(struct matrix_scan *s, const char *comments)
{
	while (s->at < s->end && (line_ends(s) || (*s->at && strchr(comments, *s->at))))
		line_skip(s);
	return s->at < s->end;
}

static bool line_seek(struct matrix_scan *s)
{
	return line_seek_past(s, "");
}

static inline bool number_ends(char c)
{
	return !c || c == ' ' || (c >= '\t' && c <= '\r');
}

/* Integers of so many digits are exact in a double. */
#define EXACT_DIGITS 15

/*
 * Reads a short integer after blanks, the most frequent form in large files. False for anything else; only the blanks
 * are then consumed.
 */
static inline bool whole_read(struct matrix_scan *s, uint64_t *out)
{
	const char *p;
	uint64_t v = 0;

	if (line_ends(s))
		return false;
	for (p = s->at; *p >= '0' && *p <= '9' && p - s->at < EXACT_DIGITS; p++)
		v = v * 10 + (uint64_t) (*p - '0');
	if (p == s->at || !number_ends(*p))
		return false;
	s->at = p;
	*out = v;
	return true;
}

/*
 * The text ends with a NUL, so that strtod stops; letters are excluded because strtod reads hexadecimal, infinities and
 * NaN.
 */
static int number_read(struct matrix_scan *s, double *out)
{
	char *stop;
	double v;

	if (line_ends(s))
		return scan_wrong(s, "missing number");
	if (!*s->at || !strchr("+-.0123456789", *s->at))
		return scan_wrong(s, "not a number");
	v = strtod(s->at, &stop);
	if (*stop == ',' || *stop == ';')
		return scan_wrong(s, "numbers are separated by blanks, not by commas");
	if (stop == s->at || !number_ends(*stop) || !isfinite(v) || memchr(s->at, 'x', stop - s->at) ||
	    memchr(s->at, 'X', stop - s->at))
		return scan_wrong(s, "not a finite number");
	s->at = stop;
	*out = v;
	return 0;
}

static int weight_read_any(struct matrix_scan *s, double *out)
{
	double v;

	if (number_read(s, &v))
		return -1;
	if (v < 0)
		return scan_wrong(s, "negative weight");
	if (v > MAX_WEIGHT)
		return scan_wrong(s, "weight above 1e200");
	*out = v;
	return 0;
}

static int count_read(struct matrix_scan *s, unsigned min, unsigned max, const char *what, unsigned *out)
{
	uint64_t whole;
	double v;

	if (whole_read(s, &whole))
		v = whole;
	else if (number_read(s, &v))
		return -1;
	if (v < min || v > max || v != (double) (uint64_t) v)
		return scan_wrong(s, what);
	*out = v;
	return 0;
}

static int ranks_read(struct matrix_scan *s, unsigned *out)
{
	return count_read(s, 1, MATRIX_MAX_RANKS, "the number of ranks must be 1 to 65536", out);
}

static inline int weight_read(struct matrix_scan *s, double *out)
{
	uint64_t whole;

	if (!whole_read(s, &whole))
		return weight_read_any(s, out);
	*out = whole;
	return 0;
}

static inline int pair_add(struct matrix_scan *s, unsigned a, unsigned b, double weight)
{
	return weight != 0 && matrix_entries_add(s->found, a, b, weight) ? scan_wrong(s, "out of memory") : 0;
}

/* --- dense text --- */

static int row_read(struct matrix_scan *s, unsigned row)
{
	unsigned col;

	for (col = 0; !line_ends(s); col++) {
		double weight;

		if (row ? col == s->ranks : col == MATRIX_MAX_RANKS)
			return scan_wrong(s, row ? "the row is longer than the first" : "more than 65536 ranks");
		if (weight_read(s, &weight) || pair_add(s, row, col, weight))
			return -1;
	}
	if (!row)
		s->ranks = col;
	return col < s->ranks ? scan_wrong(s, "the row is shorter than the first") : 0;
}

static int dense_read(struct matrix_scan *s)
{
	unsigned row;

	for (row = 0; line_seek_past(s, "#%"); row++)
		if (row && row == s->ranks)
			return scan_wrong(s, "more rows than columns");
		else if (row_read(s, row))
			return -1;
	return row < s->ranks ? scan_wrong(s, "fewer rows than columns") : 0;
}

/* --- Matrix Market --- */

/* The banner of a Matrix Market file. Source: Boisvert, Pozo, Remington, NISTIR 5935, "Coordinate formats". */
struct market {
	bool pattern;
	double times;	/* what an entry stands for: itself, or itself and its mirror image */
};

/* Published files have one '%' as well, a blank behind it, or small letters. */
static const char *market_looks(const struct matrix_scan *s)
{
	static const char word[] = "MatrixMarket";
	const char *at = s->at + strspn(s->at, "%");

	at += strspn(at, " ");
	return *s->at == '%' && !strncasecmp(at, word, sizeof(word) - 1) ? at + sizeof(word) - 1 : NULL;
}

static int market_banner_read(struct matrix_scan *s, struct market *k)
{
	char object[16], layout[16], field[16], symmetry[16], text[128];
	const char *words = market_looks(s);
	size_t len = strcspn(words, "\r\n");

	snprintf(text, sizeof(text), "%.*s", (int) (len < sizeof(text) ? len : sizeof(text) - 1), words);
	if (sscanf(text, " %15s %15s %15s %15s", object, layout, field, symmetry) != 4 ||
	    strcasecmp(object, "matrix") || strcasecmp(layout, "coordinate"))
		return scan_wrong(s, "expected '%%MatrixMarket matrix coordinate'");
	k->pattern = !strcasecmp(field, "pattern");
	if (!k->pattern && strcasecmp(field, "real") && strcasecmp(field, "integer"))
		return scan_wrong(s, "the field must be real, integer or pattern");
	k->times = strcasecmp(symmetry, "symmetric") ? 1 : 2;
	if (k->times == 1 && strcasecmp(symmetry, "general"))
		return scan_wrong(s, "the symmetry must be general or symmetric");
	line_skip(s);
	return 0;
}

static int market_sizes_read(struct matrix_scan *s, unsigned *entries)
{
	unsigned cols;

	line_seek_past(s, "%");
	if (ranks_read(s, &s->ranks) || ranks_read(s, &cols) ||
	    count_read(s, 0, UINT32_MAX, "the number of entries is out of range", entries))
		return -1;
	if (cols != s->ranks)
		return scan_wrong(s, "the matrix is not square");
	if (!line_ends(s))
		return scan_wrong(s, "text after the sizes");
	line_skip(s);
	return 0;
}

static int market_entry_read(struct matrix_scan *s, const struct market *k)
{
	double weight = 1;
	unsigned a, b;

	if (count_read(s, 1, s->ranks, "row out of range", &a) ||
	    count_read(s, 1, s->ranks, "column out of range", &b) ||
	    (!k->pattern && weight_read(s, &weight)))
		return -1;
	if (!line_ends(s))
		return scan_wrong(s, "text after the entry");
	line_skip(s);
	return pair_add(s, a - 1, b - 1, k->times * weight);
}

/* --- Scotch's graphs --- */

static const char no_such_flags[] = "the flags must be 000, 001, 010 or 011 (no vertex labels)";

/* Source: Scotch user's guide, "Graph format": version, vertices and arcs, base and flags. */
struct graph {
	unsigned arcs, base;
	bool vertex_loads, edge_loads;
};

/* A graph's numbers may be on any line. */
static int graph_count(struct matrix_scan *s, double min, double max, const char *what, unsigned *out)
{
	line_seek(s);
	return count_read(s, min, max, what, out);
}

static int graph_header(struct matrix_scan *s, struct graph *g)
{
	unsigned version, flags;

	if (graph_count(s, 0, 0, "the version must be 0", &version))
		return -1;
	line_seek(s);
	if (ranks_read(s, &s->ranks) ||
	    graph_count(s, 0, UINT32_MAX, "the number of arcs is out of range", &g->arcs) ||
	    graph_count(s, 0, 1, "the base must be 0 or 1", &g->base) || graph_count(s, 0, 11, no_such_flags, &flags))
		return -1;
	if (flags % 10 > 1)
		return scan_wrong(s, no_such_flags);
	g->vertex_loads = flags % 10;
	g->edge_loads = flags / 10;
	return 0;
}

static int graph_arc(struct matrix_scan *s, const struct graph *g, unsigned from)
{
	double weight = 1;
	unsigned to = 0;

	if (g->edge_loads) {
		line_seek(s);
		if (weight_read(s, &weight))
			return -1;
	}
	if (graph_count(s, g->base, s->ranks - 1 + g->base, "vertex out of range", &to))
		return -1;
	/* An edge is written at both of its ends. */
	return pair_add(s, from, to - g->base, weight / 2);
}

static int graph_vertex(struct matrix_scan *s, struct graph *g, unsigned vertex)
{
	unsigned load, degree = 0;

	if (g->vertex_loads && graph_count(s, 0, UINT32_MAX, "load out of range", &load))
		return -1;
	if (graph_count(s, 0, g->arcs, "degree exceeds the remaining arcs", &degree))
		return -1;
	for (g->arcs -= degree; degree; degree--)
		if (graph_arc(s, g, vertex))
			return -1;
	return 0;
}

static int graph_read(struct matrix_scan *s)
{
	struct graph g = {0};

	if (graph_header(s, &g))
		return -1;
	for (unsigned v = 0; v < s->ranks; v++)
		if (graph_vertex(s, &g, v))
			return -1;
	if (g.arcs)
		return scan_wrong(s, "fewer arcs than the header says");
	return line_seek(s) ? scan_wrong(s, "text after the last vertex") : 0;
}

/* --- Open MPI's monitoring --- */

static const char no_such_rank[] = "rank out of range (0 to 65535)";

/* "E from to N bytes M msgs sent ...": what one rank sent to another. */
static int traffic_read(struct matrix_scan *s)
{
	size_t before = s->found->n;
	unsigned from, to, most;
	double bytes, messages = 0;

	if (count_read(s, 0, MATRIX_MAX_RANKS - 1, no_such_rank, &from) ||
	    count_read(s, 0, MATRIX_MAX_RANKS - 1, no_such_rank, &to) || weight_read(s, &bytes))
		return -1;
	if (line_ends(s) || strncmp(s->at, "bytes", 5))
		return scan_wrong(s, "expected 'bytes' after the number");
	s->at += strlen("bytes");
	if (!line_ends(s) && weight_read(s, &messages))
		return -1;
	most = from > to ? from : to;
	if (s->ranks <= most)
		s->ranks = most + 1;
	if (pair_add(s, from, to, bytes))
		return -1;
	if (s->found->n > before)
		s->found->entry[before].messages[from > to] = messages;
	return 0;
}

/* "D MPI_COMM_WORLD procs: 0,1,2": in order, so that the last is the largest. The other communicators are subsets. */
static int communicator_read(struct matrix_scan *s)
{
	static const char world[] = "MPI_COMM_WORLD";
	unsigned last;

	if (line_ends(s) || strncmp(s->at, world, strlen(world)))
		return 0;
	for (size_t len = strcspn(s->at, "\r\n"); len && strchr("0123456789", s->at[len - 1]); len--)
		if (len == 1 || !strchr("0123456789", s->at[len - 2])) {
			s->at += len - 1;
			break;
		}
	if (count_read(s, 0, MATRIX_MAX_RANKS - 1, no_such_rank, &last))
		return -1;
	if (s->ranks <= last)
		s->ranks = last + 1;
	s->sure = true;
	return 0;
}

static int line_ignore(struct matrix_scan *s)
{
	(void) s;
	return 0;
}

static const struct {
	const char *name;
	int (*read)(struct matrix_scan *s);
} lines[] = {
	{ "E", traffic_read }, { "I", traffic_read }, { "S", traffic_read }, { "R", traffic_read },
	{ "D", communicator_read },
	{ "C", line_ignore }, { "O2A", line_ignore }, { "A2O", line_ignore }, { "A2A", line_ignore },
};

/* The kind of the line, or -1. */
static int line_kind(const struct matrix_scan *s)
{
	size_t len = strcspn(s->at, " \t\r\n");

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (strlen(lines[i].name) == len && !memcmp(lines[i].name, s->at, len))
			return i;
	return -1;
}

static int prof_read(struct matrix_scan *s)
{
	for (; line_seek_past(s, "#"); line_skip(s)) {
		int kind = line_kind(s);

		if (kind < 0)
			return scan_wrong(s, "not a line of Open MPI's monitoring: expected E, I, S, R, C, D, "
						    "O2A, A2O or A2A");
		s->at += strlen(lines[kind].name);
		if (lines[kind].read(s))
			return -1;
	}
	return 0;
}

/* --- any of these, and several --- */

/* The first line of a Scotch graph is its version alone; so is the only line of a dense matrix of one rank. */
static bool looks_graph(const char *text)
{
	if (*text != '0')
		return false;
	text += 1 + strspn(text + 1, " \t\r");
	return *text == '\n' && text[strspn(text, " \t\r\n")];
}

static int scan_any(struct matrix_scan *s)
{
	if (!strncmp(s->at, "\xef\xbb\xbf", 3))	/* byte order mark of UTF-8 */
		s->at += 3;
	line_seek(s);
	if (market_looks(s)) {
		struct market k = {0};
		unsigned entries;

		if (market_banner_read(s, &k) || market_sizes_read(s, &entries))
			return -1;
		for (; entries; entries--)
			if (!line_seek_past(s, "%"))
				return scan_wrong(s, "fewer entries than the header says");
			else if (market_entry_read(s, &k))
				return -1;
		return line_seek_past(s, "%") ? scan_wrong(s, "more entries than the header says") : 0;
	}
	if (!line_seek_past(s, "#%"))
		return 0;
	if (line_kind(s) >= 0)
		return prof_read(s);
	return looks_graph(s->at) ? graph_read(s) : dense_read(s);
}

/* text[len] must be a NUL, as a struct buf has it. */
static int scan_text(struct matrix_scan *s, const char *text, size_t len)
{
	s->at = text;
	s->end = text + len;
	s->line = 1;
	if (len && scan_any(s))
		return -1;
	return s->ranks ? 0 : err_set(s->err, "%s: empty", s->name);
}

static struct matrix *matrix_from_entries(const char *name, unsigned ranks, struct matrix_entries *f, struct err *e)
{
	struct matrix *m = matrix_build(ranks, f);

	if (!m)
		err_set(e, "%s: out of memory", name);
	return m;
}

struct matrix *matrix_parse(const char *text, size_t len, const char *name, struct err *e)
{
	struct matrix_entries found = {0};
	struct matrix_scan s = { .name = name, .found = &found, .err = e };
	struct matrix *m = NULL;
	struct buf copy = {0};

	buf_add(&copy, text, len);
	if (copy.failed)
		err_set(e, "%s: out of memory", name);
	else if (!scan_text(&s, copy.data, len))
		m = matrix_from_entries(name, s.ranks, &found, e);
	buf_free(&copy);
	free(found.entry);
	return m;
}

/* The sum of the files so far. */
struct sum {
	struct matrix_entries found;
	unsigned ranks;
	const char *sure;	/* a file that states the number of ranks, or NULL */
	size_t merge_at;	/* entries are merged at this number */
};

#define MERGE_AT ((size_t) 1 << 20)

/* Limits memory for thousands of files to about twice that of one. */
static int merge_when_many(struct sum *sum)
{
	if (sum->found.n < sum->merge_at)
		return 0;
	if (matrix_entries_sort(&sum->found, sum->ranks))
		return -1;
	sum->merge_at = 2 * sum->found.n + MERGE_AT;
	return 0;
}

/* The file's entries begin at `first`. Entries of smaller runs are dropped. Returns 1: the file counts. */
static int runs_differ(struct sum *sum, struct matrix_files *f, size_t i, const struct matrix_scan *s, size_t first)
{
	if (!f->largest)
		return err_set(s->err, "%s: %u ranks, but %s has %u: they are of different runs", s->name, s->ranks,
			       sum->sure, sum->ranks);
	if (s->ranks < sum->ranks) {
		sum->found.n = first;
		return 0;
	}
	sum->found.n -= first;
	memmove(sum->found.entry, sum->found.entry + first, sum->found.n * sizeof(*sum->found.entry));
	/* Drops the files before file i. */
	if (f->used)
		memset(f->used, 0, i * sizeof(*f->used));
	sum->ranks = s->ranks;
	sum->sure = s->name;
	return 1;
}

/* Returns 1: the file counts, 0: it does not, -1: error. */
static int file_add(struct sum *sum, struct matrix_files *f, size_t i, struct err *e)
{
	struct matrix_scan s = { .name = f->path[i], .found = &sum->found, .err = e };
	size_t first = sum->found.n;
	struct buf text;
	int rc;

	if (file_read(s.name, MAX_BYTES, &text, e))
		return -1;
	rc = scan_text(&s, text.data, text.len);
	buf_free(&text);
	if (rc)
		return -1;
	if (s.sure && sum->sure && s.ranks != sum->ranks)
		return runs_differ(sum, f, i, &s, first);
	if (s.sure)
		sum->sure = s.name;
	if (sum->ranks < s.ranks)
		sum->ranks = s.ranks;
	return 1;
}

struct matrix *matrix_sum(struct matrix_files *f, struct err *e)
{
	struct sum sum = { .merge_at = MERGE_AT };
	struct matrix *m = NULL;
	int rc = 0;

	for (size_t i = 0; i < f->n && rc >= 0; i++) {
		if ((rc = file_add(&sum, f, i, e)) >= 0 && f->used)
			f->used[i] = rc;
		if (rc >= 0 && merge_when_many(&sum))
			rc = err_set(e, "%s: out of memory", f->path[i]);
	}
	if (f->n && rc >= 0)
		m = matrix_from_entries(f->path[0], sum.ranks, &sum.found, e);
	free(sum.found.entry);
	return m;
}

struct matrix *matrix_read(const char *path, struct err *e)
{
	char *paths[] = { (char *) path };
	struct matrix_files one = { .path = paths, .n = 1 };

	return matrix_sum(&one, e);
}
