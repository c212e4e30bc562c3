/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <math.h>

#include "made.h"
#include "map/engine/anneal.h"
#include "map/engine/neighbourhood.h"
#include "map/matrix/draw.h"
#include "map/engine/bisection.h"
#include "map/engine/split.h"

OWNS(struct slots *, slots_free)

/* Every other rank, or all; and empty slots. */
static void open_some(struct bisection *h, const struct matrix *m, unsigned step, unsigned empty)
{
	OWNED(free) unsigned *rank = malloc(m->ranks * sizeof(*rank)), *local = malloc(m->ranks * sizeof(*local));
	unsigned n = 0;

	memset(local, 0xff, m->ranks * sizeof(*local));
	for (unsigned r = 0; r < m->ranks; r += step) {
		local[r] = n;
		rank[n++] = r;
	}
	assert_int_equal(bisection_init(h, m, &(struct matrix_ranks){ rank, local, n }, empty), 0);
}

/* The matrix as a graph, and its eigenvectors; the caller frees mass and the vectors. */
static struct spectral_graph graph_find(const struct matrix *m, uint64_t seed, double *mode[MODES])
{
	struct spectral_graph w = { m->ranks, m->row, m->adj, m->weight, calloc(m->ranks, sizeof(double)) };
	unsigned long long work = 0;

	for (size_t a = 0, r = 0; a < m->row[m->ranks]; a++) {
		while (a >= m->row[r + 1])
			r++;
		w.mass[r] += m->weight[a];
	}
	for (unsigned k = 0; k < MODES; k++)
		mode[k] = malloc(m->ranks * sizeof(double));
	assert_int_equal(spectral_modes(&w, &seed, mode, &work), 0);
	assert_true(work > m->row[m->ranks] && work < 500 * (m->row[m->ranks] + m->ranks));
	return w;
}

/* How similar two are, 0 to 1. */
static double likeness(const struct spectral_graph *w, const double *x, const double *y)
{
	double xy = 0, xx = 0, yy = 0;

	for (unsigned i = 0; i < w->n; i++) {
		xy += w->mass[i] * x[i] * y[i];
		xx += w->mass[i] * x[i] * x[i];
		yy += w->mass[i] * y[i] * y[i];
	}
	return fabs(xy) / sqrt(xx * yy);
}

/*
 * In the lowest eigenvector a long grid changes sign once along its length, for every seed; eigenvectors are
 * orthogonal.
 */
TEST(finds_low_eigenvectors)
{
	static const struct { unsigned wide, high; } rows[] = { { 60, 1 }, { 400, 1 }, { 90, 6 }, { 200, 8 } };

	for (size_t i = 0; i < ROWS(rows); i++)
		for (uint64_t seed = 1; seed <= 5; seed++) {
			OWNED(matrix_free) struct matrix *m = grid(rows[i].wide, rows[i].high, 7);
			double *mode[MODES], *swing = malloc(m->ranks * sizeof(*swing));
			struct spectral_graph w = graph_find(m, seed, mode);

			for (unsigned r = 0; r < m->ranks; r++)
				swing[r] = cos(M_PI * (r % rows[i].wide + 0.5) / rows[i].wide);
			if (likeness(&w, mode[0], swing) < 0.95)
				fail_msg("row %zu, seed %u: %g", i, (unsigned) seed, likeness(&w, mode[0], swing));
			for (unsigned k = 0; k < MODES; k++)
				assert_true(likeness(&w, mode[k], mode[(k + 1) % MODES]) < 1e-6);
			for (unsigned k = 0; k < MODES; k++)
				free(mode[k]);
			free(w.mass);
			free(swing);
		}
}

static unsigned firsts(const struct bisection *h)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->ranks; i++)
		n += !h->second[i];
	return n;
}

