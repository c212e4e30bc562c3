/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "map/matrix.h"
#include "map/places.h"
#include "map/rankfile.h"
#include "map/repair.h"
#include "map/solve.h"
#include "table.h"

static struct matrix *matrix_of(const char *text)
{
	struct err e = {""};
	struct matrix *m = matrix_parse(text, strlen(text), "test", &e);

	if (!m)
		fail_msg("%s\n%s", e.text, text);
	return m;
}

static void add(struct places *p, const char *host, const char *shape, const char *cores)
{
	struct shape *s = shape_parse(shape, NULL);
	struct err e = {""};

	assert_non_null(s);
	if (places_add(p, host, s, cores, &e))
		fail_msg("%s", e.text);
	shape_free(s);
}

static struct places *places_of(unsigned hosts, const char *shape, const char *cores)
{
	struct places *p = places_new();
	char name[32];

	assert_non_null(p);
	for (unsigned h = 0; h < hosts; h++) {
		snprintf(name, sizeof(name), "cn%u", h);
		add(p, name, shape, cores);
	}
	return p;
}

static double weight_of(const struct matrix *m, unsigned a, unsigned b)
{
	for (size_t i = m->row[a]; i < m->row[a + 1]; i++)
		if (m->adj[i] == b)
			return m->weight[i];
	return 0;
}

/* The same three ranks in every form: 0-1 exchange 5, 1-2 exchange 2. */
static void reads_every_form(void **state)
{
	static const char *const rows[] = {
		"0 2 0\n3 0 1\n0 1 0\n",
		"0 5 0\r\n0 9 2\r\n0 0 0",
		"\n0\t2.5e0 0 \n2.5 0 1\n\n0 1 0\n\n",
		"%%MatrixMarket matrix coordinate real general\n% a comment\n3 3 3\n1 2 4\n2 1 1.0\n3 2 2\n",
		"%%MatrixMarket matrix coordinate integer general\n3 3 4\n1 2 5\n\n2 3 1\n2 3 1\n1 1 7\n",
		"%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 2.5\n3 2 1\n",
		"0\n3 4\n0 010\n1 5 1\n2 5 0 2 2\n1 2 1\n",
		"0\n3\t4\n1 011\n8 1 5 2\n9 2 5 1 2 3\n7 1 2 2\n",
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct matrix *m = matrix_of(rows[i]);

		assert_int_equal(m->ranks, 3);
		assert_int_equal(m->row[3], 4);
		for (unsigned a = 0; a < 3; a++)
			for (unsigned b = 0; b < 3; b++)
				assert_true(weight_of(m, a, b) == (a + b == 1 ? 5 : a + b == 3 && a && b ? 2 : 0));
		matrix_free(m);
	}
	(void) state;
}

static void reads_patterns(void **state)
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
	(void) state;
}

