/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/chooser.h"
#include "score/score_tree.h"
#include "table.h"

#define NODES 200
#define COSTS 20		/* times the leads, at most as many as fronts are found of */

static unsigned draw(unsigned below)
{
	return (unsigned) random() % below;
}

#define LEADS 12

/* What the order says before the domains, written apart from it; less is better. */
static void lead_read(const struct candidate_node *c, long long out[LEADS])
{
	const long long lead[LEADS] = {
		!c->required, c->weight, c->devices_far, c->devices_unserved, c->memory_far, c->mixes_kinds,
		-(long long) c->tasks, c->shares_cores, c->spare, score_count(c->cost, SCORE_BEYOND, LEVEL_NODE),
		score_count(c->cost, SCORE_CUTS, LEVEL_NUMA), score_count(c->cost, SCORE_CUTS, LEVEL_L3),
	};

	memcpy(out, lead, sizeof(lead));
}

static int lead(const struct candidate_node *a, const struct candidate_node *b)
{
	long long of_a[LEADS], of_b[LEADS];

	lead_read(a, of_a);
	lead_read(b, of_b);
	for (size_t i = 0; i < LEADS; i++)
		if (of_a[i] != of_b[i])
			return of_a[i] < of_b[i] ? -1 : 1;
	return 0;
}

static bool is_better(const struct candidate_node *a, const struct candidate_node *b)
{
	unsigned less = 0, more = 0;

	for (enum level level = LEVEL_PACKAGE; level <= LEVEL_L3; level++) {
		less += score_count(a->cost, SCORE_TOUCHED, level) < score_count(b->cost, SCORE_TOUCHED, level);
		more += score_count(a->cost, SCORE_TOUCHED, level) > score_count(b->cost, SCORE_TOUCHED, level);
	}
	return less && !more;
}

/* Few values, so that many are equal. */
static unsigned candidates_draw(struct candidate_node *list, struct score_cost *costs)
{
	unsigned n = 1 + draw(NODES), leads = 1 + draw(3), kinds = 1 + draw(4);

	for (unsigned i = 0; i < COSTS; i++) {
		costs[i] = (struct score_cost){0};
		cost_set(&costs[i], SCORE_CUTS, LEVEL_L3, draw(leads));
		for (enum level level = LEVEL_PACKAGE; level < LEVEL_CORE; level++)
			cost_set(&costs[i], SCORE_TOUCHED, level, 1 + draw(3));
		cost_set(&costs[i], SCORE_LEFT, LEVEL_NODE, draw(3));
	}
	for (unsigned i = 0; i < n; i++)
		list[i] = (struct candidate_node){
			.node = i, .tasks = 1, .weight = draw(leads), .cost = &costs[draw(COSTS)],
			.worth = chooser_worth(draw(kinds) == 3, 8 << draw(kinds), 0), .free = draw(8),
		};
	return n;
}

TEST(no_other_choice_is_better)
{
	static struct candidate_node list[NODES];
	static struct score_cost costs[COSTS];

	for (unsigned seed = 0; seed < 1000; seed++) {
		unsigned n, want;

		srandom(seed);
		n = candidates_draw(list, costs);
		want = 1 + draw(n);
		candidate_nodes_sort(list, n, want);
		for (unsigned i = 0; i < want; i++)
			for (unsigned j = i + 1; j < n; j++) {
				assert_true(lead(&list[i], &list[j]) <= 0);
				assert_false(!lead(&list[i], &list[j]) && is_better(&list[j], &list[i]));
			}
		/* Of those that no other is better than, the one that is worth least. */
		for (unsigned j = 1; j < n; j++) {
			bool beaten = lead(&list[j], &list[0]) != 0;

			for (unsigned k = 0; k < n; k++)
				beaten |= !lead(&list[k], &list[j]) && is_better(&list[k], &list[j]);
			assert_true(beaten || list[0].worth <= list[j].worth);
		}
	}
}