/* The shortest possible cut, for every seed. */
TEST(cuts_grids)
{
	static const struct { unsigned wide, high, first; double weight, cut; } rows[] = {
		{ 4, 8, 16, 1, 4 }, { 8, 4, 16, 1, 4 }, { 6, 4, 8, 1, 4 }, { 8, 8, 32, 1, 8 }, { 5, 1, 2, 1, 1 },
		{ 12, 4, 12, 3, 12 },
		{ 16, 16, 128, 1, 16 }, { 2, 1, 1, 5, 5 }, { 64, 16, 512, 1, 16 }, { 400, 2, 200, 1, 2 },
	};

	for (size_t i = 0; i < ROWS(rows); i++)
		for (uint64_t seed = 1; seed <= 5; seed++) {
			OWNED(matrix_free) struct matrix *m = grid(rows[i].wide, rows[i].high, rows[i].weight);
			FREED(bisection_free) struct bisection h;
			double cut;

			open_some(&h, m, 1, 0);
			assert_int_equal(bisection_run(&h, rows[i].first, (struct bisection_way){ .seed = seed }), 0);
			cut = bisection_cut(&h);
			if (cut != rows[i].cut || firsts(&h) != rows[i].first)
				fail_msg("row %zu, seed %u: %g cut, %u", i, (unsigned) seed, cut, firsts(&h));
		}
}

/* Any sizes, ranks without communication, quick or not. */
TEST(halves_have_exact_sizes)
{
	OWNED(matrix_free) struct matrix *m = grid(7, 5, 2);

	for (unsigned step = 1; step <= 2; step++)
		for (unsigned first = 1; first < (m->ranks + step - 1) / step; first++) {
			FREED(bisection_free) struct bisection h;

			open_some(&h, m, step, 0);
			assert_int_equal(bisection_run(&h, first,
						    (struct bisection_way){ .quick = first % 2, .loose = 0.2,
									 .seed = first }), 0);
			assert_int_equal(firsts(&h), first);
		}
}

/* With spare room a half gets as many ranks as belong together, within its limit, and empty slots for the others. */
TEST(free_sizes_minimise_the_cut)
{
	OWNED(matrix_free) struct matrix *m = matrix_of("%%MatrixMarket matrix coordinate real general\n14 14 12\n"
				     "2 1 1\n3 2 1\n4 3 1\n5 4 1\n7 6 1\n8 7 1\n9 8 1\n10 9 1\n11 10 1\n12 11 1\n"
				     "13 12 1\n14 13 1\n");
	static const struct { unsigned first, empty; double cut; } rows[] = {
		{ 10, 6, 0 }, { 5, 1, 0 }, { 9, 4, 0 }, { 8, 2, 1 }, { 14, 14, 0 },
	};

	for (size_t i = 0; i < ROWS(rows); i++)
		for (unsigned seed = 1; seed <= 4; seed++) {
			FREED(bisection_free) struct bisection h;
			unsigned empty = 0;

			open_some(&h, m, 1, rows[i].empty);
			assert_int_equal(bisection_run(&h, rows[i].first,
						    (struct bisection_way){ .quick = seed % 2, .seed = seed }), 0);
			for (unsigned k = h.ranks; k < h.n; k++)
				empty += !h.second[k];
			assert_int_equal(firsts(&h) + empty, rows[i].first);
			if (bisection_cut(&h) > rows[i].cut)
				fail_msg("row %zu, seed %u: %g cut, %u first", i, seed, bisection_cut(&h), firsts(&h));
		}
}

/* The predicted decrease of exchanges, and the gains kept, equal a new computation. */
TEST(kept_gains_are_exact)
{
	OWNED(matrix_free) struct matrix *m = grid(9, 7, 3);
	uint64_t chance = 1;
	FREED(bisection_free) struct bisection h;

	open_some(&h, m, 1, 0);
	for (unsigned turn = 0; turn < 50; turn++) {
		double before, less, *gain = malloc(h.n * sizeof(*gain));

		for (unsigned i = 0; i < h.n; i++) {
			h.second[i] = draw_below(&chance, 2);
			h.bias[i] = (int) draw_below(&chance, 9) - 4;
		}
		before = bisection_cut(&h);
		less = bisection_exchange(&h);
		memcpy(gain, h.gain, h.n * sizeof(*gain));
		assert_true(less >= 0 && fabs(bisection_cut(&h) - (before - less)) < 1e-9);
		for (unsigned i = 0; i < h.n; i++)
			assert_true(fabs(gain[i] - h.gain[i]) < 1e-9);
		free(gain);
	}
}