static void refuses_matrices(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "", "test: empty" },
		{ " \n\n", "test: empty" },
		{ "hello\n", "test:1: not a number" },
		{ "\x7f" "ELF", "test:1: not a number" },
		{ "0 1\n1\n", "test:2: the row is shorter" },
		{ "0 1\n1 0 0\n", "test:2: the row is longer" },
		{ "0 1\n", "fewer rows" },
		{ "0 1\n1 0\n1 1\n", "test:3: more rows" },
		{ "0 -1\n1 0\n", "test:1: a weight below 0" },
		{ "0 nan\n1 0\n", "test:1: not a number" },
		{ "0 inf\n1 0\n", "test:1: not a number" },
		{ "0 +inf\n1 0\n", "test:1: not a finite number" },
		{ "0 -nan\n1 0\n", "test:1: not a finite number" },
		{ "0 1e999\n1 0\n", "test:1: not a finite number" },
		{ "0 1e201\n1 0\n", "test:1: a weight above" },
		{ "0 0x10\n1 0\n", "test:1: not a finite number" },
		{ "0 1,1 0\n", "test:1: not a finite number" },
		{ "0 1\n1 0;\n", "test:2: not a finite number" },
		{ "%%MatrixMarket\n", "test:1: only '%%MatrixMarket matrix coordinate'" },
		{ "%%MatrixMarket matrix array real general\n1 1\n0\n", "test:1: only" },
		{ "%%MatrixMarket matrix coordinate complex general\n1 1 0\n", "test:1: the field" },
		{ "%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n", "test:1: the symmetry" },
		{ "%%MatrixMarket matrix coordinate real general\n", "a number is missing" },
		{ "%%MatrixMarket matrix coordinate real general\n2 3 0\n", "test:2: the matrix is not square" },
		{ "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n", "fewer entries" },
		{ "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n2 1 1\n", "test:4: more entries" },
		{ "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n", "test:3: no such column" },
		{ "%%MatrixMarket matrix coordinate real general\n2 2 1\n0 1 1\n", "test:3: no such row" },
		{ "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2\n", "test:3: a number is missing" },
		{ "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2 1\n", "test:3: text after the entry" },
		{ "%%MatrixMarket matrix coordinate real general\n4000000000 4000000000 4000000000\n", "test:2: the number of ranks" },
		{ "%%MatrixMarket matrix coordinate real general\n60000 60000 4000000000\n1 2 3\n", "fewer entries" },
		{ "%%MatrixMarket matrix coordinate real general\n-1 -1 0\n", "test:2: the number of ranks" },
		{ "0\n4000000000 10\n0 000\n", "test:2: the number of ranks" },
		{ "0\n60000 4000000000\n0 000\n4000000000 1 2\n", "a number is missing" },
		{ "0\n2 2\n0 000\n3 1 1 1\n", "test:4: a degree above" },
		{ "0\n2 2\n0 000\n1 2\n", "test:4: no such vertex" },
		{ "0\n2 2\n1 000\n1 0\n", "test:4: no such vertex" },
		{ "0\n2 2\n2 000\n", "test:3: the base" },
		{ "0\n2 2\n0 100\n", "test:3: the flags" },
		{ "0\n2 2\n0 002\n", "test:3: the flags" },
		{ "0\n2 4\n0 000\n1 1\n1 0\n", "fewer arcs" },
		{ "0\n2 2\n0 000\n1 1\n1 0\n5\n", "test:6: text after" },
		{ "0\n2 2\n0 010\n1 -3 1\n", "test:4: a weight below 0" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = {""};

		if (matrix_parse(rows[i].text, strlen(rows[i].text), "test", &e))
			fail_msg("accepted: %s", rows[i].text);
		if (!strstr(e.text, rows[i].says) || strncmp(e.text, "test:", 5))
			fail_msg("'%s' for %s", e.text, rows[i].text);
	}
	(void) state;
}

/* Memory follows what a file holds: a process of 64 MiB reads headers that claim the most they may. */
static void claims_cost_nothing(void **state)
{
	static const char *const rows[] = {
		"%%MatrixMarket matrix coordinate real general\n65536 65536 4294967295\n1 2 3\n",
		"0\n65536 4294967295\n0 010\n4294967295 1 2\n",
	};
	struct rlimit old, tight = { 64 << 20, RLIM_INFINITY };
	struct err e = {""};

	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	tight.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
	for (size_t i = 0; i < ROWS(rows); i++) {
		assert_null(matrix_parse(rows[i], strlen(rows[i]), "test", &e));
		assert_null(strstr(e.text, "memory"));
	}
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	(void) state;
}

static void takes_the_head(void **state)
{
	struct matrix *m = matrix_of("0 1 2 4\n1 0 3 5\n2 3 0 6\n4 5 6 0\n"), *head = matrix_head(m, 3);

	assert_int_equal(head->ranks, 3);
	assert_int_equal(head->row[3], 6);
	for (unsigned a = 0; a < 3; a++)
		for (unsigned b = 0; b < 3; b++)
			assert_true(weight_of(head, a, b) == weight_of(m, a, b));
	matrix_free(head);
	matrix_free(m);
	(void) state;
}

