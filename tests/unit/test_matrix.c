/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <math.h>
#include <sys/resource.h>

#include "base/file.h"
#include "../../cli/place/matrix_rule.h"
#include "made.h"

static double weight_of(const struct matrix *m, unsigned a, unsigned b)
{
	for (size_t i = m->row[a]; i < m->row[a + 1]; i++)
		if (m->adj[i] == b)
			return m->weight[i];
	return 0;
}

static size_t pairs_of(const struct matrix *m)
{
	return m->row[m->ranks] / 2;
}

/* Rows in order, each pair from both ends alike, none with itself. */
static void check_form(const struct matrix *m)
{
	for (unsigned r = 0; r < m->ranks; r++)
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++) {
			assert_true(m->adj[i] < m->ranks && m->adj[i] != r && m->weight[i] > 0);
			assert_true(i == m->row[r] || m->adj[i - 1] < m->adj[i]);
			assert_true(weight_of(m, m->adj[i], r) == m->weight[i]);
		}
}

static void assert_same(const struct matrix *m, const struct matrix *other)
{
	assert_int_equal(m->ranks, other->ranks);
	assert_memory_equal(m->row, other->row, (m->ranks + 1) * sizeof(*m->row));
	assert_memory_equal(m->adj, other->adj, m->row[m->ranks] * sizeof(*m->adj));
	assert_memory_equal(m->weight, other->weight, m->row[m->ranks] * sizeof(*m->weight));
}

/* The same three ranks in every form: 0-1 exchange 5, 1-2 exchange 2. */
TEST(reads_every_format)
{
	static const char *const rows[] = {
		"0 2 0\n3 0 1\n0 1 0\n",
		"0 5 0\r\n0 9 2\r\n0 0 0",
		"\n0\t2.5e0 0 \n2.5 0 1\n\n0 1 0\n\n",
		"%%MatrixMarket matrix coordinate real general\n% a comment\n3 3 3\n1 2 4\n2 1 1.0\n3 2 2\n",
		"%%MatrixMarket matrix coordinate integer general\n3 3 4\n1 2 5\n\n2 3 1\n2 3 1\n1 1 7\n",
		"%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 2.5\n3 2 1\n",
		"% matrixmarket MATRIX Coordinate Real Symmetric\n3 3 2\n2 1 2.5\n3 2 1\n",
		"\xef\xbb\xbf%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 2.5\n3 2 1\n",
		"0\n3 4\n0 010\n1 5 1\n2 5 0 2 2\n1 2 1\n",
		"0\n3\t4\n1 011\n8 1 5 2\n9 2 5 1 2 3\n7 1 2 2\n",
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(matrix_free) struct matrix *m = matrix_of(rows[i]);

		assert_int_equal(m->ranks, 3);
		assert_int_equal(m->row[3], 4);
		for (unsigned a = 0; a < 3; a++)
			for (unsigned b = 0; b < 3; b++)
				assert_true(weight_of(m, a, b) == (a + b == 1 ? 5 : a + b == 3 && a && b ? 2 : 0));
	}
}

TEST(reads_patterns)
{
	struct matrix *m = matrix_of("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n3 1\n");

	assert_true(weight_of(m, 0, 2) == 2);
	matrix_free(m);
	m = matrix_of("0\n2 2\n0 0\n1 1\n1 0\n");
	assert_true(weight_of(m, 0, 1) == 1);
	matrix_free(m);
	m = matrix_of("0\n");
	assert_int_equal(m->ranks, 1);
	matrix_free(m);
}