TEST(what_other_jobs_need_is_worth_more)
{
	assert_true(chooser_worth(false, 64, 500000) < chooser_worth(false, 96, 250000));
	assert_true(chooser_worth(false, 64, 250000) < chooser_worth(false, 64, 500000));
	assert_true(chooser_worth(false, 192, 6000000) < chooser_worth(true, 16, 64000));
	/* Nodes of one purchase, of which some have a little less. */
	assert_true(chooser_worth(false, 64, 257000) == chooser_worth(false, 64, 256500));
}

TEST(several_nodes_fill_none_in_use)
{
	assert_true(chooser_free(2, 2, false, false) < chooser_free(3, 2, false, false));
	assert_true(chooser_free(7, 2, false, false) < chooser_free(8, 2, true, false));
	assert_true(chooser_free(3, 2, false, true) < chooser_free(7, 2, false, true));
	assert_true(chooser_free(7, 2, false, true) < chooser_free(2, 2, false, true));
	assert_true(chooser_free(2, 2, false, true) < chooser_free(8, 2, true, true));
	/* Equal nodes: an idle one is not full before. */
	assert_true(chooser_free(8, 8, true, true) == chooser_free(8, 2, true, true));
}

TEST(rows_are_compared_in_turn)
{
	const struct score_cost one = {0};
	struct score_cost two = {0};
	struct candidate_node a = { .node = 1, .cost = &one, .tasks = 2, .worth = 5, .free = 3 }, b = a;
	const struct {
		size_t at, size;
		uint64_t value;		/* of b: worse, or its tasks better */
		int sign;
		enum chooser_row row;
	} rows[] = {
#define ROW(field, value, sign, row) { offsetof(struct candidate_node, field), sizeof(a.field), value, sign, row }
		ROW(node, 2, -1, CHOOSER_INDEX), ROW(free, 4, -1, CHOOSER_FREE), ROW(worth, 6, -1, CHOOSER_WORTH),
		ROW(front, 1, -1, CHOOSER_FRONT), ROW(spare, 1, -1, CHOOSER_SPARE),
		ROW(shares_cores, true, -1, CHOOSER_SHARING), ROW(tasks, 3, 1, CHOOSER_TASKS),
		ROW(mixes_kinds, true, -1, CHOOSER_KINDS), ROW(memory_far, true, -1, CHOOSER_MEMORY),
		ROW(devices_unserved, 1, -1, CHOOSER_UNSERVED), ROW(devices_far, true, -1, CHOOSER_DEVICES),
		ROW(weight, 1, -1, CHOOSER_WEIGHT), ROW(required, true, 1, CHOOSER_REQUIRED),
	};
	enum chooser_row row;

	/* Each is set beside those before, and decides before them. */
	for (size_t i = 0; i < ROWS(rows); i++) {
		memcpy((char *) &b + rows[i].at, &rows[i].value, rows[i].size);
		assert_int_equal(candidate_node_compare(&a, &b, &row), rows[i].sign);
		assert_int_equal(row, rows[i].row);
	}
	b = a;
	b.cost = &two;
	cost_set(&two, SCORE_LEFT, LEVEL_NODE, 1);
	assert_true(candidate_node_compare(&a, &b, &row) < 0 && row == CHOOSER_COST);
	cost_set(&two, SCORE_TOUCHED, LEVEL_L3, 1);
	assert_true(candidate_node_compare(&a, &b, &row) < 0 && row == CHOOSER_TOUCHED);
	cost_set(&two, SCORE_CUTS, LEVEL_NUMA, 1);
	assert_true(candidate_node_compare(&a, &b, &row) < 0 && row == CHOOSER_WHOLE);
}

/* --- uneven divisions --- */

#define DIVIDED 7	/* nodes, of up to 3 kinds, for up to 20 tasks */