static void knows_distances(void **state)
{
	static const struct {
		const char *shape;
		unsigned a, b, distance;
	} rows[] = {
		{ "Package:2 [NUMANode] L3Cache:2 L2Cache:2 Core:2 PU:1", 0, 0, 0 },
		{ "Package:2 [NUMANode] L3Cache:2 L2Cache:2 Core:2 PU:1", 0, 1, 2 },
		{ "Package:2 [NUMANode] L3Cache:2 L2Cache:2 Core:2 PU:1", 0, 2, 4 },
		{ "Package:2 [NUMANode] L3Cache:2 L2Cache:2 Core:2 PU:1", 0, 4, 8 },
		{ "Package:2 [NUMANode] L3Cache:2 L2Cache:2 Core:2 PU:1", 0, 8, 20 },
		{ "Package:2 [NUMANode] L3Cache:2 L2Cache:2 Core:2 PU:1", 0, 16, 100 },
		{ "Core:4 PU:2", 0, 3, 2 },
		{ "PU:4", 1, 2, 2 },
		{ "[NUMANode] Package:2 Core:4", 0, 4, 20 },
		{ "[NUMANode] Package:2 Core:4", 0, 3, 2 },
		{ "NUMANode:2 Package:2 Core:2", 0, 2, 20 },
		{ "{ Package:1 Die:2 Core:2 | Package:1 Core:2 }", 0, 2, 14 },
		{ "{ Package:1 Die:2 Core:2 | Package:1 Core:2 }", 4, 5, 2 },
		{ "{ Package:1 Die:2 Core:2 | Package:1 Core:2 }", 3, 4, 20 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct shape *s = shape_parse(rows[i].shape, NULL);
		char all[32];
		struct places *p;

		snprintf(all, sizeof(all), "0-%u", s->cores - 1);
		p = places_of(2, rows[i].shape, all);
		assert_int_equal(p->nplaces, 2 * s->cores);
		if (places_distance(p, rows[i].a, rows[i].b) != rows[i].distance)
			fail_msg("%s: %u and %u: %u", rows[i].shape, rows[i].a, rows[i].b, places_distance(p, rows[i].a, rows[i].b));
		places_free(p);
		shape_free(s);
	}
	(void) state;
}

static void numbers_places(void **state)
{
	struct places *p = places_of(2, "Package:2 Core:4", "6-7,1");

	assert_int_equal(p->nplaces, 6);
	assert_string_equal(p->hosts[1], "cn1");
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(p->place[i].host, i / 3);
		assert_int_equal(p->place[i].leaf, i % 3);
		assert_int_equal(p->place[i].core, i % 3 ? 5 + i % 3 : 1);
	}
	places_free(p);
	(void) state;
}

static void refuses_places(void **state)
{
	static const char *const rows[] = { "", "8", "0-8", "x", "3-1", "-1", "1,,2" };
	struct shape *s = shape_parse("Package:2 Core:4", NULL);
	struct places *p = places_of(1, "Core:2", "0");

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = {""};

		if (!places_add(p, "cn9", s, rows[i], &e))
			fail_msg("accepted: '%s'", rows[i]);
		assert_non_null(strstr(e.text, "cn9"));
	}
	assert_int_equal(places_add(p, "cn0", s, "0", NULL), -1);
	assert_int_equal(p->nplaces, 1);
	assert_int_equal(p->nhosts, 1);
	places_free(p);
	shape_free(s);
	(void) state;
}

static struct mapping solved(const struct matrix *m, const struct places *p, unsigned seed)
{
	struct mapping out;
	struct err e = {""};
	unsigned char *taken = calloc(p->nplaces, 1);

	if (mapping_solve(m, p, seed, &out, &e))
		fail_msg("%s", e.text);
	assert_int_equal(out.ranks, m->ranks);
	for (unsigned r = 0; r < m->ranks; r++) {
		assert_true(out.place[r] < p->nplaces);
		assert_false(taken[out.place[r]]++);
	}
	free(taken);
	assert_true(fabs(out.cost - mapping_cost(m, p, out.place)) <= 1e-9 * out.cost);
	assert_true(out.cost <= out.block && out.cost <= out.cyclic && out.cost <= out.scotch);
	return out;
}