TEST(reads_monitoring)
{
	/* What Open MPI 4.1 wrote for a rank, with the histograms shortened. */
	struct matrix *m = matrix_of(
		"# POINT TO POINT\nE\t0\t1\t1000 bytes\t1 msgs sent\t1,0,0,3\nE\t0\t2\t300 bytes\t1 msgs sent\t1\n"
		"I\t0\t1\t2120 bytes\t7 msgs sent\nI\t0\t3\t0 bytes\t1 msgs sent\n"
		"# OSC\nS\t0\t2\t7 bytes\t1 msgs sent\nR\t0\t2\t70 bytes\t1 msgs sent\n"
		"# COLLECTIVES\nC\t0\t1\t9999 bytes\t7 msgs sent\nD\tMPI_COMM_WORLD\tprocs: 0,1,2,3,4\n"
		"O2A\t0\t6000 bytes\t1 msgs sent\nA2O\t0\t0 bytes\t0 msgs sent\nA2A\t0\t360 bytes\t6 msgs sent\n"
		"D\tMPI COMMUNICATOR 3 SPLIT FROM 0\tprocs: 0,2\nE\t1\t0\t1 bytes\t1 msgs sent\r\n");

	check_form(m);
	assert_int_equal(m->ranks, 5);
	assert_int_equal(pairs_of(m), 2);
	assert_true(weight_of(m, 0, 1) == 1000 + 2120 + 1);
	assert_true(weight_of(m, 2, 0) == 300 + 7 + 70);
	/* By the sender: 0 to 1 and 2, then 1 to 0, 2 to 0. */
	assert_non_null(m->messages);
	assert_true(m->messages[0] == 1 + 7 && m->messages[1] == 3 && m->messages[2] == 1 && m->messages[3] == 0);
	matrix_free(m);
	m = matrix_of("E 3 1 5 bytes\n");
	assert_int_equal(m->ranks, 4);
	assert_null(m->messages);
	matrix_free(m);
	/* Known of each pair, or of none. */
	m = matrix_of("E 0 1 5 bytes 2 msgs sent\nE 1 2 5 bytes\n");
	assert_null(m->messages);
	matrix_free(m);
}

TEST(reads_comments)
{
	static const char *const rows[] = {
		"# by hand\n\n0 1\n# between\n1 0\n", "% as well\n0 2\n0 0\n",
		"\n\n%%MatrixMarket matrix coordinate real general\n%\n2 2 1\n% x\n2 1 2\n%\n",
		"# of rank 0\nE 0 1 2 bytes\n",
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(matrix_free) struct matrix *m = matrix_of(rows[i]);

		assert_int_equal(m->ranks, 2);
		assert_true(weight_of(m, 0, 1) == 2);
	}
}

/* Beyond 2^31 and 2^53, and a sum beyond 2^64: nothing turns negative, or small. */
TEST(keeps_large_weights)
{
	struct matrix *m = matrix_of("E 0 1 4294967296 bytes\nE 1 0 1 bytes\nE 1 2 18446744073709551615 bytes\n"
				     "I 1 2 18446744073709551615 bytes\nE 0 2 9007199254740992 bytes\n");

	assert_true(weight_of(m, 0, 1) == 4294967297.0);
	assert_true(weight_of(m, 1, 2) == 0x1p65);
	assert_true(weight_of(m, 0, 2) == 0x1p53);
	matrix_free(m);
}

static void matrix_refused(const char *text, const char *says)
{
	struct err e = {""};

	if (matrix_parse(text, strlen(text), "test", &e))
		fail_msg("accepted: %s", text);
	if (!strstr(e.text, says) || strncmp(e.text, "test:", 5))
		fail_msg("'%s' for %s", e.text, text);
}

TEST(refuses)
{
	matrix_refused("\x7f" "ELF", "test:1: not a number");
	matrix_refused("0 1\r1 0\r", "fewer rows");
	matrix_refused("%%MatrixMarket matrix coordinate real general\r\n2 2 1\r\n1 2 -1\r\n",
		       "test:3: negative weight");
	cases_each("refused/matrix.txt", matrix_refused);
}