TEST(improves_existing_halves)
{
	OWNED(matrix_free) struct matrix *m = grid(8, 4, 1);
	FREED(bisection_free) struct bisection h;
	bool best[32];

	open_some(&h, m, 1, 0);
	for (unsigned i = 0; i < h.n; i++)
		h.second[i] = i % 2;
	assert_int_equal(bisection_again(&h, 16, (struct bisection_way){ .quick = true, .seed = 1 }), 1);
	assert_true(bisection_cut(&h) == 4);
	memcpy(best, h.second, sizeof(best));
	assert_int_equal(bisection_again(&h, 16, (struct bisection_way){ .quick = true, .seed = 2 }), 0);
	assert_memory_equal(h.second, best, sizeof(best));
	/* Ranks with a bias towards the second half move there, for the same cut. */
	for (unsigned i = 0; i < h.n; i++)
		h.bias[i] = best[i] ? 1 : -1;
	assert_int_equal(bisection_again(&h, 16, (struct bisection_way){ .quick = true, .seed = 3 }), 1);
	for (unsigned i = 0; i < h.n; i++)
		assert_int_equal(h.second[i], !best[i]);
}

/* A pair tried in vain is not tried again until a rank moved in one of its domains; a saved state is restored. */
TEST(pairs_are_tried_once)
{
	OWNED(places_free) struct places *p = places_of(4, "Package:2 Core:4", NULL);
	OWNED(slots_free) struct slots *s = slots_new(p, NULL);
	FREED(attempts_free) struct attempts a;

	assert_int_equal(attempts_init(&a, s), 0);
	assert_true(attempts_add(&a, 0, 1, 2));
	assert_false(attempts_add(&a, 0, 2, 1));
	/* Other pairs, and those of another level. */
	assert_true(attempts_add(&a, 0, 1, 3));
	assert_true(attempts_add(&a, 1, 1, 2));
	assert_false(attempts_add(&a, 1, 1, 2));
	attempts_keep(&a);
	/* The first of host 2, which is in the fifth package. */
	attempts_change(&a, 2 * 8);
	assert_true(attempts_add(&a, 0, 1, 2));
	assert_false(attempts_add(&a, 0, 1, 3));
	assert_false(attempts_add(&a, 1, 1, 2));
	attempts_change(&a, 2 * 8);
	attempts_return(&a);
	assert_false(attempts_add(&a, 0, 1, 2));
}

/* Far from good: a stride that is coprime to the number of slots. */
static unsigned *far_from_good(const struct matrix *m, const struct slots *s)
{
	unsigned *slot = malloc(m->ranks * sizeof(*slot));

	for (unsigned r = 0; r < m->ranks; r++)
		slot[r] = r * 37 % s->n;
	return slot;
}

typedef int (*way_to_mend)(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
			   unsigned *slot, struct err *e);

/* Polishing, with the interface of the other stages. */
static int ranks_polish(const struct matrix *m, const struct slots *s, uint64_t seed, unsigned long long work,
			unsigned *slot, struct err *e)
{
	(void) seed;
	(void) e;
	return swaps_polish(m, s, &work, slot);
}

static void check_mends(way_to_mend refine, const struct matrix *m, const struct slots *s, unsigned seed, double most)
{
	OWNED(free) unsigned *slot = far_from_good(m, s), *again = far_from_good(m, s);
	unsigned char *taken = calloc(s->n, 1);
	double before = slots_cost(m, s, slot), after;

	assert_int_equal(refine(m, s, seed, 20000000, slot, NULL), 0);
	assert_int_equal(refine(m, s, seed, 20000000, again, NULL), 0);
	assert_memory_equal(slot, again, m->ranks * sizeof(*slot));
	for (unsigned r = 0; r < m->ranks; r++)
		assert_false(taken[slot[r]]++);
	after = slots_cost(m, s, slot);
	if (after > most || after >= before)
		fail_msg("%u ranks, seed %u: %g, before %g", m->ranks, seed, after, before);
	free(taken);
}

