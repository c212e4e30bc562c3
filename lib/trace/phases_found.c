/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/phases.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "trace/block.h"

/*
 * Features of a tick are, of each event, the sum, the greatest object, and three sums in which the objects have random
 * signs: these change where work moves from one object to another. In a long trace a step is several ticks. A median
 * of five steps removes single outliers. A phase ends where the steps before and after differ in one feature by a
 * part of its greatest value, and by more than they differ among themselves; in short windows first, then in longer
 * ones. Parts that are alike are one phase.
 */
#define EVENTS_MAX 64u		/* the first of a trace */
#define STEPS_MAX 16384u
#define PART_STEPS 4u		/* at least */
#define PART_NS 1000000000u	/* the same */
#define LONGER 4u		/* windows of so many times this */
#define NOISE_MIN 0.02		/* of a feature's greatest value: less is none */
#define ALIKE 0.12		/* of the same: means of one phase differ by less */
#define EDGE_NOISE 3.0		/* standard deviations within the windows: means at an edge differ by more */
#define ALIKE_NOISE 1.0		/* the same of two parts: those of one phase differ by less */
#define NAMES_MAX 26u		/* A to Z */

enum { SUM, MOST, SIGNED, FEATURES = SIGNED + 3 };	/* of an event */

struct finding {
	unsigned n, merged, least, nfeatures;	/* steps; ticks of each but the last; steps of a part; features */
	double *x;			/* [feature * n + step]: in units of the noise, summed from step 0 on */
	double *squares;		/* the same way */
	double *alike;			/* of each feature, in units of the noise */
	struct found_part {
		unsigned begin, end;	/* steps */
		unsigned phase;
	} *parts;			/* in the order of time */
	unsigned nparts;
};

/* --- features --- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return x < y ? -1 : x > y;
}

static double median(double *x, unsigned n)
{
	qsort(x, n, sizeof(*x), by_size);
	return x[n / 2];
}

static bool sign_of(unsigned object, unsigned k)
{
	uint32_t x = (object + 1) * 0x9e3779b1u ^ (k + 1) * 0x85ebca6bu;

	x ^= x >> 15;
	x *= 0x2c1b3c6du;
	return (x ^ x >> 12) & 1;
}

/* False if a part is absent. */
static bool features_of(const struct trace_head *h, const struct trace_event *x, const struct trace_block *b,
			unsigned tick, double out[FEATURES])
{
	double seconds = (b->times[tick] - (tick ? b->times[tick - 1] : b->begin)) * 1e-9;

	memset(out, 0, FEATURES * sizeof(*out));
	for (unsigned i = 0; i < h->levels[x->level].n; i++) {
		uint64_t value = b->values[(size_t) (x->column + i) * b->n + tick];
		double rate = x->kind == TRACE_GAUGE ? value : value / seconds;

		if (value == TRACE_ABSENT)
			return false;
		out[SUM] += rate;
		out[MOST] = fmax(out[MOST], rate);
		for (unsigned k = 0; k < FEATURES - SIGNED; k++)
			out[SIGNED + k] += sign_of(i, k) ? rate : -rate;
	}
	return true;
}

/* The mean of the step's ticks; of one that has none, that of the step before. */
static void features_add(struct finding *f, unsigned event, unsigned step, unsigned *ticks, const double more[FEATURES])
{
	for (unsigned k = 0; k < FEATURES; k++) {
		double *x = f->x + ((size_t) event * FEATURES + k) * f->n + step;

		*x += (more[k] - *x) / (*ticks + 1);
	}
	++*ticks;
}

static int read_features(struct finding *f, const struct trace *t, unsigned nevents, struct err *e)
{
	unsigned ticks[EVENTS_MAX], at = 0;
	struct trace_block b = {0};
	double more[FEATURES];
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < t->nblocks; i++) {
		rc = trace_read(t, i, &b, e);
		for (unsigned k = 0; rc == 0 && k < b.n; k++, at++)
			for (unsigned x = 0; x < nevents; x++) {
				unsigned step = at / f->merged;

				if (at % f->merged == 0) {
					ticks[x] = 0;
					for (unsigned m = x * FEATURES; step && m < (x + 1) * FEATURES; m++)
						f->x[(size_t) m * f->n + step] = f->x[(size_t) m * f->n + step - 1];
				}
				if (features_of(&t->head, &t->head.events[x], &b, k, more))
					features_add(f, x, step, &ticks[x], more);
			}
	}
	trace_block_free(&b);
	return rc;
}

static void smooth(double *x, double *copy, unsigned n)
{
	memcpy(copy, x, n * sizeof(*x));
	for (unsigned i = 2; i + 2 < n; i++) {
		double near[5];

		memcpy(near, copy + i - 2, sizeof(near));
		x[i] = median(near, 5);
	}
}

