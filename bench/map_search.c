/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
/*
 * map_search FOLDER RANKS PLACES PAIRS WARMTH SEED MOVES: a long search for one problem, to know how far others are
 * from the best. It shares nothing with lib/map: no tree, no strata, a table of all distances, and moves by nothing but
 * that. FOLDER has table (PLACES x PLACES doubles), pairs ("a b weight" a line) and start (the place of each rank, a
 * line each). Writes the cheapest mapping it met. Simulated annealing, MOVES tried; it begins WARMTH times as warm as a
 * rank's mean cost.
 */
#include <err.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLDEST 1e-4
#define NONE (~0u)

struct arc {
	unsigned to;
	double weight;
};

static unsigned ranks, places;
static size_t npairs;
static double *table;
static unsigned *near;		/* of each place, all others from the nearest to the farthest */
static size_t *row;
static struct arc *arcs;
static unsigned *at, *on, *best;
static uint64_t state;

static void *room(size_t n, size_t each)
{
	void *p = calloc(n ? n : 1, each);

	if (!p)
		err(1, "%zu x %zu bytes", n, each);
	return p;
}

/* Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8, 2003, with Vigna's factor. */
static uint64_t draw(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * UINT64_C(2685821657736338717);
}

static double draw_unit(void)
{
	return (draw() >> 11) * 0x1p-53;
}

static unsigned draw_below(unsigned below)
{
	return (draw() >> 32) * below >> 32;
}

static FILE *file_open(const char *folder, const char *name)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (!(f = fopen(path, "r")))
		err(1, "%s", path);
	return f;
}

static void table_read(const char *folder)
{
	FILE *f = file_open(folder, "table");
	size_t n = (size_t) places * places;

	table = room(n, sizeof(*table));
	if (fread(table, sizeof(*table), n, f) != n)
		errx(1, "table: fewer than %u x %u distances", places, places);
	fclose(f);
}

static void pairs_read(const char *folder)
{
	FILE *f = file_open(folder, "pairs");
	unsigned *a = room(npairs, sizeof(*a)), *b = room(npairs, sizeof(*b));
	double *weight = room(npairs, sizeof(*weight));
	size_t *next;

	row = room(ranks + 1, sizeof(*row));
	arcs = room(2 * npairs, sizeof(*arcs));
	for (size_t i = 0; i < npairs; i++) {
		if (fscanf(f, "%u %u %lf", &a[i], &b[i], &weight[i]) != 3 || a[i] >= ranks || b[i] >= ranks)
			errx(1, "pairs: no pair %zu", i);
		row[a[i] + 1]++;
		row[b[i] + 1]++;
	}
	for (unsigned r = 0; r < ranks; r++)
		row[r + 1] += row[r];
	next = room(ranks, sizeof(*next));
	memcpy(next, row, ranks * sizeof(*next));
	for (size_t i = 0; i < npairs; i++) {
		arcs[next[a[i]]++] = (struct arc){ b[i], weight[i] };
		arcs[next[b[i]]++] = (struct arc){ a[i], weight[i] };
	}
	fclose(f);
	free(a);
	free(b);
	free(weight);
	free(next);
}

static void start_read(const char *folder)
{
	FILE *f = file_open(folder, "start");

	at = room(ranks, sizeof(*at));
	on = room(places, sizeof(*on));
	best = room(ranks, sizeof(*best));
	memset(on, 0xff, places * sizeof(*on));
	for (unsigned r = 0; r < ranks; r++) {
		if (fscanf(f, "%u", &at[r]) != 1 || at[r] >= places || on[at[r]] != NONE)
			errx(1, "start: no place for rank %u", r);
		on[at[r]] = r;
	}
	fclose(f);
}

static const double *from;

static int by_distance(const void *a, const void *b)
{
	unsigned x = *(const unsigned *) a, y = *(const unsigned *) b;

	if (from[x] != from[y])
		return from[x] < from[y] ? -1 : 1;
	return (x > y) - (x < y);
}

static void near_make(void)
{
	near = room((size_t) places * places, sizeof(*near));
	for (unsigned p = 0; p < places; p++) {
		unsigned *list = near + (size_t) p * places;

		for (unsigned i = 0; i < places; i++)
			list[i] = (p + i) % places;
		from = table + (size_t) p * places;
		qsort(list + 1, places - 1, sizeof(*list), by_distance);
	}
}

/* What rank r pays on place p, but for what it exchanges with rank `but`. */
static double rank_cost(unsigned r, unsigned p, unsigned but)
{
	const double *d = table + (size_t) p * places;
	double sum = 0;

	for (size_t i = row[r]; i < row[r + 1]; i++)
		if (arcs[i].to != but)
			sum += arcs[i].weight * d[at[arcs[i].to]];
	return sum;
}

static double total_cost(void)
{
	double sum = 0;

	for (unsigned r = 0; r < ranks; r++)
		sum += rank_cost(r, at[r], NONE);
	return sum / 2;
}

/* A place near to that of a partner of r: each distance from it, in places passed, as likely as twice that. */
static unsigned place_draw(unsigned r)
{
	size_t degree = row[r + 1] - row[r];
	unsigned partner = degree ? arcs[row[r] + draw_below(degree)].to : draw_below(ranks);
	unsigned rank = (unsigned) exp(draw_unit() * log(places));

	return near[(size_t) at[partner] * places + (rank < places ? rank : places - 1)];
}

static void move(unsigned r, unsigned to)
{
	unsigned other = on[to], was = at[r];

	on[was] = other;
	if (other != NONE)
		at[other] = was;
	at[r] = to;
	on[to] = r;
}

static double move_gain(unsigned r, unsigned to)
{
	unsigned other = on[to], was = at[r];
	double gain = rank_cost(r, was, other) - rank_cost(r, to, other);

	if (other != NONE)
		gain += rank_cost(other, to, r) - rank_cost(other, was, r);
	return gain;
}

static void search(double warmth, unsigned long long moves)
{
	double cost = total_cost(), least = cost, warm = warmth * 2 * cost / ranks, cool = pow(COLDEST, 1.0 / moves);

	memcpy(best, at, ranks * sizeof(*best));
	for (unsigned long long i = 0; i < moves; i++, warm *= cool) {
		unsigned r = draw_below(ranks), to = place_draw(r);
		double gain = to == at[r] ? 0 : move_gain(r, to);

		if (to == at[r] || (gain < 0 && draw_unit() >= exp(gain / warm)))
			continue;
		move(r, to);
		cost -= gain;
		if (cost < least * (1 - 1e-12)) {
			least = cost;
			memcpy(best, at, ranks * sizeof(*best));
		}
	}
}

int main(int argc, char **argv)
{
	if (argc != 8)
		errx(1, "FOLDER RANKS PLACES PAIRS WARMTH SEED MOVES");
	ranks = strtoul(argv[2], NULL, 10);
	places = strtoul(argv[3], NULL, 10);
	npairs = strtoul(argv[4], NULL, 10);
	state = strtoull(argv[6], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	table_read(argv[1]);
	pairs_read(argv[1]);
	start_read(argv[1]);
	near_make();
	search(strtod(argv[5], NULL), strtoull(argv[7], NULL, 10));
	for (unsigned r = 0; r < ranks; r++)
		printf("%u\n", best[r]);
	return 0;
}