/* By trying all: the fewest nodes of [at] and the following that hold the rest, with what is used before; 99: none. */
static unsigned fewest(const uint64_t *holds, const bool *required, unsigned n, unsigned at, unsigned used,
		       unsigned left, const struct chooser_division *d)
{
	unsigned least;

	if (at == n)
		return !left && used >= d->min_nodes && used <= d->max_nodes ? used : 99;
	least = required[at] ? 99 : fewest(holds, required, n, at + 1, used, left, d);
	for (unsigned t = 1; t <= left; t++)
		if (holds[at] >> t & 1) {
			unsigned with = fewest(holds, required, n, at + 1, used + 1, left - t, d);

			least = with < least ? with : least;
		}
	return least;
}

TEST(every_division_is_found)
{
	unsigned found = 0, none = 0;

	for (unsigned seed = 0; seed < 4000; seed++) {
		struct chooser_division d = { .tasks = 1 + (srandom(seed), draw(20)), .min_nodes = 1 + draw(4) };
		uint64_t draws[3] = { random() & random(), random() & random() & random(), 2 }, holds[DIVIDED];
		unsigned n = 1 + draw(DIVIDED), kind_of[DIVIDED], least, sum = 0, most = d.tasks;
		bool required[DIVIDED];
		int rc;

		d.max_nodes = d.min_nodes + draw(4);
		for (unsigned i = 0; i < n; i++) {
			required[i] = !draw(8);
			holds[i] = draws[draw(3)] & ((2ull << most) - 1) & ~1ull;
			kind_of[i] = chooser_division_add(&d, &holds[i], draw(2), required[i]);
			assert_true(kind_of[i] < n);
		}
		rc = chooser_division_find(&d);
		least = fewest(holds, required, n, 0, 0, d.tasks, &d);
		assert_int_equal(rc, least == 99);
		found += !rc;
		none += rc;
		for (unsigned k = 0; !rc && k < d.nkinds; k++) {
			unsigned uses = 0;

			for (unsigned i = 0; i < d.nparts; i++)
				uses += d.parts[i].kind == k;
			assert_true(uses <= d.kinds[k].nodes && (uses || !d.kinds[k].required));
		}
		for (unsigned i = 0; !rc && i < d.nparts; i++) {
			sum += d.parts[i].tasks;
			assert_true(d.kinds[d.parts[i].kind].holds[0] >> d.parts[i].tasks & 1);
		}
		if (!rc) {
			assert_int_equal(sum, d.tasks);
			assert_int_equal(d.nparts, least);
		}
		chooser_division_free(&d);
	}
	assert_true(found > 500 && none > 500);
}

/* Many tasks, many nodes: found by some of the nodes, or said to be unknown, in bounded time. */
TEST(large_divisions)
{
	static const struct {
		const char *why;
		uint32_t tasks, min_nodes, max_nodes, nodes, each;
		int rc;
		uint32_t nparts;
	} rows[] = {
		{ "each node has as many", 640, 10, 10, 5000, 64, 0, 10 },
		{ "and one more would be needed", 641, 10, 10, 5000, 64, 1, 0 },
		{ "as many nodes as needed", 2000, 1, UINT32_MAX, 5000, 64, 0, 32 },
		{ "too many to try", 65000, 5000, 5000, 5000, 64, -1, 0 },
		{ "too many tasks", 70000, 2, UINT32_MAX, 5000, 64, -1, 0 },
		{ "fewer nodes than it needs", 8, 8, 8, 7, 1, 1, 0 },
	};

	for (size_t r = 0; r < ROWS(rows); r++) {
		struct chooser_division d = { .tasks = rows[r].tasks, .min_nodes = rows[r].min_nodes,
				      .max_nodes = rows[r].max_nodes };
		uint64_t holds[2048] = {0};

		for (unsigned t = 1; t <= rows[r].each; t++)
			core_set_add(holds, t);
		for (unsigned i = 0; i < rows[r].nodes; i++)
			assert_int_equal(chooser_division_add(&d, holds, 0, false), 0);
		if (chooser_division_find(&d) != rows[r].rc || d.nparts != rows[r].nparts)
			fail_msg("%s: %u nodes", rows[r].why, d.nparts);
		chooser_division_free(&d);
	}
}
TESTS_MAIN(NULL, NULL)
