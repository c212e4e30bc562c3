/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/buf.h"
#include "made.h"
#include "map/rankfile/rankfile.h"
#include "odd_machine.h"
#include "shape/strings.h"

OWNS(struct shape *, shape_free)

TEST(computes_distances)
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
		OWNED(places_free) struct places *p = places_of(2, rows[i].shape, NULL);

		if (places_distance(p, rows[i].a, rows[i].b) != rows[i].distance)
			fail_msg("%s: %u and %u: %g", rows[i].shape, rows[i].a, rows[i].b,
				 places_distance(p, rows[i].a, rows[i].b));
	}
}

/* "0 cn0 0" and so on, a line a place: what a rank file of ranks in the order of places says. */
static struct buf told(const struct places *p)
{
	struct buf text = {0};
	struct mapping m = { .ranks = p->nplaces, .place = calloc(p->nplaces, sizeof(unsigned)) };

	for (unsigned i = 0; i < p->nplaces; i++)
		m.place[i] = i;
	assert_int_equal(rankfile_write("plain", p, &m, &text, NULL), 0);
	free(m.place);
	return text;
}

TEST(numbers_places)
{
	static const struct {
		const char *shape, *cores;
		unsigned cpus;
		const char *told;
	} rows[] = {
		{ "Package:2 Core:4", "6-7,1", 1, "0 cn 0\n1 cn 1\n2 cn 2\n" },
		{ "Package:2 Core:4", "0-7", 2, "0 cn 0,1\n1 cn 2,3\n2 cn 4,5\n3 cn 6,7\n" },
		{ "Package:2 Core:4", "0-7", 3, "0 cn 0,1,2\n1 cn 4,5,6\n" },
		/* What is left over of each package is one place across them, behind those that are not. */
		{ "Package:2 Core:5", "0-9", 2, "0 cn 0,1\n1 cn 2,3\n2 cn 5,6\n3 cn 7,8\n4 cn 4,9\n" },
		{ "Package:2 L2Cache:2 Core:3", "0-11", 2, "0 cn 0,1\n1 cn 3,4\n2 cn 2,5\n3 cn 6,7\n4 cn 9,10\n"
		  "5 cn 8,11\n" },
		/* Four CPUs are two cores of two PUs, three are as well, two are one. */
		{ "Core:5 PU:2", "0-4", 4, "0 cn 0,1\n1 cn 2,3\n" },
		{ "Core:5 PU:2", "0-4", 3, "0 cn 0,1\n1 cn 2,3\n" },
		{ "Core:2 PU:2", "0-1", 2, "0 cn 0\n1 cn 1\n" },
		/* Cores with a PU that is offline, performance and efficiency cores. */
		{ "{ Core:1 PU:1 | Core:3 PU:2 }", "0-3", 2, "0 cn 1\n1 cn 2\n2 cn 3\n" },
		{ "{ Core:2 PU:2 | L2Cache:1 Core:4 PU:1 }", "0-5", 2, "0 cn 0\n1 cn 1\n2 cn 2,3\n3 cn 4,5\n" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(places_free) struct places *p = places_new();
		FREED(buf_free) struct buf text;

		add(p, "cn", rows[i].shape, rows[i].cores, rows[i].cpus);
		text = told(p);
		if (strcmp(text.data, rows[i].told))
			fail_msg("row %zu:\n%s", i, text.data);
	}
}

/* Each place has the CPUs of a task and no core more, and what is left over would not make another. */
static void places_odd(unsigned seed)
{
	struct odd_machine m;
	OWNED(places_free) struct places *p = places_new();
	FREED(strings_free) struct strings texts;
	FREED(buf_free) struct buf cores = {0};
	unsigned cpus, left = 0, threads, used[ODD_PUS], has[ODD_PUS] = {0};
	struct tree *t;
	OWNED(shape_free) struct shape *s;

	odd_make(&m, seed);
	assert_non_null(t = tree_parse(m.xml.data, m.xml.len, "odd", &err));
	assert_int_equal(strings_make(t, &texts, &err), 0);
	if (!(s = shape_parse(texts.allocation, &err)))
		fail_msg("seed %u: %s", seed, err.text);
	p->threads = threads = odd_random(&m, 3);
	cpus = 1 + odd_random(&m, 5);
	for (unsigned i = 0; i < m.cores; i++)
		if (odd_random(&m, 4)) {
			buf_printf(&cores, "%s%u", cores.len ? "," : "", i);
			left += has[i] = threads ? threads : (unsigned) __builtin_popcountl(m.core[i].pus);
		}
	memcpy(used, has, sizeof(used));
	if (!cores.len || places_add(p, "cn", s, cores.data, cpus, &err)) {
		if (left >= cpus)
			fail_msg("seed %u: %s", seed, err.text);
	}
	for (unsigned i = 0; i < p->nplaces; i++) {
		const struct place *place = &p->place[i];
		unsigned sum = 0, last = 0;

		for (unsigned k = 0; k < place->leaves; k++) {
			unsigned core = p->core[place->leaf + k];

			if (!used[core])
				fail_msg("seed %u: core %u is in two places, or not of the job", seed, core);
			sum += last = used[core];
			left -= used[core];
			used[core] = 0;
		}
		if (sum < cpus || sum - last >= cpus)
			fail_msg("seed %u: place %u has %u CPUs for a task of %u", seed, i, sum, cpus);
		assert_int_equal(place->takes, place->leaves > 1 ? 1 : sum / cpus);
	}
	if (left >= cpus)
		fail_msg("seed %u: %u CPUs are in no place, and a task has %u", seed, left, cpus);
	tree_free(t);
	buf_free(&m.xml);
}

TEST(fills_odd_machines)
{
	for (unsigned seed = 0; seed < 1000; seed++)
		places_odd(seed);
}

/* A place is in the domains that hold all of its cores, and alone below them. */
TEST(computes_distances_of_several_cores)
{
	struct places *p = places_new();

	add(p, "cn", "Package:2 L2Cache:2 Core:3", NULL, 2);
	/* 0 and 1: each in a cache of package 0, 2: across them, 3 to 5: the same in package 1. */
	assert_true(places_distance(p, 0, 1) == 4);
	assert_true(places_distance(p, 0, 2) == 4 && places_distance(p, 1, 2) == 4);
	assert_true(places_distance(p, 0, 3) == 20 && places_distance(p, 2, 5) == 20);
	places_free(p);
	p = places_new();
	add(p, "cn", "Package:2 L2Cache:1 Core:4", NULL, 2);
	assert_true(places_distance(p, 0, 1) == 2);
	assert_true(places_distance(p, 1, 2) == 20);
	places_free(p);
}

TEST(refuses_places)
{
	static const struct {
		const char *host, *cores;
		unsigned cpus;
		const char *says;
	} rows[] = {
		{ "cn9", "", 1, "cn9" },
		{ "cn9", "8", 1, "cn9" },
		{ "cn9", "0-8", 1, "cn9" },
		{ "cn9", "x", 1, "cn9" },
		{ "cn9", "3-1", 1, "cn9" },
		{ "cn9", "-1", 1, "cn9" },
		{ "cn9", "1,,2", 1, "cn9" },
		{ "cn0", "0", 1, "cn0: node given twice" },
		{ "cn9", "0-1", 3, "cn9: the job's cores on this node have fewer than the 3 CPUs of a task" },
	};
	OWNED(shape_free) struct shape *s = shape_parse("Package:2 Core:4", NULL);
	OWNED(places_free) struct places *p = places_of(1, "Core:2", "0");

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = {""};

		if (!places_add(p, rows[i].host, s, rows[i].cores, rows[i].cpus, &e))
			fail_msg("accepted: row %zu", i);
		if (!strstr(e.text, rows[i].says))
			fail_msg("row %zu: %s", i, e.text);
	}
	assert_int_equal(p->nplaces, 1);
	assert_int_equal(p->nhosts, 1);
	assert_int_equal(p->nleaves, 1);
}