static double greatest(const double *x, unsigned n)
{
	double most = 0;

	for (unsigned i = 0; i < n; i++)
		most = fmax(most, fabs(x[i]));
	return most;
}

/* To units of the noise, which is estimated from the median difference of successive steps. */
static void scale(double *x, double *squares, double *copy, unsigned n, double most, double *alike)
{
	double noise;

	for (unsigned i = 0; i + 1 < n; i++)
		copy[i] = fabs(x[i + 1] - x[i]);
	noise = fmax(median(copy, n - 1) / 0.954, NOISE_MIN * most);
	*alike = ALIKE * most / noise;
	smooth(x, copy, n);
	for (unsigned i = 0; i < n; i++) {
		x[i] /= noise;
		squares[i] = x[i] * x[i] + (i ? squares[i - 1] : 0);
	}
	for (unsigned i = 1; i < n; i++)
		x[i] += x[i - 1];
}

/* Of an event that never happens nothing is kept. Signed sums of n objects are as large as the root of n of them. */
static int scale_features(struct finding *f, const struct trace_head *h, struct err *e)
{
	double *copy = calloc(f->n, sizeof(*copy));
	unsigned kept = 0;

	if (!copy)
		return err_set(e, "out of memory");
	for (unsigned m = 0; m < f->nfeatures; m += FEATURES) {
		double *x = f->x + (size_t) m * f->n;
		double most[FEATURES] = { greatest(x, f->n), greatest(x + f->n, f->n) };
		unsigned objects = h->levels[h->events[m / FEATURES].level].n;

		for (unsigned k = SIGNED; k < FEATURES; k++)
			most[k] = objects > 1 ? most[SUM] / sqrt(objects) : 0;
		for (unsigned k = 0; k < FEATURES; k++, x += f->n)
			if (most[k] > 0 && isfinite(most[k])) {
				scale(x, f->squares + (size_t) kept * f->n, copy, f->n, most[k], &f->alike[kept]);
				memmove(f->x + (size_t) kept++ * f->n, x, f->n * sizeof(*x));
			}
	}
	f->nfeatures = kept;
	free(copy);
	return 0;
}

/* --- parts --- */

/* Of steps begin to end - 1. */
static double mean(const double *sums, unsigned begin, unsigned end)
{
	return (sums[end - 1] - (begin ? sums[begin - 1] : 0)) / (end - begin);
}

static double variance(const struct finding *f, unsigned feature, unsigned begin, unsigned end)
{
	double m = mean(f->x + (size_t) feature * f->n, begin, end);

	return fmax(1, mean(f->squares + (size_t) feature * f->n, begin, end) - m * m);
}

/* How much two parts differ, in what those of one phase may differ by: in the feature that has most of it. */
static double dissimilarity(const struct finding *f, const struct found_part *a, const struct found_part *b,
			    double noises)
{
	double most = 0;

	for (unsigned m = 0; m < f->nfeatures; m++) {
		const double *x = f->x + (size_t) m * f->n;
		double by = fabs(mean(x, a->begin, a->end) - mean(x, b->begin, b->end)), noise;

		if (by <= most * f->alike[m])
			continue;	/* whatever the noise is */
		noise = sqrt((variance(f, m, a->begin, a->end) + variance(f, m, b->begin, b->end)) / 2);
		most = fmax(most, by / fmax(f->alike[m], noises * noise));
	}
	return most;
}

/* Edges whose windows of w steps have none yet, the clearest first. scores: n + 1 of them. */
static void mark_edges(const struct finding *f, bool *is_edge, double *scores, unsigned w)
{
	unsigned since = 0;

	for (unsigned i = 0; i <= f->n; i++) {
		scores[i] = 0;
		if (is_edge[i])
			since = i;
		else if (i >= since + 2 * w)	/* the window around i - w */
			scores[i - w] = dissimilarity(f, &(struct found_part){ i - 2 * w, i - w, 0 },
						   &(struct found_part){ i - w, i, 0 }, EDGE_NOISE);
	}
	for (;;) {
		unsigned best = 0;

		for (unsigned i = 1; i < f->n; i++)
			if (scores[i] > scores[best])
				best = i;
		if (scores[best] <= 1)
			return;
		is_edge[best] = true;
		for (unsigned i = best - w + 1; i < best + w; i++)
			scores[i] = 0;
	}
}