TEST(refines_mappings)
{
	static const struct {
		way_to_mend way;
		unsigned hosts;
		const char *shape;
		unsigned wide, high;
		double most;
	} rows[] = {
		/*
		 * Four hosts of 4 x 4 have borders of 16 in all, and 24 pairs inside each: that, and half as much
		 * again.
		 */
		{ neighbourhood_search, 4, "Core:16", 8, 8, 1.5 * (16 * 100 + 4 * 24 * 2) },
		{ anneal_nodes, 4, "Core:16", 8, 8, 16 * 100 + 4 * 24 * 2 },
		/* With spare room; the optimum has four complete hosts, with four pairs between packages in each. */
		{ neighbourhood_search, 6, "Package:2 Core:8", 8, 8, INFINITY },
		{ anneal_nodes, 6, "Package:2 Core:8", 8, 8, 1.06 * (16 * 100 + 4 * (4 * 20 + 20 * 2)) },
		{ neighbourhood_search, 3, "Package:2 L3Cache:2 Core:4", 5, 7, 1190 },
		{ anneal_nodes, 3, "Package:2 L3Cache:2 Core:4", 5, 7, 1.05 * 1190 },
		/* The optima of pairs of hosts are 6600 to 6800. */
		{ neighbourhood_search, 9, "Core:16", 12, 12, 6400 },
		{ anneal_nodes, 9, "Core:16", 12, 12, 1.15 * (48 * 100 + 9 * 24 * 2) },
		/* Annealing of ranks begins warm only, for good mappings. Exchanges end where no single one gains. */
		{ anneal_ranks, 4, "Core:16", 8, 8, 1.25 * (16 * 100 + 4 * 24 * 2) },
		{ anneal_ranks, 3, "Package:2 L3Cache:2 Core:4", 5, 7, 1.25 * 1190 },
		{ anneal_ranks, 9, "Core:16", 12, 12, 1.5 * (48 * 100 + 9 * 24 * 2) },
		{ ranks_polish, 4, "Core:16", 8, 8, 3500 },
		{ ranks_polish, 3, "Package:2 L3Cache:2 Core:4", 5, 7, 1.1 * 1190 },
		{ ranks_polish, 9, "Core:16", 12, 12, 9500 },
	};

	for (size_t i = 0; i < ROWS(rows); i++)
		for (unsigned seed = 1; seed <= 2; seed++) {
			OWNED(matrix_free) struct matrix *m = grid(rows[i].wide, rows[i].high, 1);
			OWNED(places_free) struct places *p = places_of(rows[i].hosts, rows[i].shape, NULL);
			OWNED(slots_free) struct slots *s = slots_new(p, NULL);

			check_mends(rows[i].way, m, s, seed, rows[i].most);
		}
}

/* At every level: no rank leaves its domain, and inside the domains a scattered grid becomes cheaper. */
TEST(refines_within_domains)
{
	OWNED(matrix_free) struct matrix *m = grid(9, 10, 1);
	OWNED(places_free) struct places *p = places_of(6, "Package:2 L3Cache:2 Core:4", NULL);
	OWNED(slots_free) struct slots *s = slots_new(p, NULL);

	for (unsigned t = 0; t + 1 < s->nlevels; t++) {
		OWNED(free) unsigned *slot = malloc(m->ranks * sizeof(*slot)), *was = malloc(m->ranks * sizeof(*was));
		unsigned char *taken = calloc(s->n, 1);

		for (unsigned r = 0; r < m->ranks; r++)
			slot[r] = was[r] = r - r % 16 + r % 16 * 5 % 16;
		assert_int_equal(split_insides(m, s, t, 1, slot, NULL), 0);
		for (unsigned r = 0; r < m->ranks; r++) {
			assert_int_equal(s->level[t].of[slot[r]], s->level[t].of[was[r]]);
			assert_false(taken[slot[r]]++);
		}
		assert_true(slots_cost(m, s, slot) <= slots_cost(m, s, was));
		if (t == 0)
			assert_true(slots_cost(m, s, slot) < slots_cost(m, s, was));
		free(taken);
	}
}

TESTS_MAIN(NULL, NULL)