TEST(sets_costs)
{
	static const char *const bad[] = { "x=1", "node", "node=", "node=x", "node=-1", "node=1000001", "=3",
					   "l3=5,node=1.5.2", "node=nan", "node=0x5", "node=.", "0-1=1,0-2=1", "0-0=1",
					   "0-64=1", "0-1=" };
	OWNED(places_free) struct places *p = places_new();

	assert_int_equal(places_costs(p, "node=7,L3=1000000", &err), 0);
	for (size_t i = 0; i < ROWS(bad); i++)
		if (!places_costs(p, bad[i], &err) || strncmp(err.text, "costs: ", 7))
			fail_msg("%s: %s", bad[i], err.text);
	assert_int_equal(p->cost[LEVEL_NODE], 7);
	assert_int_equal(p->cost[LEVEL_L3], 1000000);
	assert_int_equal(p->cost[LEVEL_L2], 4);
	add(p, "a", "L3Cache:2 Core:2", NULL, 1);
	add(p, "b", "L3Cache:2 Core:2", NULL, 1);
	assert_true(places_distance(p, 0, 2) == 1000000 && places_distance(p, 0, 4) == 7);
}

/* Costs between NUMA nodes: those within 10 % are one level; what is no tree is averaged; the rest is as before. */
TEST(costs_of_numa_nodes)
{
	static const char shape[] = "Package:2 [NUMANode] Core:8", halves[] = "Package:2 NUMANode:2 Core:2";
	static const struct {
		const char *shape, *costs;
		unsigned a, b;
		double cost;
	} rows[] = {
		{ shape, "package=20,core=2,0-1=31", 0, 8, 31 }, { shape, "core=3,0-1=31", 0, 1, 3 },
		/* Near within the packages, far between: measured with noise. */
		{ halves, "0-1=10,0-2=30,0-3=31,1-2=30,1-3=29,2-3=10.5", 0, 2, 10.25 },
		{ halves, "0-1=10,0-2=30,0-3=31,1-2=30,1-3=29,2-3=10.5", 0, 4, 30 },
		{ halves, "0-1=10,0-2=30,0-3=31,1-2=30,1-3=29,2-3=10.5", 2, 6, 30 },
		/* Nodes of different packages are the nearest. */
		{ halves, "0-1=40,0-2=10,0-3=40,1-2=40,1-3=10,2-3=40", 0, 4, 10 },
		{ halves, "0-1=40,0-2=10,0-3=40,1-2=40,1-3=10,2-3=40", 0, 2, 40 },
		{ halves, "0-1=40,0-2=10,0-3=40,1-2=40,1-3=10,2-3=40", 0, 6, 40 },
		/* One package's nodes are farther apart than the other's. */
		{ halves, "0-1=10,0-2=80,0-3=80,1-2=80,1-3=80,2-3=30", 0, 2, 10 },
		{ halves, "0-1=10,0-2=80,0-3=80,1-2=80,1-3=80,2-3=30", 4, 6, 30 },
		/* A ring is no tree. */
		{ halves, "0-1=10,1-2=10,2-3=10,0-3=10,0-2=20,1-3=20", 0, 4, 15 },
	};
	struct places *p;
	OWNED(shape_free) struct shape *s;

	for (size_t i = 0; i < ROWS(rows); i++) {
		double cost = -1, back = -1;

		p = places_new();
		assert_int_equal(places_costs(p, rows[i].costs, &err), 0);
		add(p, "x", rows[i].shape, NULL, 1);
		for (unsigned a = 0; a < p->nplaces; a++)
			for (unsigned b = 0; b < p->nplaces; b++)
				if (p->core[p->place[a].leaf] == rows[i].a && p->core[p->place[b].leaf] == rows[i].b) {
					cost = places_distance(p, a, b);
					back = places_distance(p, b, a);
				}
		if (cost != rows[i].cost || back != cost)
			fail_msg("row %zu: %g and %g, expected %g", i, cost, back, rows[i].cost);
		places_free(p);
	}
	/* Another node of the job without them, and one with other NUMA nodes. */
	p = places_new();
	assert_int_equal(places_costs(p, "node=100,0-1=31", &err), 0);
	add(p, "x", shape, NULL, 1);
	assert_non_null(s = shape_parse(halves, &err));
	assert_int_equal(places_add(p, "y", s, "0-7", 1, &err), -1);
	assert_non_null(strstr(err.text, "y: costs between 2 NUMA nodes, but cores of the node are in 4"));
	assert_int_equal(places_costs(p, "package=20", &err), 0);
	add(p, "z", shape, NULL, 1);
	assert_true(places_distance(p, 0, 8) == 31 && places_distance(p, 16, 24) == 20);
	assert_true(places_distance(p, 0, 16) == 100);
	places_free(p);
}

