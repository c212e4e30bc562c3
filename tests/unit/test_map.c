/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <math.h>

#include "base/buf.h"
#include "made.h"
#include "map/engine/anneal.h"
#include "map/rankfile/rankfile.h"
#include "map/engine/scotch.h"
#include "map/engine/solve.h"
#include "map/engine/traffic.h"

OWNS(struct slots *, slots_free)

static struct mapping solved(const struct matrix *m, const struct places *p, enum mapping_effort effort, unsigned seed)
{
	struct mapping out;
	unsigned char *taken = calloc(p->nplaces, 1);

	assert_ok(mapping_solve(m, p, effort, seed, &out, &err));
	assert_int_equal(out.ranks, m->ranks);
	for (unsigned r = 0; r < m->ranks; r++) {
		assert_true(out.place[r] < p->nplaces);
		assert_false(taken[out.place[r]]++);
	}
	free(taken);
	assert_true(fabs(out.cost - mapping_cost(m, p, out.place)) <= 1e-9 * out.cost);
	assert_true(out.cost <= out.block && out.cost <= out.cyclic);
	assert_true(effort == EFFORT_FAST ? isnan(out.scotch) : out.cost <= out.scotch);
	return out;
}

TEST(finds_the_best)
{
	static const struct {
		const char *matrix;
		unsigned hosts;
		const char *shape, *cores;
		double cost, block, cyclic;
	} rows[] = {
		/* Two heavy pairs that the block mapping separates: together 2 x 10 x 2; apart 2 x 10 x 100. */
		{ "0 0 10 0\n0 0 0 10\n0 0 0 0\n0 0 0 0\n", 2, "Core:2", "0-1", 40, 2000, 40 },
		{ "0 10 0 0\n0 0 0 0\n0 0 0 10\n0 0 0 0\n", 2, "Core:2", "0-1", 40, 40, 2000 },
		/* One pair among four hosts: one host is enough. */
		{ "0 1\n1 0\n", 4, "Package:2 Core:2", "0-3", 4, 200, 200 },
		/* A ring of four on two hosts: one of its two cuts is there and back. */
		{ "0 1 0 1\n0 0 1 0\n0 0 0 1\n0 0 0 0\n", 2, "Core:2", "0-1", 204, 204, 400 },
		/* No communication. */
		{ "0 0\n0 0\n", 2, "Core:2", "0-1", 0, 0, 0 },
		{ "0\n", 1, "Core:1", "0", 0, 0, 0 },
		/* Unequal halves of one node: the three communicating ranks share the L3 with room. */
		{ "0 0 0 0\n0 0 1 1\n0 0 0 1\n0 0 0 0\n", 1, "Package:2 Core:4", "0,4-6", 6, 6, 6 },
		{ "0 1 1 0\n0 0 1 0\n0 0 0 0\n0 0 0 0\n", 1, "Package:2 Core:4", "0,4-6", 6, 42, 42 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(matrix_free) struct matrix *m = matrix_of(rows[i].matrix);
		OWNED(places_free) struct places *p = places_of(rows[i].hosts, rows[i].shape, rows[i].cores);
		FREED(mapping_free) struct mapping s = solved(m, p, EFFORT_NORMAL, 1);

		if (s.cost != rows[i].cost || s.block != rows[i].block || s.cyclic != rows[i].cyclic)
			fail_msg("row %zu: cost %g, block %g, cyclic %g", i, s.cost, s.block, s.cyclic);
	}
}

/* Two nodes of two cores: two cores of a node cost 2, two nodes 100. */
TEST(leaves_block_where_messages_do_not_gain)
{
	static const struct {
		const char *matrix;
		double cost, cheapest;
	} rows[] = {
		/* Heavy pairs that block separates: without and with messages. */
		{ "E 0 2 10 bytes\nE 1 3 10 bytes\n", 40, 40 },
		{ "E 0 2 10 bytes 1 msgs sent\nE 1 3 10 bytes 1 msgs sent\n", 40, 40 },
		/* Bytes between 0 and 2, and many messages between 0 and 1: together they stay. */
		{ "E 0 2 10 bytes\nE 0 1 1 bytes\n", 120, 120 },
		{ "E 0 2 10 bytes 1 msgs sent\nE 0 1 1 bytes 50 msgs sent\n", 1002, 120 },
		/* And many bytes. */
		{ "E 0 2 100000000 bytes 1 msgs sent\nE 0 1 1 bytes 50 msgs sent\n", 200000100, 200000100 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(matrix_free) struct matrix *m = matrix_of(rows[i].matrix);
		OWNED(places_free) struct places *p = places_of(2, "Core:2", "0-1");
		FREED(mapping_free) struct mapping s = {0};

		assert_ok(mapping_solve(m, p, EFFORT_NORMAL, 1, &s, &err));
		if (s.cost != rows[i].cost || s.cheapest != rows[i].cheapest)
			fail_msg("row %zu: %s of cost %g, cheapest %g", i, s.method, s.cost, s.cheapest);
	}
}

TEST(compares_traffic)
{
	static const struct traffic block = { 100, 50, 40, { 8, 7 } };
	static const struct {
		struct traffic to;
		bool is_less;
	} rows[] = {
		{ { 100, 50, 40, { 8, 7 } }, false },
		{ { 95, 50, 40, { 8, 7 } }, false },
		{ { 80, 50, 40, { 8, 7 } }, true },
		{ { 80, 51, 40, { 8, 7 } }, false },
		{ { 80, 50, 41, { 8, 7 } }, false },
		{ { 80, 50, 40, { 9, 7 } }, false },
		{ { 80, 50, 40, { 8, 8 } }, false },
		{ { 80, 10, 10, { 1, 1 } }, true },
	};

	for (size_t i = 0; i < ROWS(rows); i++)
		if (traffic_is_less(&block, &rows[i].to, 2) != rows[i].is_less)
			fail_msg("row %zu", i);
}

TEST(sums_traffic)
{
	OWNED(matrix_free) struct matrix *m = matrix_of("E 0 2 10 bytes 3 msgs sent\nE 1 0 5 bytes 4 msgs sent\n"
							"D MPI_COMM_WORLD procs: 0,1,2,3\n");
	OWNED(places_free) struct places *p = places_of(2, "Core:2", "0-1");
	OWNED(slots_free) struct slots *s = slots_new(p, &err);
	struct traffic t;

	assert_ok(traffic_of(m, s, (unsigned[]){ 0, 1, 2, 3 }, &t));
	/* 0 and 2 are 100 apart, 0 and 1 are 2; of the bytes of a pair each sends half. */
	assert_true(fabs(t.time - (3 * 16384 * 100 + 10 * 100 + 4 * 16384 * sqrt(200) + 5 * 2)) < 1e-3);
	assert_true(fabs(t.sent - (3 * 16384 * 100 + 5 * 100 + 2.5 * 2)) < 1e-3);
	assert_true(fabs(t.received - (3 * 16384 * 100 + 5 * 100)) < 1e-3);
	assert_true(t.out[0] == 10 && t.out[1] == 15);
}

TEST(refuses_too_many_ranks)
{
	OWNED(matrix_free) struct matrix *m = matrix_of("0 1 1\n1 0 1\n1 1 0\n");
	OWNED(places_free) struct places *p = places_of(1, "Core:4", "0-1");
	struct mapping s = { .ranks = 77 };
	struct err e = {""};

	assert_int_equal(mapping_solve(m, p, EFFORT_FAST, 1, &s, &e), -1);
	assert_string_equal(e.text, "mapping: 3 ranks, but the job has only 2 places");
	assert_int_equal(s.ranks, 77);
}

/* All on slot 0: rank 3 communicates most (9) and stays. A mapping without conflicts is unchanged. */
TEST(resolves_conflicts)
{
	OWNED(matrix_free) struct matrix *m = matrix_of("0 1 0 0\n0 0 0 1\n0 0 0 8\n0 0 0 0\n");
	OWNED(places_free) struct places *p = places_of(2, "Core:3", NULL);
	OWNED(slots_free) struct slots *s = slots_new(p, NULL);
	unsigned slot[] = { 0, 0, 0, 0 }, whole[] = { 5, 0, 3, 1 };

	assert_int_equal(scotch_repair(m, s, slot), 0);
	for (unsigned a = 0; a < 4; a++)
		for (unsigned b = 0; b < a; b++)
			assert_int_not_equal(slot[a], slot[b]);
	assert_int_equal(slot[3], 0);
	assert_int_equal(scotch_repair(m, s, whole), 0);
	assert_memory_equal(whole, ((unsigned[]){ 5, 0, 3, 1 }), sizeof(whole));
}

/*
 * Equal shares as far as the cores suffice: 3 + 1 ranks on hosts of 5 and 1 cores, block 0 1 2 | 3, cyclic 0 2 3 | 1.
 */
TEST(block_and_cyclic_are_slurms)
{
	OWNED(matrix_free) struct matrix *m = matrix_of("0 1 0 0\n0 0 0 0\n0 0 0 8\n0 0 0 0\n");
	OWNED(places_free) struct places *p = places_of(1, "Core:5", "0-4");
	FREED(mapping_free) struct mapping s;

	add(p, "small", "Core:1", "0", 1);
	s = solved(m, p, EFFORT_NORMAL, 1);
	assert_true(s.block == 2 + 800);
	assert_true(s.cyclic == 100 + 16);
}

/* An own generator, so that a seed gives the same problem everywhere. */
static unsigned draw(unsigned *x, unsigned below)
{
	*x = *x * 1664525u + 1013904223u;
	return (*x >> 8) % below;
}

/* Ranks with few or many partners each, weights over six decades. */
static struct matrix *random_matrix(unsigned *x, unsigned ranks)
{
	unsigned partners = 1 + draw(x, 6);
	FREED(buf_free) struct buf text = {0};
	struct matrix *m;

	buf_printf(&text, "%%%%MatrixMarket matrix coordinate real general\n%u %u %u\n", ranks, ranks,
		   ranks * partners);
	for (unsigned r = 1; r <= ranks; r++)
		for (unsigned i = 0; i < partners; i++)
			buf_printf(&text, "%u %u %g\n", r, 1 + draw(x, ranks), pow(10, draw(x, 7)));
	m = matrix_of(text.data);
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
		add(p, name, kinds[k].shape, kinds[k].cores, 1 + draw(x, 2));
	}
	return p;
}

TEST(is_never_dearer_than_block_or_cyclic)
{
	for (unsigned seed = 1; seed <= 60; seed++) {
		unsigned x = seed;
		OWNED(places_free) struct places *p = random_places(&x);
		OWNED(matrix_free) struct matrix *m = random_matrix(&x, 1 + draw(&x, p->nplaces));
		FREED(mapping_free) struct mapping s = solved(m, p, seed % 2, seed);
	}
}

/* A torus of routers with nodes of two kinds, one of them used in part. */
static const char torus[] =
	"torus 2 4 160 4 100 3 0 5 10\n"
	"tree 1 2 80 2 0 1\nnode a tree 2 2 20 2 10 -1\nnode b tree 1 3 7 -1\n"
	"tree 1 2 80 1 1\nnode c tree 2 2 20 2 10 3 0 1 3\n"
	"tree 1 2 80 2 0 1\nnode d tree 2 2 20 2 10 -1\nnode e tree 1 1 1 -1\n";

TEST(is_never_dearer_on_networks)
{
	OWNED(hierarchy_free) struct hierarchy *h = network_of(torus);

	for (unsigned seed = 1; seed <= 20; seed++) {
		OWNED(places_free) struct places *p = places_of_network(h);
		unsigned x = seed;
		OWNED(matrix_free) struct matrix *m = random_matrix(&x, 1 + draw(&x, p->nplaces));
		FREED(mapping_free) struct mapping s = solved(m, p, EFFORT_NORMAL, seed);
	}
}

/*
 * Scotch's own mapping costs the same whether the search or the comparison runs it; the comparison changes nothing
 * else.
 */
TEST(compares_with_scotch)
{
	OWNED(places_free) struct places *p = places_of(4, "Package:2 [NUMANode] L3Cache:2 Core:3", NULL);
	unsigned x = 3;
	OWNED(matrix_free) struct matrix *m = random_matrix(&x, p->nplaces - 5);
	FREED(mapping_free) struct mapping normal = solved(m, p, EFFORT_NORMAL, 7), fast = solved(m, p, EFFORT_FAST, 7);
	struct mapping same = fast;

	assert_int_equal(mapping_compare(m, p, 7, &fast, NULL), 0);
	assert_true(fast.scotch == normal.scotch && fast.scotch > 0);
	fast.scotch = same.scotch;
	assert_memory_equal(&fast, &same, sizeof(same));
}

/* All assignments of the ranks from r on. */
static double best_of_all(const struct matrix *m, const struct places *p, unsigned *place, unsigned r, unsigned taken)
{
	double best = INFINITY;

	if (r == m->ranks)
		return mapping_cost(m, p, place);
	for (unsigned at = 0; at < p->nplaces; at++)
		if (!(taken >> at & 1)) {
			place[r] = at;
			best = fmin(best, best_of_all(m, p, place, r + 1, taken | 1u << at));
		}
	return best;
}

/* Every third place, ranks from the last to the first: some slots remain free. */
static void check_accounts(const struct places *p, unsigned seed)
{
	unsigned x = seed, slot[200];
	OWNED(slots_free) struct slots *s = slots_new(p, NULL);
	OWNED(matrix_free) struct matrix *m = random_matrix(&x, (p->nplaces + 2) / 3);
	FREED(mapping_state_free) struct mapping_state t;
	double cost;

	for (unsigned r = 0; r < m->ranks; r++)
		slot[r] = p->nplaces - 1 - 3 * r;
	assert_int_equal(mapping_state_init(&t, m, s, s->cells, slot), 0);
	cost = slots_cost(m, s, slot);
	for (unsigned i = 0; i < 60; i++) {
		unsigned a = draw(&x, p->nplaces), b = draw(&x, p->nplaces);
		double change, after;

		if (t.rank[a] == SLOT_NONE || a == b)
			continue;
		change = mapping_state_change(&t, a, b, INFINITY);
		mapping_state_swap(&t, a, b);
		after = slots_cost(m, s, t.at);
		if (fabs(cost + change - after) > 1e-9 * (cost + after))
			fail_msg("seed %u, move %u: %g and %g is not %g", seed, i, cost, change, after);
		cost = after;
	}
}

TEST(kept_costs_are_exact)
{
	OWNED(hierarchy_free) struct hierarchy *h = network_of(torus);

	for (unsigned seed = 1; seed <= 30; seed++) {
		unsigned x = seed;
		OWNED(places_free) struct places *p = seed % 3 ? random_places(&x) : places_of_network(h);

		if (p->nplaces > 1)
			check_accounts(p, seed);
	}
}

static void check_distances(const struct places *p)
{
	OWNED(slots_free) struct slots *s = slots_new(p, NULL);

	for (unsigned a = 0; a < s->n; a++)
		for (unsigned b = 0; b < s->n; b++)
			assert_true(slots_distance(s, a, b) == places_distance(p, s->place[a], s->place[b]));
}

TEST(computes_distances)
{
	OWNED(hierarchy_free) struct hierarchy *h = network_of(torus);
	struct places *p = places_of_network(h);

	check_distances(p);
	places_free(p);
	for (unsigned seed = 1; seed <= 20; seed++) {
		unsigned x = seed;

		p = random_places(&x);
		check_distances(p);
		places_free(p);
	}
}

/*
 * Exchanging two domains of one shape costs the same in the quotient graph as rank by rank. Returns the number of
 * pairs.
 */
static unsigned check_exchanges(const struct matrix *m, const struct slots *s, unsigned level, unsigned *slot)
{
	const struct slot_level *t = &s->level[level];
	unsigned found = 0;

	for (unsigned b = 1; b < t->n; b++) {
		unsigned a = b - 1;
		double fine = slots_cost(m, s, slot), far;
		struct quotient c;

		while (a && t->shape[a] != t->shape[b])
			a--;
		if (t->shape[a] != t->shape[b])
			continue;
		assert_int_equal(quotient_init(&c, m, s, level, slot), 0);
		far = slots_cost(c.m, &c.s, c.slot);
		c.slot[a] = b;
		c.slot[b] = a;
		quotient_apply(&c, m->ranks, slot);
		if (fabs(slots_cost(m, s, slot) - fine - slots_cost(c.m, &c.s, c.slot) + far) > 1e-9 * fine)
			fail_msg("stratum %u, %u and %u: %g more, from afar %g", level, a, b,
				 slots_cost(m, s, slot) - fine, slots_cost(c.m, &c.s, c.slot) - far);
		quotient_free(&c);
		found++;
	}
	return found;
}

static unsigned check_far(const struct places *p, unsigned *x)
{
	OWNED(matrix_free) struct matrix *m = random_matrix(x, 1 + draw(x, p->nplaces));
	OWNED(slots_free) struct slots *s = slots_new(p, NULL);
	unsigned *slot = malloc(s->n * sizeof(*slot)), found = 0;

	for (unsigned i = 0; i < s->n; i++)
		slot[i] = i;
	for (unsigned i = s->n; i > 1; i--) {
		unsigned other = draw(x, i), was = slot[i - 1];

		slot[i - 1] = slot[other];
		slot[other] = was;
	}
	for (unsigned t = 0; t < s->nlevels; t++)
		found += s->level[t].is_shaped ? check_exchanges(m, s, t, slot) : 0;
	free(slot);
	return found;
}

TEST(quotient_costs_are_exact)
{
	OWNED(hierarchy_free) struct hierarchy *h = network_of(torus);
	struct places *p = places_of_network(h);
	unsigned x = 7, found = check_far(p, &x);

	places_free(p);
	for (unsigned seed = 1; seed <= 20; seed++) {
		x = seed;
		p = random_places(&x);
		found += check_far(p, &x);
		places_free(p);
	}
	assert_true(found > 100);
}

/* Ranks of a grid, in squares of two by two on packages, in this order of the squares. */
static void squares_sit(const unsigned *order, unsigned wide, unsigned *slot)
{
	for (unsigned r = 0; r < wide * wide; r++) {
		unsigned x = r % wide, y = r / wide, square = y / 2 * (wide / 2) + x / 2;

		slot[r] = order[square] * 4 + y % 2 * 2 + x % 2;
	}
}

/*
 * Sixteen squares scattered over the packages of four hosts: for every seed each host ends up with a quarter of the
 * grid.
 */
TEST(rearranges_scattered_domains)
{
	static const unsigned quarters[] = { 0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15 };
	OWNED(places_free) struct places *p = places_of(4, "Package:4 Core:4", NULL);
	OWNED(slots_free) struct slots *s = slots_new(p, NULL);
	OWNED(matrix_free) struct matrix *m = grid(8, 8, 1);
	unsigned slot[64], thrown[16];
	double least;

	squares_sit(quarters, 8, slot);
	least = slots_cost(m, s, slot);
	for (unsigned seed = 1; seed <= 10; seed++) {
		for (unsigned i = 0; i < 16; i++)
			thrown[i] = (i * 7 + seed) % 16;
		squares_sit(thrown, 8, slot);
		assert_true(slots_cost(m, s, slot) > 1.2 * least);
		assert_int_equal(anneal_domains(m, s, seed, 1000000, slot, NULL), 0);
		assert_true(slots_cost(m, s, slot) == least);
	}
}

/* The narrowest level with an average of at least three slots in a domain. */
static const struct slot_level *narrowest(const struct slots *s)
{
	for (unsigned t = s->nlevels; t--;)
		if (s->level[t].is_shaped && s->level[t].n >= 2 &&
		    s->level[t].first[s->level[t].n] >= 3 * s->level[t].n)
			return &s->level[t];
	return NULL;
}

static unsigned check_layout(const struct places *p, unsigned *x)
{
	OWNED(matrix_free) struct matrix *m = random_matrix(x, 1 + draw(x, p->nplaces));
	OWNED(slots_free) struct slots *s = slots_new(p, NULL);
	unsigned slot[3][256], taken[256] = {0}, seed = draw(x, 1000), moved = 0;
	const struct slot_level *t = narrowest(s);

	assert_true(s->n <= 256);
	for (unsigned r = 0; r < m->ranks; r++)
		slot[0][r] = slot[1][r] = slot[2][r] = s->n - 1 - r;
	assert_int_equal(anneal_domains(m, s, seed, 50000, slot[1], NULL), 0);
	assert_int_equal(anneal_domains(m, s, seed, 50000, slot[2], NULL), 0);
	assert_memory_equal(slot[1], slot[2], m->ranks * sizeof(slot[1][0]));
	assert_true(slots_cost(m, s, slot[1]) <= slots_cost(m, s, slot[0]) * (1 + 1e-12));
	for (unsigned r = 0; r < m->ranks; r++) {
		assert_true(slot[1][r] < s->n);
		assert_false(taken[slot[1][r]]++);
		moved += slot[1][r] != slot[0][r];
	}
	assert_true(t || !moved);
	for (unsigned r = 0; t && r < m->ranks; r++) {
		assert_true(t->shape[t->of[slot[1][r]]] == t->shape[t->of[slot[0][r]]]);
		for (unsigned q = 0; q < r; q++)
			assert_int_equal(t->of[slot[1][r]] == t->of[slot[1][q]],
					 t->of[slot[0][r]] == t->of[slot[0][q]]);
	}
	return moved > 0;
}

TEST(keeps_domains_together)
{
	unsigned moved = 0;

	for (unsigned seed = 1; seed <= 60; seed++) {
		unsigned x = seed;
		OWNED(places_free) struct places *p = random_places(&x);

		moved += check_layout(p, &x);
	}
	assert_true(moved > 5);
}

/*
 * Routers (0,0), (1,1) and (2,2): the longer dimension is cut first, which leaves the third alone; both steps are of
 * one level.
 */
TEST(bisects_a_torus)
{
	OWNED(hierarchy_free) struct hierarchy *h = network_of(torus);
	OWNED(places_free) struct places *p = places_of_network(h);
	OWNED(slots_free) struct slots *s = slots_new(p, NULL);

	assert_int_equal(s->level[0].n, 2);
	assert_true(s->level[0].is_cut);
	assert_int_equal(s->level[1].n, 3);
	assert_false(s->level[1].is_cut);
	assert_int_equal(s->level[0].first[1], s->level[1].first[2]);
}

/*
 * Six places, in pairs that are apart in the file: 1 within a pair, 3 to the next pair, 9 to the third; then one is
 * changed.
 */
TEST(clusters_distances_into_a_tree)
{
	static const char *const rows[] = {
		"0 9 3 1 9 3\n9 0 9 9 1 9\n3 9 0 3 9 1\n1 9 3 0 9 3\n9 1 9 9 0 9\n3 9 1 3 9 0\n",
		"0 9 3 1 9 3\n9 0 9 9 1 9\n3 9 0 3 9 1\n1 9 3 0 9 2\n9 1 9 9 0 9\n3 9 1 2 9 0\n",
	};

	for (unsigned i = 0; i < ROWS(rows); i++) {
		OWNED(places_free) struct places *p = places_of(1, "Core:6", NULL);
		OWNED(matrix_free) struct matrix *d = matrix_of(rows[i]);
		OWNED(slots_free) struct slots *s;

		assert_int_equal(places_distances(p, d, NULL), 0);
		s = slots_new(p, NULL);
		assert_int_equal(s->rows, i ? 6 : 0);
		assert_int_equal(s->level[0].n, 2);
		for (unsigned a = 0; a < 6; a++)
			for (unsigned b = 0; b < 6; b++)
				assert_true(slots_distance(s, a, b) == places_distance(p, s->place[a], s->place[b]));
	}
}

static void check_optimum(struct places *p, unsigned seed)
{
	unsigned x = seed, place[8];
	OWNED(matrix_free) struct matrix *m = random_matrix(&x, p->nplaces < 6 ? p->nplaces : 6);
	FREED(mapping_free) struct mapping s = solved(m, p, EFFORT_NORMAL, seed);
	double best = best_of_all(m, p, place, 0, 0);

	if (fabs(s.cost - best) > 1e-9 * best)
		fail_msg("seed %u: %g by %s, the best is %g", seed, s.cost, s.method, best);
}

static struct places *eight_places(unsigned kind, const struct hierarchy *h)
{
	static const char tree[] =
		"0 9 3 1 9 3 7 7\n9 0 9 9 1 9 9 9\n3 9 0 3 9 1 7 7\n1 9 3 0 9 3 7 7\n"
		"9 1 9 9 0 9 9 9\n3 9 1 3 9 0 7 7\n7 9 7 7 9 7 0 2\n7 9 7 7 9 7 2 0\n";
	static const char distances[] =
		"0 3 1 4 1 5 9 2\n3 0 6 5 3 5 8 9\n1 6 0 7 9 3 2 3\n4 5 7 0 8 4 6 2\n"
		"1 3 9 8 0 6 4 3\n5 5 3 4 6 0 3 8\n9 8 2 6 4 3 0 3\n2 9 3 2 3 8 3 0\n";
	struct places *p;
	struct matrix *d;

	switch (kind) {
	case 0:
		return places_of(2, "Package:2 Core:2", NULL);
	case 1:
		return places_of(3, "Package:2 L2Cache:1 Core:2", "0,2-3");
	case 2:
		p = places_of_network(h);
		assert_int_equal(places_fit(p, (unsigned[]){ 2, 0, 3, 3, 0 }, FILL_AUTO, NULL), 0);
		return p;
	case 3:
		p = places_of_network(h);
		assert_int_equal(places_fit(p, (unsigned[]){ 3, 2, 2, 0, 1 }, FILL_AUTO, NULL), 0);
		return p;
	default:
		p = places_of(1, "Core:8", NULL);
		d = matrix_of(kind == 4 ? tree : distances);
		assert_int_equal(places_distances(p, d, NULL), 0);
		matrix_free(d);
		return p;
	}
}

TEST(finds_the_optimum)
{
	OWNED(hierarchy_free) struct hierarchy *h = network_of(torus);

	for (unsigned seed = 1; seed <= 48; seed++) {
		OWNED(places_free) struct places *p = eight_places(seed % 6, h);

		check_optimum(p, seed);
	}
}

/* If a node costs as much as a core all mappings cost the same; the one without network traffic is chosen. */
TEST(prefers_a_less_loaded_adapter)
{
	struct matrix *m = matrix_of("0 5 0 0\n5 0 0 0\n0 0 0 4\n0 0 4 0\n");
	OWNED(places_free) struct places *p = places_new();
	struct mapping s;

	assert_int_equal(places_costs(p, "core=100", NULL), 0);
	add(p, "a", "Core:2", NULL, 1);
	add(p, "b", "Core:2", NULL, 1);
	s = solved(m, p, EFFORT_NORMAL, 1);
	assert_true(s.nic == 0 && s.nic_block == 0 && s.block == s.cyclic && s.cost == s.block);
	mapping_free(&s);
	matrix_free(m);
	m = matrix_of("0 0 5 0\n0 0 0 4\n5 0 0 0\n0 4 0 0\n");
	s = solved(m, p, EFFORT_NORMAL, 1);
	assert_true(s.nic == 0 && s.nic_block == 18 && s.cost == s.block);
	assert_string_equal(s.method, "cyclic");
	mapping_free(&s);
	matrix_free(m);
}

static void write_one(FILE *to, const struct places *p, unsigned ranks, enum mapping_effort effort)
{
	unsigned x = 42;
	OWNED(matrix_free) struct matrix *m = random_matrix(&x, ranks);
	FREED(mapping_free) struct mapping s = solved(m, p, effort, 9);
	FREED(buf_free) struct buf text = {0};

	assert_int_equal(rankfile_write("openmpi", p, &s, &text, NULL), 0);
	fprintf(to, "%.17g %.17g %s\n%s", s.cost, s.scotch, s.method, text.data);
}

static void write_solution(FILE *to)
{
	OWNED(hierarchy_free) struct hierarchy *h = network_of(torus);
	struct places *tree = places_of(6, "Package:2 [NUMANode] L3Cache:4 L2Cache:2 Core:1", "0-13"),
		      *net = places_of_network(h);

	for (int effort = EFFORT_FAST; effort <= EFFORT_NORMAL; effort++) {
		write_one(to, tree, 70, effort);
		write_one(to, net, net->nplaces, effort);
	}
	places_free(tree);
	places_free(net);
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

TEST(is_deterministic)
{
	FREED(buf_free) struct buf one = answer_of_new_process(), two = answer_of_new_process();

	assert_true(one.len > 70 * 8);
	assert_string_equal(one.data, two.data);
}

/* More ranks than cores: communicating ranks share one, as far as it has PUs. */
TEST(shares_cores)
{
	OWNED(matrix_free) struct matrix *m = matrix_of("0 1 9 1\n1 0 1 9\n9 1 0 1\n1 9 1 0\n");
	OWNED(places_free) struct places *p = places_of(1, "Core:2 PU:2", "0-1");
	FREED(mapping_free) struct mapping map;
	FREED(buf_free) struct buf out = {0};

	assert_int_equal(mapping_solve(m, p, EFFORT_FAST, 1, &map, &err), -1);
	assert_int_equal(places_fit(p, (unsigned[]){ 9 }, FILL_AUTO, &err), 0);
	assert_int_equal(p->nplaces, 4);
	assert_int_equal(mapping_solve(m, p, EFFORT_FAST, 1, &map, &err), 0);
	for (unsigned a = 0; a < 4; a++)
		for (unsigned b = 0; b < a; b++)
			assert_int_not_equal(map.place[a], map.place[b]);
	assert_int_equal(rankfile_write("plain", p, &map, &out, &err), 0);
	assert_string_equal(out.data, p->leaf[p->place[map.place[0]].leaf] ? "0 cn0 1\n1 cn0 0\n2 cn0 1\n3 cn0 0\n"
								    : "0 cn0 0\n1 cn0 1\n2 cn0 0\n3 cn0 1\n");
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "solve")) {
		write_solution(stdout);
		return 0;
	}
	return tests_run(NULL, NULL);
}