/* Memory follows what a file holds: a process of 64 MiB reads headers that claim the most they may. */
TEST(headers_allocate_nothing)
{
	static const char *const rows[] = {
		"%%MatrixMarket matrix coordinate real general\n65536 65536 4294967295\n1 2 3\n",
		"0\n65536 4294967295\n0 010\n4294967295 1 2\n",
	};
	struct rlimit old, tight = { 64 << 20, RLIM_INFINITY };
	struct err e = {""};

#ifdef __SANITIZE_ADDRESS__
	skip();	/* its shadow memory takes terabytes of addresses */
#endif
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	tight.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
	for (size_t i = 0; i < ROWS(rows); i++) {
		assert_null(matrix_parse(rows[i], strlen(rows[i]), "test", &e));
		assert_null(strstr(e.text, "memory"));
	}
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
}

TEST(keeps_the_first_ranks)
{
	OWNED(matrix_free) struct matrix *m = matrix_of("0 1 2 4\n1 0 3 5\n2 3 0 6\n4 5 6 0\n"),
		*head = matrix_range(m, 0, 3);

	assert_int_equal(head->ranks, 3);
	assert_int_equal(head->row[3], 6);
	for (unsigned a = 0; a < 3; a++)
		for (unsigned b = 0; b < 3; b++)
			assert_true(weight_of(head, a, b) == weight_of(m, a, b));
}

enum { MAX_FILES = 4 };

static void write_files(const char *const *texts, char **paths, size_t n)
{
	OWNED(free) char *folder = folder_new();

	for (size_t i = 0; i < n; i++) {
		assert_true(asprintf(&paths[i], "%s/%zu.prof", folder, i) > 0);
		assert_int_equal(file_replace(paths[i], texts[i], strlen(texts[i]), 0600, NULL), 0);
	}
}

/* How a file tells the number of ranks. */
#define OF_2 "D MPI_COMM_WORLD procs: 0,1\n"
#define OF_3 "D MPI_COMM_WORLD procs: 0,1,2\n"