/* The machine of the paper's figure 5, and one node that is used in part. */
static const char torus[] =
	"torus 3 4 1600 4 1500 4 1400 2 32 52\n"
	"tree 1 4 800 1 0\n"
	"node n129 tree 4 2 80 2 40 4 20 2 10 -1\n"
	"tree 1 4 800 2 0 1\n"
	"node n208 tree 4 2 80 2 40 4 20 2 10 -1\n"
	"node n210 tree 2 2 70 3 30 4 0 2 3 5\n";

TEST(uses_networks)
{
	/* 32 is (0, 0, 2), 52 is (0, 1, 3). */
	static const struct {
		unsigned a, b, distance;
	} rows[] = {
		{ 0, 1, 10 }, { 0, 2, 20 }, { 0, 8, 40 }, { 0, 16, 80 }, { 0, 32, 1500 + 1400 },
		{ 31, 67, 1500 + 1400 }, { 32, 64, 800 }, { 63, 67, 800 }, { 64, 65, 30 }, { 64, 66, 70 },
		{ 66, 67, 30 },
	};
	OWNED(hierarchy_free) struct hierarchy *h = network_of(torus);
	OWNED(places_free) struct places *p = places_of_network(h);

	assert_int_equal(p->nplaces, 68);
	for (size_t i = 0; i < ROWS(rows); i++)
		if (places_distance(p, rows[i].a, rows[i].b) != rows[i].distance)
			fail_msg("%u and %u: %g", rows[i].a, rows[i].b, places_distance(p, rows[i].a, rows[i].b));
	assert_int_equal(p->leaf[p->place[67].leaf], 5);
	assert_int_equal(p->leaf[p->place[65].leaf], 2);
}