static void finds_the_best(void **state)
{
	static const struct {
		const char *matrix;
		unsigned hosts;
		const char *shape, *cores;
		double cost, block, cyclic;
	} rows[] = {
		/* Two heavy pairs that block parts: together 2 x 10 x 2; apart 2 x 10 x 100. */
		{ "0 0 10 0\n0 0 0 10\n0 0 0 0\n0 0 0 0\n", 2, "Core:2", "0-1", 40, 2000, 40 },
		{ "0 10 0 0\n0 0 0 0\n0 0 0 10\n0 0 0 0\n", 2, "Core:2", "0-1", 40, 40, 2000 },
		/* One pair among four hosts: one host is enough. */
		{ "0 1\n1 0\n", 4, "Package:2 Core:2", "0-3", 4, 200, 200 },
		/* A ring of four over two hosts: one of its two cuts lies there and back. */
		{ "0 1 0 1\n0 0 1 0\n0 0 0 1\n0 0 0 0\n", 2, "Core:2", "0-1", 204, 204, 400 },
		/* Nobody talks. */
		{ "0 0\n0 0\n", 2, "Core:2", "0-1", 0, 0, 0 },
		{ "0\n", 1, "Core:1", "0", 0, 0, 0 },
		/* Unequal halves of one node: the three that talk share the L3 with room. */
		{ "0 0 0 0\n0 0 1 1\n0 0 0 1\n0 0 0 0\n", 1, "Package:2 Core:4", "0,4-6", 6, 6, 6 },
		{ "0 1 1 0\n0 0 1 0\n0 0 0 0\n0 0 0 0\n", 1, "Package:2 Core:4", "0,4-6", 6, 42, 42 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct matrix *m = matrix_of(rows[i].matrix);
		struct places *p = places_of(rows[i].hosts, rows[i].shape, rows[i].cores);
		struct mapping s = solved(m, p, 1);

		if (s.cost != rows[i].cost || s.block != rows[i].block || s.cyclic != rows[i].cyclic)
			fail_msg("row %zu: cost %g, block %g, cyclic %g", i, s.cost, s.block, s.cyclic);
		mapping_free(&s);
		places_free(p);
		matrix_free(m);
	}
	(void) state;
}

static void refuses_too_many_ranks(void **state)
{
	struct matrix *m = matrix_of("0 1 1\n1 0 1\n1 1 0\n");
	struct places *p = places_of(1, "Core:4", "0-1");
	struct mapping s = { .ranks = 77 };
	struct err e = {""};

	assert_int_equal(mapping_solve(m, p, 1, &s, &e), -1);
	assert_string_equal(e.text, "mapping: 3 ranks, but the job has only 2 cores");
	assert_int_equal(s.ranks, 77);
	places_free(p);
	matrix_free(m);
	(void) state;
}

/* All on place 0: rank 3 talks most (9) and stays; a mapping without doubles stays as it is. */
static void repairs_doubles(void **state)
{
	struct matrix *m = matrix_of("0 1 0 0\n0 0 0 1\n0 0 0 8\n0 0 0 0\n");
	struct places *p = places_of(2, "Core:3", "0-2");
	unsigned place[] = { 0, 0, 0, 0 }, whole[] = { 5, 0, 3, 1 };

	assert_int_equal(repair_mapping(m, p, place), 0);
	for (unsigned a = 0; a < 4; a++)
		for (unsigned b = 0; b < a; b++)
			assert_int_not_equal(place[a], place[b]);
	assert_int_equal(place[3], 0);
	assert_int_equal(repair_mapping(m, p, whole), 0);
	assert_memory_equal(whole, ((unsigned[]){ 5, 0, 3, 1 }), sizeof(whole));
	places_free(p);
	matrix_free(m);
	(void) state;
}

/* Equal shares, as far as the cores go: 3 + 1 ranks on hosts of 5 and 1 cores, block 0 1 2 | 3, cyclic 0 2 3 | 1. */
static void lays_out_as_slurm(void **state)
{
	struct matrix *m = matrix_of("0 1 0 0\n0 0 0 0\n0 0 0 8\n0 0 0 0\n");
	struct places *p = places_of(1, "Core:5", "0-4");
	struct mapping s;

	add(p, "small", "Core:1", "0");
	s = solved(m, p, 1);
	assert_true(s.block == 2 + 800);
	assert_true(s.cyclic == 100 + 16);
	mapping_free(&s);
	places_free(p);
	matrix_free(m);
	(void) state;
}

/* A generator of our own, so that a seed means the same problem everywhere. */
static unsigned draw(unsigned *x, unsigned below)
{
	*x = *x * 1664525u + 1013904223u;
	return (*x >> 8) % below;
}

/* Some ranks, few or many partners each, weights over six decades. */
static struct matrix *random_matrix(unsigned *x, unsigned ranks)
{
	unsigned partners = 1 + draw(x, 6);
	struct buf text = {0};
	struct matrix *m;

	buf_printf(&text, "%%%%MatrixMarket matrix coordinate real general\n%u %u %u\n", ranks, ranks, ranks * partners);
	for (unsigned r = 1; r <= ranks; r++)
		for (unsigned i = 0; i < partners; i++)
			buf_printf(&text, "%u %u %g\n", r, 1 + draw(x, ranks), pow(10, draw(x, 7)));
	m = matrix_of(text.data);
	buf_free(&text);
	return m;
}

static struct places *random_places(unsigned *x)
{
	static const struct { const char *shape, *cores; } kinds[] = {
		{ "Package:2 [NUMANode] L3Cache:1 Core:6 PU:1", "0-11" },
		{ "Package:2 [NUMANode] L3Cache:4 L2Cache:2 Core:1 PU:2", "0-15" },
		{ "Package:2 [NUMANode] L3Cache:4 L2Cache:2 Core:1 PU:2", "0-2,5,9,11-14" },
		{ "{ Package:1 Die:2 [NUMANode] Core:3 | Package:1 Core:5 PU:2 }", "1-4,6-10" },
		{ "PU:3", "0,2" },
	};
	unsigned hosts = 1 + draw(x, 8);
	struct places *p = places_new();
	char name[16];

	for (unsigned h = 0; h < hosts; h++) {
		unsigned k = draw(x, ROWS(kinds));

		snprintf(name, sizeof(name), "cn%u", h);
		add(p, name, kinds[k].shape, kinds[k].cores);
	}
	return p;
}

static void never_loses(void **state)
{
	for (unsigned seed = 1; seed <= 60; seed++) {
		unsigned x = seed;
		struct places *p = random_places(&x);
		struct matrix *m = random_matrix(&x, 1 + draw(&x, p->nplaces));
		struct mapping s = solved(m, p, seed);

		mapping_free(&s);
		matrix_free(m);
		places_free(p);
	}
	(void) state;
}

static void write_solution(FILE *to)
{
	unsigned x = 42;
	struct places *p = places_of(6, "Package:2 [NUMANode] L3Cache:4 L2Cache:2 Core:1", "0-13");
	struct matrix *m = random_matrix(&x, 70);
	struct mapping s = solved(m, p, 9);
	struct buf text = {0};

	assert_int_equal(rankfile_write("openmpi", p, &s, &text, NULL), 0);
	fwrite(text.data, 1, text.len, to);
	buf_free(&text);
	mapping_free(&s);
	matrix_free(m);
	places_free(p);
}

static struct buf answer_of_new_process(void)
{
	char self[PATH_MAX] = "", command[PATH_MAX + 16];
	struct buf text = {0};
	FILE *pipe;
	int c;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(command, sizeof(command), "'%s' solve", self);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while ((c = getc(pipe)) != EOF)
		buf_add(&text, &(char){c}, 1);
	assert_int_equal(pclose(pipe), 0);
	return text;
}

static void answers_the_same(void **state)
{
	struct buf one = answer_of_new_process(), two = answer_of_new_process();

	assert_true(one.len > 70 * 8);
	assert_string_equal(one.data, two.data);
	buf_free(&one);
	buf_free(&two);
	(void) state;
}

static void writes_rank_files(void **state)
{
	static const struct { const char *format, *text; } rows[] = {
		{ "plain", "0 cn1 1\n1 cn0 0\n" },
		{ "openmpi", "rank 0=cn1 slot=1\nrank 1=cn0 slot=0\n" },
	};
	struct places *p = places_of(2, "Core:8", "3,5");
	unsigned place[] = { 3, 0 };
	struct mapping m = { .ranks = 2, .place = place };
	struct buf text = {0};
	struct err e = {""};

	for (size_t i = 0; i < ROWS(rows); i++) {
		assert_int_equal(rankfile_write(rows[i].format, p, &m, &text, &e), 0);
		assert_string_equal(text.data, rows[i].text);
		buf_free(&text);
	}
	assert_int_equal(rankfile_write("mpich", p, &m, &text, &e), -1);
	assert_string_equal(e.text, "mpich: no such format of rank files; there are: plain, openmpi");
	places_free(p);
	(void) state;
}

/* More ranks than cores: those that talk share one, as far as it has PUs. */
static void shares_cores(void **state)
{
	struct matrix *m = matrix_of("0 1 9 1\n1 0 1 9\n9 1 0 1\n1 9 1 0\n");
	struct places *p = places_of(1, "Core:2 PU:2", "0-1");
	struct mapping map;
	struct buf out = {0};
	struct err e;

	assert_int_equal(mapping_solve(m, p, 1, &map, &e), -1);
	assert_int_equal(places_fit(p, (unsigned[]){ 9 }, &e), 0);
	assert_int_equal(p->nplaces, 4);
	assert_int_equal(mapping_solve(m, p, 1, &map, &e), 0);
	for (unsigned a = 0; a < 4; a++)
		for (unsigned b = 0; b < a; b++)
			assert_int_not_equal(map.place[a], map.place[b]);
	assert_int_equal(rankfile_write("plain", p, &map, &out, &e), 0);
	assert_string_equal(out.data, p->place[map.place[0]].core ? "0 cn0 1\n1 cn0 0\n2 cn0 1\n3 cn0 0\n"
								    : "0 cn0 0\n1 cn0 1\n2 cn0 0\n3 cn0 1\n");
	buf_free(&out);
	mapping_free(&map);
	places_free(p);
	matrix_free(m);
	(void) state;
}

/* No host gets more places than tasks, whatever the cores it has. */
static void fits_tasks(void **state)
{
	static const struct {
		unsigned tasks, places, last_leaf;
	} rows[] = { { 1, 1, 0 }, { 3, 3, 2 }, { 4, 4, 3 }, { 5, 5, 2 }, { 8, 8, 3 }, { 99, 8, 3 } };

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct places *p = places_of(2, "Core:4 PU:2", "0-3");

		assert_int_equal(places_fit(p, (unsigned[]){ rows[i].tasks, 2 }, NULL), 0);
		assert_int_equal(p->nplaces, rows[i].places + 2);
		assert_int_equal(p->place[rows[i].places - 1].leaf, rows[i].last_leaf);
		assert_int_equal(p->place[rows[i].places - 1].host, 0);
		assert_int_equal(p->place[rows[i].places].host, 1);
		places_free(p);
	}
	(void) state;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_form),
		cmocka_unit_test(reads_patterns),
		cmocka_unit_test(refuses_matrices),
		cmocka_unit_test(claims_cost_nothing),
		cmocka_unit_test(takes_the_head),
		cmocka_unit_test(knows_distances),
		cmocka_unit_test(numbers_places),
		cmocka_unit_test(refuses_places),
		cmocka_unit_test(finds_the_best),
		cmocka_unit_test(refuses_too_many_ranks),
		cmocka_unit_test(repairs_doubles),
		cmocka_unit_test(lays_out_as_slurm),
		cmocka_unit_test(never_loses),
		cmocka_unit_test(answers_the_same),
		cmocka_unit_test(shares_cores),
		cmocka_unit_test(fits_tasks),
		cmocka_unit_test(writes_rank_files),
	};

	if (argc == 2 && !strcmp(argv[1], "solve")) {
		write_solution(stdout);
		return 0;
	}
	return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