TEST(sums_files)
{
	static const struct {
		const char *texts[MAX_FILES];
		bool largest;
		unsigned ranks;		/* 0: an error */
		double weight;		/* of ranks 0 and 1 */
		bool left_out[MAX_FILES];
		const char *says;
	} rows[] = {
		{ { "E 0 1 5 bytes\n" OF_2, "E 1 0 7 bytes\n" OF_2 }, false, 2, 12, {0}, NULL },
		{ { "E 0 1 5 bytes\n", "E 2 3 7 bytes\n" }, false, 4, 5, {0}, NULL },
		{ { "E 0 1 5 bytes\n" OF_3, "0 1\n1 0\n", "0\n2 2\n0 010\n1 8 1\n1 8 0\n" }, false, 3, 15, {0}, NULL },
		{ { "E 0 1 5 bytes\n" OF_3, "E 0 1 7 bytes\n" OF_2 }, false, 0, 0, {0}, "1.prof: 2 ranks, but" },
		{ { "E 0 1 5 bytes\n" OF_3, "E 0 1 7 bytes\n" OF_2 }, true, 3, 5, { 0, 1 }, NULL },
		{ { "E 0 1 7 bytes\n" OF_2, "E 1 0 9 bytes\n" OF_2, "E 0 1 5 bytes\n" OF_3, OF_3 }, true, 3, 5,
		  { 1, 1 }, NULL },
		{ { "E 0 1 7 bytes\n" OF_2, "E 0 1 5 bytes\n" OF_3, "E 1 0 9 bytes\n" OF_2,
		    "E 0 1 6 bytes\n" OF_3 }, true, 3, 11, { 1, 0, 1 }, NULL },
		{ { "E 0 1 5 bytes\n", "" }, true, 0, 0, {0}, "1.prof: empty" },
		{ { "E 0 1 5 bytes\n", "E 0 1\n" }, true, 0, 0, {0}, "1.prof:1: missing number" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		size_t n = 0;
		char *paths[MAX_FILES];
		bool used[MAX_FILES];
		struct matrix_files files = { .path = paths, .largest = rows[i].largest, .used = used };
		OWNED(matrix_free) struct matrix *m;
		struct err e = {""};

		while (n < MAX_FILES && rows[i].texts[n])
			n++;
		write_files(rows[i].texts, paths, files.n = n);
		m = matrix_sum(&files, &e);
		for (size_t k = 0; k < n; k++)
			free(paths[k]);
		if (!m != !rows[i].ranks || (!m && !strstr(e.text, rows[i].says)))
			fail_msg("row %zu: '%s'", i, e.text);
		if (!m)
			continue;
		check_form(m);
		assert_int_equal(m->ranks, rows[i].ranks);
		assert_true(weight_of(m, 0, 1) == rows[i].weight);
		for (size_t f = 0; f < n; f++)
			assert_true(used[f] == !rows[i].left_out[f]);
	}
}

static struct matrix *written_and_read(const struct matrix *m, const char *format, double *scale)
{
	FREED(buf_free) struct buf text = {0};
	struct matrix *again;

	assert_int_equal(matrix_write(m, format, &text, scale, NULL), 0);
	again = matrix_of(text.data);
	return again;
}

TEST(writes_what_it_reads)
{
	static const char *const rows[] = {
		"0 1 2.25\n0 0 1e-7\n1e18 0.1 0\n", "0\n", "0 0\n0 0\n", "0 0 0\n0 0 9007199254740993\n0 1 0\n",
		"0 1e199\n0 0\n", "E 0 1 18446744073709551615 bytes\nE 1 4 1 bytes\n",
	};
	static const char *const formats[] = { "dense", "mm" };

	for (size_t i = 0; i < ROWS(rows); i++)
		for (size_t f = 0; f < ROWS(formats); f++) {
			OWNED(matrix_free) struct matrix *m = matrix_of(rows[i]), *again;
			double scale = 0;

			again = written_and_read(m, formats[f], &scale);
			assert_same(m, again);
			assert_true(scale == 1);
		}
}

/* Whole numbers that a 32-bit Scotch can add up, in proportion; nobody's exchange vanishes. */
TEST(writes_graphs)
{
	struct matrix *m = matrix_of("0 3 0\n4 0 5\n0 0 0\n"), *again;
	double scale = 0, sum = 0;

	again = written_and_read(m, "grf", &scale);
	assert_same(m, again);
	assert_true(scale == 1);
	matrix_free(again);
	matrix_free(m);
	m = matrix_of("E 0 1 4000000000000 bytes\nE 1 2 2000000000000 bytes\nE 0 3 1 bytes\n");
	again = written_and_read(m, "grf", &scale);
	for (size_t i = 0; i < again->row[again->ranks]; i++)
		sum += again->weight[i];
	assert_true(scale > 1 && sum <= 2147483647.0 && sum > 2e9);
	assert_true(fabs(weight_of(again, 0, 1) / weight_of(again, 1, 2) - 2) < 1e-6);
	assert_true(weight_of(again, 0, 3) == 1);
	matrix_free(again);
	matrix_free(m);
}

TEST(refuses_formats)
{
	OWNED(matrix_free) struct matrix *m = matrix_of("0 1\n1 0\n");
	struct buf text = {0};
	struct err e = {""};
	double scale;

	assert_int_equal(matrix_write(m, "png", &text, &scale, &e), -1);
	assert_string_equal(e.text, "png: unknown matrix format; expected dense, mm, grf or prof");
	assert_int_equal(text.len, 0);
}

TEST(generates_by_rule)
{
	static const struct {
		const char *rule;
		unsigned ranks, pairs;
		unsigned a, b;
		double weight;		/* of a and b */
	} rows[] = {
		{ "stencil2d:4x3", 12, 17, 1, 5, 1024 },
		{ "stencil2d:4x3", 12, 17, 3, 4, 0 },
		{ "stencil2d:4x3:5", 12, 17, 0, 5, 0 },
		{ "stencil2d:4x3:9", 12, 17 + 12, 0, 5, 16 },
		{ "stencil2d:1x1", 1, 0, 0, 0, 0 },
		{ "stencil3d:2x3x4", 24, 12 + 16 + 18, 0, 6, 65536 },
		{ "stencil3d:2x3x4:27", 24, 12 + 16 + 18 + 16 + 18 + 24 + 24, 0, 3, 1024 },
		{ "stencil3d:2x3x4:27", 24, 12 + 16 + 18 + 16 + 18 + 24 + 24, 0, 9, 16 },
		{ "pencils:4x2", 8, 12 + 4, 0, 3, 2 * 1048576 / 4 },
		{ "pencils:4x2", 8, 12 + 4, 0, 4, 2 * 1048576 / 2 },
		{ "pencils:4x2", 8, 12 + 4, 0, 5, 0 },
		{ "ring:5", 5, 5, 4, 0, 2048 },
		{ "ring:1", 1, 0, 0, 0, 0 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(matrix_free) struct matrix *m = matrix_rule_make(rows[i].rule, 1, &err);

		assert_made(m);
		check_form(m);
		if (m->ranks != rows[i].ranks || pairs_of(m) != rows[i].pairs ||
		    weight_of(m, rows[i].a, rows[i].b) != rows[i].weight)
			fail_msg("%s: %u ranks, %zu pairs, %u and %u: %g", rows[i].rule, m->ranks, pairs_of(m),
				 rows[i].a, rows[i].b, weight_of(m, rows[i].a, rows[i].b));
	}
}

static size_t most_partners(const struct matrix *m)
{
	size_t most = 0;

	for (unsigned r = 0; r < m->ranks; r++)
		if (m->row[r + 1] - m->row[r] > most)
			most = m->row[r + 1] - m->row[r];
	return most;
}

/* The same seed the same, another seed another; eight partners each, of the same or of very different popularity. */
TEST(generates_random_matrices)
{
	static const struct {
		const char *rule;
		size_t least, most;	/* partners of the rank that has most */
	} rows[] = { { "random:4096", 14, 40 }, { "powerlaw:4096", 80, 1000 } };

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(matrix_free) struct matrix *m = matrix_rule_make(rows[i].rule, 7, NULL),
			*same = matrix_rule_make(rows[i].rule, 7, NULL);
		OWNED(matrix_free) struct matrix *other = matrix_rule_make(rows[i].rule, 8, NULL);

		check_form(m);
		assert_same(m, same);
		assert_true(m->row[m->ranks] != other->row[m->ranks] ||
			    memcmp(m->adj, other->adj, m->row[m->ranks] * sizeof(*m->adj)));
		assert_true(pairs_of(m) > 14000 && pairs_of(m) < 18000);
		if (most_partners(m) < rows[i].least || most_partners(m) > rows[i].most)
			fail_msg("%s: %zu partners", rows[i].rule, most_partners(m));
	}
}

TEST(refuses_rules)
{
	static const char *const rows[] = {
		"", "stencil", "stencil2d", "stencil2d:", "stencil2d:8", "stencil2d:8x", "stencil2d:8x8x8",
		"stencil2d:8x8:7", "stencil2d:0x8", "stencil2d:-8x8", "stencil2d:300x300", "stencil3d:8x8",
		"stencil3d:4x4x4:", "stencil3d:4x4x4:27x", "ring:65537", "ring:8:5", "ring:99999999999", "random:x",
		"pencils:8", "circle:8",
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = {""};

		if (matrix_rule_make(rows[i], 1, &e))
			fail_msg("accepted: %s", rows[i]);
		assert_non_null(strstr(e.text, "unknown rule"));
	}
}

TESTS_MAIN(NULL, NULL)