/* The nodes' shapes by the snapshot, what is above them by the network, in the job's order. */
TEST(joins_networks_and_shapes)
{
	struct hierarchy *h = network_of("tree 2 2 300 2 150 2 0 1\nnode b tree 1 1 1 -1\nnode a tree 1 1 1 -1\n");
	OWNED(places_free) struct places *p = places_new();
	OWNED(shape_free) struct shape *s = shape_parse("Package:2 Core:1", NULL);

	p->network = h;
	add(p, "a", "Package:2 Core:2", NULL, 1);
	add(p, "b", "Core:1", NULL, 1);
	assert_true(places_distance(p, 0, 1) == 2 && places_distance(p, 0, 2) == 20);
	assert_true(places_distance(p, 0, 4) == 150);
	assert_int_equal(places_add(p, "c", s, "0", 1, &err), -1);
	assert_string_equal(err.text, "c: this node is not in the network");
	hierarchy_free(h);
}

/* The table is dense, whatever the matrix is: more than 16,384 places are refused, and nothing is asked of memory. */
TEST(bounds_distances)
{
	static const struct {
		unsigned n;
		const char *matrix, *says;
	} rows[] = {
		{ 16385, "%%MatrixMarket matrix coordinate real general\n16385 16385 1\n1 2 3\n",
		  "distances between 16385 places: at most 16384 are allowed" },
		{ 65536, "%%MatrixMarket matrix coordinate real general\n65536 65536 0\n",
		  "distances between 65536 places: at most 16384 are allowed" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct hierarchy_host host = { .name = "-", .inner = { .levels = 1, .size = { rows[i].n },
								       .cost = { 1 } } };
		OWNED(matrix_free) struct matrix *m = matrix_of(rows[i].matrix);
		OWNED(places_free) struct places *p = places_new();
		struct err e = {""};

		assert_int_equal(places_add_inner(p, &host, NULL), 0);
		assert_int_equal(places_distances(p, m, &e), -1);
		assert_string_equal(e.text, rows[i].says);
		assert_null(p->distance);
	}
}

TEST(uses_given_distances)
{
	OWNED(matrix_free) struct matrix *m = matrix_of("0 1 2\n3 0 5\n2 5 0\n"), *other = matrix_of("0 1\n1 0\n");
	OWNED(places_free) struct places *p = places_of(3, "Core:1", NULL);

	assert_int_equal(places_distances(p, m, &err), 0);
	assert_true(places_distance(p, 0, 1) == 2 && places_distance(p, 1, 0) == 2);
	assert_true(places_distance(p, 2, 0) == 2 && places_distance(p, 1, 2) == 5 && places_distance(p, 1, 1) == 0);
	assert_int_equal(places_distances(p, other, &err), -1);
	assert_string_equal(err.text, "the matrix of distances has 2 places, but the job has 3");
	assert_int_equal(places_fit(p, (unsigned[]){ 1, 0, 1 }, FILL_AUTO, &err), 0);
	assert_true(places_distance(p, 0, 1) == 2);
}

/* No host gets more places than tasks, whatever the cores it has. */
TEST(fits_tasks)
{
	static const struct {
		unsigned tasks, places, last_leaf;
	} rows[] = { { 1, 1, 0 }, { 3, 3, 2 }, { 4, 4, 3 }, { 5, 5, 2 }, { 8, 8, 3 }, { 99, 8, 3 } };

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(places_free) struct places *p = places_of(2, "Core:4 PU:2", NULL);

		assert_int_equal(places_fit(p, (unsigned[]){ rows[i].tasks, 2 }, FILL_AUTO, NULL), 0);
		assert_int_equal(p->nplaces, rows[i].places + 2);
		assert_int_equal(p->leaf[p->place[rows[i].places - 1].leaf], rows[i].last_leaf);
		assert_int_equal(p->place[rows[i].places - 1].host, 0);
		assert_int_equal(p->place[rows[i].places].host, 1);
	}
}