static int cut_parts(struct finding *f, struct err *e)
{
	bool *is_edge = calloc(f->n + 1, sizeof(*is_edge));
	double *scores = calloc(f->n + 1, sizeof(*scores));
	int rc = is_edge && scores ? 0 : err_set(e, "out of memory");

	for (unsigned w = f->least; rc == 0 && w <= f->n / 2 && w <= f->least * LONGER * LONGER; w *= LONGER)
		mark_edges(f, is_edge, scores, w);
	for (unsigned i = 0; rc == 0 && i < f->n; i++)
		if (i == 0 || is_edge[i]) {
			if (!array_add(f->parts, f->nparts))
				rc = err_set(e, "out of memory");
			else
				f->parts[f->nparts - 1] = (struct found_part){ i, f->n, 0 };
			if (rc == 0 && i)
				f->parts[f->nparts - 2].end = i;
		}
	free(is_edge);
	free(scores);
	return rc;
}

/* Neighbours that are alike are one part. */
static void join_parts(struct finding *f, double slack)
{
	unsigned n = 0;

	for (unsigned i = 1; i < f->nparts; i++)
		if (dissimilarity(f, &f->parts[n], &f->parts[i], ALIKE_NOISE) <= slack)
			f->parts[n].end = f->parts[i].end;
		else
			f->parts[++n] = f->parts[i];
	f->nparts = n + 1;
}

/* Each part is of the phase of the first one that is like it. Returns their number. */
static unsigned name_parts(struct finding *f, double slack)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->nparts; i++) {
		unsigned k = 0;

		while (k < i && dissimilarity(f, &f->parts[i], &f->parts[k], ALIKE_NOISE) > slack)
			k++;
		f->parts[i].phase = k < i ? f->parts[k].phase : n++;
	}
	return n;
}

/* --- */

static int fill(struct trace_phases *p, const struct finding *f, const struct trace_interval *ticks, uint64_t n,
		struct err *e)
{
	for (unsigned i = 0; i < f->nparts; i++) {
		const struct found_part *part = &f->parts[i];
		uint64_t last = (uint64_t) part->end * f->merged < n ? (uint64_t) part->end * f->merged : n;
		uint64_t begin = ticks[(uint64_t) part->begin * f->merged].begin, end = ticks[last - 1].end;
		struct trace_phase *x = &p->list[part->phase];

		if (array_reserve(p->spans, p->nspans, 1))
			return err_set(e, "out of memory");
		p->spans[p->nspans++] = (struct phase_span){ part->phase, begin, end };
		snprintf(x->name, sizeof(x->name), "%c", 'A' + part->phase);
		x->processes = 1;
		x->times++;
		x->seconds += (end - begin) * 1e-9;
		x->least = x->greatest = x->seconds;
		if (part->phase == p->n)
			p->n++;
	}
	p->processes = 1;
	return 0;
}

static int find(struct finding *f, const struct trace *t, struct err *e)
{
	unsigned nevents = t->head.nevents < EVENTS_MAX ? t->head.nevents : EVENTS_MAX;
	double slack = 1;

	f->merged = (t->ticks + STEPS_MAX - 1) / STEPS_MAX;
	f->n = (t->ticks + f->merged - 1) / f->merged;
	f->least = fmax(PART_STEPS, ceil((double) PART_NS * f->n / (t->end + 1)));
	f->nfeatures = nevents * FEATURES;
	f->squares = calloc((size_t) f->n * f->nfeatures, sizeof(*f->squares));
	f->x = calloc((size_t) f->n * f->nfeatures, sizeof(*f->x));
	f->alike = calloc(f->nfeatures, sizeof(*f->alike));
	if (!f->x || !f->squares || !f->alike)
		return err_set(e, "out of memory");
	if (read_features(f, t, nevents, e) || scale_features(f, &t->head, e) || cut_parts(f, e))
		return -1;
	for (join_parts(f, slack); name_parts(f, slack) > NAMES_MAX; join_parts(f, slack))
		slack *= 1.25;
	return 0;
}

struct trace_phases *trace_phases_found(const struct trace *t, struct err *e)
{
	struct trace_phases *p = calloc(1, sizeof(*p));
	struct trace_interval *ticks = NULL;
	struct finding f = {0};
	int rc = -1;

	if (!p || !(p->list = calloc(TRACE_PHASES_MAX, sizeof(*p->list))))
		err_set(e, "out of memory");
	else if (t->ticks < 2 * PART_STEPS)
		err_set(e, "%llu ticks: too few to find phases, at least %u are needed", (unsigned long long) t->ticks,
			2 * PART_STEPS);
	else if ((ticks = trace_intervals(t, e)))
		rc = find(&f, t, e) || fill(p, &f, ticks, t->ticks, e) ? -1 : 0;
	free(f.x);
	free(f.squares);
	free(f.alike);
	free(f.parts);
	free(ticks);
	if (rc == 0)
		return p;
	trace_phases_free(p);
	return NULL;
}