/* Hosts of 4, 8 and 8 cores. */
TEST(fills_as_requested)
{
	static const struct {
		enum places_fill fill;
		unsigned ranks;
		const char *told;
	} rows[] = {
		{ FILL_COMPACT, 3, "0 b 0\n1 b 1\n2 b 2\n" },
		{ FILL_COMPACT, 9, "0 b 0\n1 b 1\n2 b 2\n3 b 3\n4 b 4\n5 b 5\n6 b 6\n7 b 7\n8 c 0\n" },
		{ FILL_SPREAD, 3, "0 a 0\n1 b 0\n2 c 0\n" },
		{ FILL_SPREAD, 6, "0 a 0\n1 a 2\n2 b 0\n3 b 4\n4 c 0\n5 c 4\n" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(places_free) struct places *p = places_new();
		FREED(buf_free) struct buf text;

		add(p, "a", "Package:2 Core:2", NULL, 1);
		add(p, "b", "Package:2 Core:4", NULL, 1);
		add(p, "c", "Package:2 Core:4", NULL, 1);
		assert_int_equal(places_fill(p, rows[i].ranks, FILL_AUTO, &err), 0);
		assert_int_equal(p->nplaces, 20);
		assert_int_equal(places_fill(p, rows[i].ranks, rows[i].fill, &err), 0);
		text = told(p);
		assert_string_equal(text.data, rows[i].told);
	}
	assert_int_equal(places_fill_parse("spread"), FILL_SPREAD);
	assert_int_equal(places_fill_parse("Spread"), -1);
}

TESTS_MAIN(NULL, NULL)
