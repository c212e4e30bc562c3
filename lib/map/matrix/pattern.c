/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "pattern.h"

#include <math.h>

/* --- the matrix of a pattern --- */

struct partner {
	unsigned to;
	unsigned short term;	/* of pattern.weight */
	unsigned short around;	/* bit by side: from the last to the first, or back */
};

/* A pattern, and where each rank is: cells are counted row by row. */
struct grid {
	const struct pattern *p;
	unsigned *cell, *rank;		/* cell[rank], rank[cell] */
	struct partner *partner;	/* of grid_partners */
};

static unsigned binary_parent(unsigned rank)
{
	return (rank - 1) / 2;
}

static unsigned binomial_parent(unsigned rank)
{
	return rank & (rank - 1);
}

static unsigned (*const parents[])(unsigned rank) = {
	[PATTERN_BINARY] = binary_parent, [PATTERN_BINOMIAL] = binomial_parent,
};

/* The coordinates of a rank: its digits, of which each order has its own. */
static void place_rank(const struct pattern *p, unsigned rank, unsigned at[PATTERN_SIDES])
{
	unsigned size[PATTERN_SIDES] = { 1, 1, 1, 1 };

	memset(at, 0, PATTERN_SIDES * sizeof(*at));
	for (unsigned round = 0; rank; round++)
		for (unsigned d = 0; d < p->sides; d++) {
			unsigned base = p->order == PATTERN_MORTON ? 2 : p->order != PATTERN_BLOCKS ? p->side[d] :
				round ? p->side[d] / p->block[d] : p->block[d];

			if (size[d] == p->side[d])
				continue;
			at[d] += rank % base * size[d];
			size[d] *= base;
			rank /= base;
		}
}

static void grid_close(struct grid *g)
{
	free(g->cell);
	free(g->rank);
	free(g->partner);
}

static int grid_open(struct grid *g, const struct pattern *p)
{
	*g = (struct grid){
		p, malloc(p->ranks * sizeof(*g->cell)), malloc(p->ranks * sizeof(*g->rank)),
		malloc((p->ranks + PATTERN_STEPS) * sizeof(*g->partner)),
	};
	if (!g->cell || !g->rank || !g->partner) {
		grid_close(g);
		return -1;
	}
	for (unsigned r = 0; r < p->ranks; r++) {
		unsigned at[PATTERN_SIDES], cell = 0;

		place_rank(p, r, at);
		for (unsigned d = p->sides; d--;)
			cell = cell * p->side[d] + at[d];
		g->cell[r] = cell;
		g->rank[cell] = r;
	}
	return 0;
}

/* One step; false: outside the grid, or the same cell. */
static bool grid_step(const struct pattern *p, unsigned cell, unsigned step, struct partner *out)
{
	unsigned stride = 1, to = cell;

	*out = (struct partner){ .term = step };
	for (unsigned d = 0; d < p->sides; d++, step /= 3) {
		unsigned side = p->side[d], at = cell / stride % side, next = at + step % 3 - 1;

		if (next >= side) {
			if (!p->periodic[d])
				return false;
			out->around |= 1 << d;
			next = next == side ? 0 : side - 1;
		}
		to += (next - at) * stride;
		stride *= side;
	}
	out->to = to;
	return to != cell;
}

static unsigned power(unsigned base, unsigned n)
{
	return n ? base * power(base, n - 1) : 1;
}

/* Those that exchange with a rank; one that is reached in two ways is there twice. */
static unsigned grid_partners(const struct grid *g, unsigned rank)
{
	const struct pattern *p = g->p;
	unsigned n = 0, stride = 1, cell = g->cell[rank];

	switch (p->kind) {
	case PATTERN_STENCIL:
		for (unsigned step = 0; step < power(3, p->sides); step++)
			if (p->weight[step] > 0 && grid_step(p, cell, step, &g->partner[n]))
				n++;
		break;
	case PATTERN_LINES:
		for (unsigned d = 0; d < p->sides; d++) {
			unsigned at = cell / stride % p->side[d];

			for (unsigned to = 0; to < p->side[d]; to++)
				if (to != at)
					g->partner[n++] = (struct partner){ cell + (to - at) * stride, d, 0 };
			stride *= p->side[d];
		}
		break;
	default:
		/* Children are the ranks after it whose parent it is: of a binomial tree at powers of two. */
		if (rank)
			g->partner[n++].to = parents[p->kind](rank);
		for (unsigned i = 1; i < p->ranks; i *= 2) {
			unsigned to = p->kind == PATTERN_BINOMIAL ? rank + i : 2 * rank + i;

			if (to < p->ranks && (p->kind == PATTERN_BINOMIAL || i < 4) && parents[p->kind](to) == rank)
				g->partner[n++].to = to;
		}
		for (unsigned i = 0; i < n; i++)
			g->partner[i].term = 0;
		return n;
	}
	for (unsigned i = 0; i < n; i++)
		g->partner[i].to = g->rank[g->partner[i].to];
	return n;
}

/* Rows are in order, since ranks are: each is added to the rows of its partners. */
static int fill(const struct grid *g, struct matrix *m, double *sum)
{
	const struct pattern *p = g->p;
	size_t *end = m->row + 1;

	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned r = 0; r < p->ranks; r++) {
			unsigned n = grid_partners(g, r);

			for (unsigned i = 0; i < n; i++)
				sum[g->partner[i].to] += p->weight[g->partner[i].term];
			for (unsigned i = 0; i < n; i++) {
				unsigned to = g->partner[i].to;

				if (sum[to] > 0 && pass) {
					m->adj[end[to]] = r;
					m->weight[end[to]] = sum[to];
				}
				end[to] += sum[to] > 0;
				sum[to] = 0;
			}
		}
		if (pass)
			break;
		/* From how many to where each begins; filling moves it to where the next begins. */
		for (size_t r = 0, before = 0, own; r < p->ranks; r++, before += own) {
			own = end[r];
			end[r] = before;
			if (r + 1 == p->ranks) {
				m->adj = malloc((before + own + 1) * sizeof(*m->adj));
				m->weight = malloc((before + own + 1) * sizeof(*m->weight));
			}
		}
		if (!m->adj || !m->weight)
			return -1;
	}
	return 0;
}

struct matrix *pattern_matrix(const struct pattern *p)
{
	struct matrix *m = calloc(1, sizeof(*m));
	double *sum = calloc(p->ranks, sizeof(*sum));
	struct grid g;
	int rc = -1;

	if (m && sum && (m->row = calloc(p->ranks + 1, sizeof(*m->row))) && !grid_open(&g, p)) {
		m->ranks = p->ranks;
		rc = fill(&g, m, sum);
		grid_close(&g);
	}
	free(sum);
	if (!rc)
		return m;
	matrix_free(m);
	return NULL;
}

/* --- recognised --- */

/* Bounds of the search: ranks that are looked at before a grid is tried, and visits of pairs in all. */
#define SAMPLES 8u
#define WORK 12000000.0
/* Of fewer ranks too little is seen. */
#define LEAST_RANKS 8u
/* A pattern that has more sides, or is numbered less plainly, must be nearer by so much. */
#define NEARER 0.001

struct search {
	const struct matrix *m;
	double work;			/* left */
	double *bytes;			/* of a row, by rank; zero between uses */
	unsigned *ways;			/* in which a rank is reached; the same */
	struct pattern best;
	bool no_memory;
};

/* Is what the sampled ranks exchange near enough in this grid to be worth a closer look? */
static bool is_likely(struct search *s, const struct pattern *p)
{
	double all = 0, near = 0;
	size_t pairs = 0, lines = 0;

	for (unsigned d = 0; d < p->sides; d++)
		lines += SAMPLES * (p->side[d] - 1);
	for (unsigned i = 0; i < SAMPLES; i++) {
		unsigned r = (uint64_t) i * (p->ranks - 1) / (SAMPLES - 1), here[PATTERN_SIDES], there[PATTERN_SIDES];

		place_rank(p, r, here);
		for (size_t j = s->m->row[r]; j < s->m->row[r + 1]; j++) {
			unsigned moved = 0, far = 0;

			place_rank(p, s->m->adj[j], there);
			for (unsigned d = 0; d < p->sides; d++) {
				unsigned by = here[d] < there[d] ? there[d] - here[d] : here[d] - there[d];

				moved += by > 0;
				far += by > 1 && by != p->side[d] - 1;
			}
			all += s->m->weight[j];
			pairs += moved == 1;
			near += p->kind == PATTERN_LINES ? moved == 1 ? s->m->weight[j] : 0 :
				far ? 0 : s->m->weight[j];
		}
		s->work -= 4.0 * (s->m->row[r + 1] - s->m->row[r]);
	}
	return near >= (1 - 3 * PATTERN_DISTANCE) * all && (p->kind != PATTERN_LINES || 2 * pairs >= lines);
}

/* The partners of a rank, with the bytes of its row and the ways to each at hand; row_end clears both. */
static unsigned row_begin(struct search *s, const struct grid *g, unsigned rank)
{
	const struct matrix *m = s->m;
	unsigned n = grid_partners(g, rank);

	for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++)
		s->bytes[m->adj[i]] = m->weight[i];
	for (unsigned i = 0; i < n; i++)
		s->ways[g->partner[i].to]++;
	s->work -= n + m->row[rank + 1] - m->row[rank];
	return n;
}

static void row_end(struct search *s, const struct grid *g, unsigned rank, unsigned n)
{
	for (size_t i = s->m->row[rank]; i < s->m->row[rank + 1]; i++)
		s->bytes[s->m->adj[i]] = 0;
	for (unsigned i = 0; i < n; i++)
		s->ways[g->partner[i].to] = 0;
}

/*
 * A side is periodic if steps around it carry at least half of what the same steps carry within. A side of 2 does not
 * show it: it is as the others are. False if they differ.
 */
static bool find_periodic(struct search *s, struct pattern *p, const struct grid *g)
{
	double within[PATTERN_SIDES] = {0}, around[PATTERN_SIDES] = {0};
	unsigned shown[2] = {0}, hidden = 0;

	for (unsigned r = 0; r < p->ranks && s->work > 0; r++) {
		unsigned n = row_begin(s, g, r);

		for (unsigned i = 0; i < n; i++)
			for (unsigned d = 0, step = g->partner[i].term; d < p->sides; d++, step /= 3) {
				double bytes = s->bytes[g->partner[i].to];

				if (step % 3 != 1 && !(g->partner[i].around & ~(1 << d)))
					*(g->partner[i].around ? &around[d] : &within[d]) += bytes;
			}
		row_end(s, g, r, n);
	}
	for (unsigned d = 0; d < p->sides; d++) {
		p->periodic[d] = around[d] * (p->side[d] - 1) >= within[d] / 2 && around[d] > 0;
		*(p->side[d] > 2 ? &shown[p->periodic[d]] : &hidden) += 1;
	}
	for (unsigned d = 0; d < p->sides; d++)
		if (p->side[d] == 2)
			p->periodic[d] = shown[1];
	return !hidden || !shown[0] || !shown[1];
}

/* The mean of what the pairs of each term exchange; nothing, where fewer than half of them do. */
static void find_weights(struct search *s, struct pattern *p, const struct grid *g)
{
	double sum[PATTERN_STEPS] = {0};
	unsigned pairs[PATTERN_STEPS] = {0}, silent[PATTERN_STEPS] = {0};

	for (unsigned r = 0; r < p->ranks && s->work > 0; r++) {
		unsigned n = row_begin(s, g, r);

		for (unsigned i = 0; i < n; i++) {
			unsigned to = g->partner[i].to, term = g->partner[i].term;

			sum[term] += s->bytes[to] / s->ways[to];
			pairs[term]++;
			silent[term] += !s->bytes[to];
		}
		row_end(s, g, r, n);
	}
	/* As floats, whose sums do not depend on the order; and the same both ways. */
	for (unsigned t = 0; t < PATTERN_STEPS; t++)
		p->weight[t] = 2 * silent[t] < pairs[t] ? (float) (sum[t] / pairs[t]) : 0;
	for (unsigned t = 0; p->kind == PATTERN_STENCIL && t < power(3, p->sides) / 2; t++)
		p->weight[power(3, p->sides) - 1 - t] = p->weight[t];
}

/*
 * Does each side matter by itself, not by diagonal steps alone, and is one long enough to show what the pattern does
 * along it?
 */
static bool is_shown(const struct pattern *p)
{
	bool shown = p->sides == 1 && p->kind != PATTERN_STENCIL;

	for (unsigned d = 0; d < p->sides; d++) {
		unsigned ahead = power(3, p->sides) / 2 + power(3, d);

		shown |= p->side[d] > 3 || (p->side[d] == 3 && p->kind == PATTERN_STENCIL && !p->periodic[d]);
		if (p->weight[p->kind == PATTERN_STENCIL ? ahead : d] == 0)
			return false;
	}
	return shown;
}

static void try(struct search *s, struct pattern p)
{
	struct matrix *made = NULL;
	struct grid g;

	if (s->work <= 0 || (p.kind <= PATTERN_LINES && !is_likely(s, &p)))
		return;
	s->work -= 4.0 * p.ranks;
	for (unsigned t = 0; t < PATTERN_STEPS; t++)
		p.weight[t] = 1;
	for (unsigned d = 0; d < p.sides; d++)
		p.periodic[d] = p.kind == PATTERN_STENCIL;
	if (grid_open(&g, &p)) {
		s->no_memory = true;
		return;
	}
	if (p.kind != PATTERN_STENCIL || find_periodic(s, &p, &g)) {
		find_weights(s, &p, &g);
		if (s->work > 0 && is_shown(&p) && (made = pattern_matrix(&p))) {
			p.distance = matrix_distance(s->m, made);
			s->work -= s->m->row[p.ranks] + made->row[p.ranks];
			if (p.distance < s->best.distance - NEARER)
				s->best = p;
			matrix_free(made);
		}
	}
	grid_close(&g);
}

/* --- ranks in no order --- */

/* So that the recursion stays within the stack; and how many ranks are tried in a cell. */
#define SHUFFLED_RANKS 4096u
#define CHOICES 8u
/* Pairs that exchange less than this share of the heaviest are passed over, and steps may differ by so much. */
#define LIGHT 0.05
#define ALIKE 0.3

/* Cells that are filled in order, each by a rank that exchanges with those before it as steps of the grid do. */
struct filling {
	struct search *s;
	struct grid grid;		/* of ranks row by row; a rank is in cell[rank], ranks: in none yet */
	unsigned *rank_in, *cell_of;
	double least;			/* weight */
	double weight[PATTERN_STEPS];	/* by term, the lower of the two ways; as the first such pair has it */
	unsigned since[PATTERN_STEPS];	/* the cell of that pair, or ranks */
};

static bool fill_fits(struct filling *f, unsigned cell, unsigned rank)
{
	const struct pattern *p = f->grid.p;
	const struct matrix *m = f->s->m;
	unsigned n = grid_partners(&f->grid, cell), placed = 0, last = power(3, p->sides) - 1;
	bool fits = true;

	for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++)
		if (m->weight[i] >= f->least) {
			f->s->bytes[m->adj[i]] = m->weight[i];
			placed += f->cell_of[m->adj[i]] < cell;
		}
	for (unsigned i = 0; i < n && fits; i++) {
		unsigned to = f->grid.partner[i].to, term = f->grid.partner[i].term;
		double bytes;

		if (to >= cell)
			continue;
		if (p->kind == PATTERN_STENCIL && term > last / 2)
			term = last - term;
		bytes = f->s->bytes[f->rank_in[to]];
		if (f->since[term] == p->ranks) {
			f->since[term] = cell;
			f->weight[term] = bytes;
		}
		fits = fabs(bytes - f->weight[term]) <= ALIKE * f->weight[term];
		placed -= bytes > 0;
	}
	for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++)
		f->s->bytes[m->adj[i]] = 0;
	f->s->work -= n + m->row[rank + 1] - m->row[rank];
	return fits && !placed;
}

static void fill_forget(struct filling *f, unsigned cell)
{
	for (unsigned t = 0; t < PATTERN_STEPS; t++)
		if (f->since[t] == cell)
			f->since[t] = f->grid.p->ranks;
}

/* First those at the rim, which exchange least; then straight on: few partners in common with the rank before last. */
static double fill_preference(struct filling *f, unsigned rank, unsigned before)
{
	const struct matrix *m = f->s->m;
	double all = 0;
	unsigned common = 0;

	for (size_t i = m->row[rank], j = m->row[before]; i < m->row[rank + 1]; i++) {
		while (j < m->row[before + 1] && m->adj[j] < m->adj[i])
			j++;
		common += j < m->row[before + 1] && m->adj[j] == m->adj[i];
		all += m->weight[i];
	}
	f->s->work -= m->row[rank + 1] - m->row[rank];
	return floor(all / f->least) + (double) common / (m->ranks + 1);
}

static bool fill_from(struct filling *f, unsigned cell)
{
	const struct pattern *p = f->grid.p;
	const struct matrix *m = f->s->m;
	unsigned stride = 1, d = 0, n = 0, beside, choice[CHOICES + 1];
	double preference[CHOICES + 1];

	if (cell == p->ranks)
		return true;
	for (; cell / stride % p->side[d] == 0; d++)
		stride *= p->side[d];
	beside = f->rank_in[cell - stride];
	for (size_t i = m->row[beside]; i < m->row[beside + 1] && f->s->work > 0; i++) {
		unsigned rank = m->adj[i], at = n;
		double own;
		bool fits;

		if (f->cell_of[rank] != p->ranks || m->weight[i] < f->least)
			continue;
		fits = fill_fits(f, cell, rank);
		fill_forget(f, cell);
		if (!fits)
			continue;
		own = fill_preference(f, rank, f->rank_in[cell - (cell > 1 ? 2 : 1)]);
		for (; at && own < preference[at - 1]; at--) {
			choice[at] = choice[at - 1];
			preference[at] = preference[at - 1];
		}
		choice[at] = rank;
		preference[at] = own;
		n += n < CHOICES;
	}
	for (unsigned i = 0; i < n && f->s->work > 0; i++) {
		f->rank_in[cell] = choice[i];
		f->cell_of[choice[i]] = cell;
		if (fill_fits(f, cell, choice[i]) && fill_from(f, cell + 1))
			return true;
		f->cell_of[choice[i]] = p->ranks;
		fill_forget(f, cell);
	}
	return false;
}

/* At the cost of a part of the work that is left, so that other grids have their share. */
static void fill_grid(struct search *s, const struct pattern *p)
{
	struct search ordered = *s;
	struct filling f = { .s = &ordered };
	struct matrix *m = NULL;
	unsigned first = 0;
	double most = 0, least = INFINITY;

	s->work -= 8.0 * p->ranks + s->m->row[p->ranks];
	ordered.work = s->work / 16;
	s->work -= ordered.work;

	for (unsigned r = 0; r < p->ranks; r++) {
		double all = 0;

		for (size_t i = s->m->row[r]; i < s->m->row[r + 1]; i++) {
			all += s->m->weight[i];
			most = fmax(most, s->m->weight[i]);
		}
		if (all < least) {
			least = all;
			first = r;
		}
	}
	f.least = LIGHT * most;
	if (grid_open(&f.grid, p)) {
		s->no_memory = true;
		return;
	}
	f.rank_in = f.grid.rank;
	f.cell_of = malloc(p->ranks * sizeof(*f.cell_of));
	f.grid.rank = malloc(p->ranks * sizeof(*f.grid.rank));
	for (unsigned r = 0; r < p->ranks && f.cell_of && f.grid.rank; r++) {
		f.grid.rank[r] = r;
		f.cell_of[r] = p->ranks;
	}
	for (unsigned t = 0; t < PATTERN_STEPS; t++)
		f.since[t] = p->ranks;
	if (f.cell_of && f.grid.rank) {
		f.rank_in[0] = first;
		f.cell_of[first] = 0;
		if (fill_from(&f, 1) && (m = matrix_contract(s->m, f.cell_of, p->ranks))) {
			ordered.m = m;
			try(&ordered, *p);
			s->best = ordered.best;
		}
	}
	s->work += ordered.work;
	matrix_free(m);
	free(f.rank_in);
	free(f.cell_of);
	grid_close(&f.grid);
}

static void try_shuffled(struct search *s, struct pattern p)
{
	for (unsigned t = 0; t < PATTERN_STEPS; t++)
		p.weight[t] = 1;
	for (unsigned periodic = 0; periodic <= (p.kind == PATTERN_STENCIL) && s->work > 0; periodic++) {
		for (unsigned d = 0; d < p.sides; d++)
			p.periodic[d] = periodic && p.side[d] > 2;
		fill_grid(s, &p);
	}
}

/* --- the search --- */

static void try_grid(struct search *s, struct pattern *p)
{
	for (p->kind = PATTERN_STENCIL; p->kind <= PATTERN_LINES; p->kind++)
		(p->order == PATTERN_NO_ORDER ? try_shuffled : try)(s, *p);
}

/* Blocks of each size but those of one rank and of all. */
static void try_blocks(struct search *s, struct pattern *p, unsigned d, unsigned size)
{
	if (d == p->sides && size > 1 && size < p->ranks)
		try_grid(s, p);
	for (unsigned b = 1; d < p->sides && b <= p->side[d]; b++)
		if (p->side[d] % b == 0) {
			p->block[d] = b;
			try_blocks(s, p, d + 1, size * b);
		}
}

/* Each grid of that many sides, in each order of them. */
static void try_sides(struct search *s, struct pattern *p, unsigned d, unsigned left)
{
	unsigned bits = 0;
	bool sorted = true;

	if (d + 1 < p->sides) {
		for (p->side[d] = 2; p->side[d] <= left / 2; p->side[d]++)
			if (left % p->side[d] == 0) {
				unsigned side = p->side[d];

				try_sides(s, p, d + 1, left / side);
				p->side[d] = side;
			}
		return;
	}
	p->side[d] = left;
	for (unsigned i = 0; i < p->sides; i++) {
		bits |= p->side[i] & (p->side[i] - 1);
		sorted &= !i || p->side[i - 1] >= p->side[i];
	}
	if (p->order == PATTERN_NO_ORDER && (!sorted || p->ranks > SHUFFLED_RANKS))
		return;
	if (p->order == PATTERN_BLOCKS)
		try_blocks(s, p, 0, 1);
	else if (p->order != PATTERN_MORTON || !bits)
		try_grid(s, p);
}

int pattern_recognise(const struct matrix *m, struct pattern *out, struct err *e)
{
	struct search s = {
		.m = m, .work = WORK, .bytes = calloc(m->ranks, sizeof(*s.bytes)),
		.ways = calloc(m->ranks, sizeof(*s.ways)), .best.distance = PATTERN_DISTANCE + NEARER,
	};
	struct pattern p = { .ranks = m->ranks, .sides = 1, .side = { m->ranks } };

	s.no_memory = !s.bytes || !s.ways;
	if (m->ranks >= LEAST_RANKS && m->row[m->ranks] && !s.no_memory) {
		for (p.kind = PATTERN_BINARY; p.kind <= PATTERN_BINOMIAL; p.kind++)
			try(&s, p);
		for (p.order = PATTERN_ROWS; p.order <= PATTERN_NO_ORDER && !s.best.ranks; p.order++)
			for (p.sides = 1; p.sides <= PATTERN_SIDES; p.sides++)
				try_sides(&s, &p, 0, m->ranks);
	}
	free(s.bytes);
	free(s.ways);
	if (s.no_memory)
		return err_set(e, "out of memory");
	if (!s.best.ranks)
		return err_set(e, "no pattern that is known for other numbers of ranks");
	*out = s.best;
	return 0;
}

/* --- for other numbers of ranks --- */

/* Sides of at most `most`, the longest first and as short as can be. */
static bool balance(unsigned ranks, unsigned sides, unsigned most, unsigned *side)
{
	if (sides == 1) {
		*side = ranks;
		return ranks <= most;
	}
	for (*side = 1; *side <= most && *side <= ranks; ++*side)
		if (ranks % *side == 0 && pow(*side, sides) >= ranks &&
		    balance(ranks / *side, sides - 1, *side, side + 1))
			return true;
	return false;
}

static int by_length(const void *a, const void *b)
{
	unsigned x = *(const unsigned *) a, y = *(const unsigned *) b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* MPI_Dims_create of MPICH, and of Open MPI, which multiplies the shortest side by each prime factor in turn. */
static void create_dims(unsigned ranks, unsigned sides, bool greedy, unsigned *side)
{
	if (!greedy) {
		balance(ranks, sides, ranks, side);
		return;
	}
	for (unsigned d = 0; d < sides; d++)
		side[d] = 1;
	for (unsigned factor = ranks; factor > 1; factor--) {
		unsigned least = 2;

		while (ranks % factor == 0 && factor % least)
			least++;
		for (; least == factor && ranks % factor == 0; ranks /= factor) {
			side[sides - 1] *= factor;
			qsort(side, sides, sizeof(*side), by_length);
		}
	}
}

static void write_sides(char *out, size_t size, const unsigned *side, unsigned n)
{
	for (unsigned d = 0, at = 0; d < n && at < size; d++)
		at += snprintf(out + at, size - at, "%s%u", d ? "x" : "", side[d]);
}

/* Short sides are in Morton order where they are in blocks of two; and a block may be as long as its side. */
static bool shows_order(const struct pattern *p)
{
	unsigned at[PATTERN_SIDES], other[PATTERN_SIDES];
	struct pattern blocks = *p;

	for (unsigned d = 0; d < p->sides; d++) {
		if (p->order == PATTERN_BLOCKS && p->block[d] == p->side[d])
			return false;
		blocks.block[d] = 2;
	}
	blocks.order = PATTERN_BLOCKS;
	for (unsigned r = 0; r < p->ranks && p->order == PATTERN_MORTON; r++) {
		place_rank(p, r, at);
		place_rank(&blocks, r, other);
		if (memcmp(at, other, sizeof(at)))
			return true;
	}
	return p->order != PATTERN_MORTON;
}

int pattern_resize(const struct pattern *p, unsigned ranks, struct pattern *out, struct err *e)
{
	unsigned old[PATTERN_SIDES], sorted[PATTERN_SIDES], new[2][PATTERN_SIDES], known = 0, longest = 0;
	struct pattern q = *p;
	char text[24];

	q.ranks = ranks;
	q.distance = 0;
	if (p->order == PATTERN_NO_ORDER)
		return err_set(e, "its ranks are in an order that is not known for other numbers");
	write_sides(text, sizeof(text), p->side, p->sides);
	if (!shows_order(p))
		return err_set(e, "a grid of %s does not show how its order of ranks goes on", text);
	memcpy(sorted, p->side, sizeof(sorted));
	qsort(sorted, p->sides, sizeof(*sorted), by_length);
	for (unsigned greedy = 0; greedy < 2; greedy++) {
		create_dims(p->ranks, p->sides, greedy, old);
		if (!memcmp(old, sorted, p->sides * sizeof(*old)))
			create_dims(ranks, p->sides, greedy, new[known++]);
	}
	if (!known)
		return err_set(e, "a grid of %s is not that of MPI_Dims_create, so it is not known how it grows", text);
	if (known > 1 && memcmp(new[0], new[1], p->sides * sizeof(*old)))
		return err_set(e, "MPI libraries make different grids of %u ranks", ranks);
	/*
	 * The longest to the longest. Of equals to the last first, as MPI_Dims_create does, unless the first is longer.
	 */
	for (unsigned d = 0, done = 0; d < p->sides; d++, done |= 1 << longest) {
		bool first = p->side[0] > p->side[p->sides - 1];

		longest = PATTERN_SIDES;
		for (unsigned i = 0; i < p->sides; i++)
			if (!(done >> i & 1) && (longest == PATTERN_SIDES || p->side[i] > p->side[longest] ||
						 (p->side[i] == p->side[longest] && !first)))
				longest = i;
		q.side[longest] = new[0][d];
	}
	for (unsigned d = 0; d < p->sides; d++) {
		if (p->order == PATTERN_BLOCKS && q.side[d] % p->block[d])
			return err_set(e, "blocks of its ranks do not divide a grid of %u", ranks);
		if (p->order == PATTERN_MORTON && q.side[d] & (q.side[d] - 1))
			return err_set(e, "Morton order needs powers of two");
		if (p->kind == PATTERN_LINES)
			q.weight[d] *= (double) p->side[d] / q.side[d];
	}
	*out = q;
	return 0;
}

void pattern_describe_sides(const struct pattern *p, char text[static PATTERN_TEXT])
{
	write_sides(text, PATTERN_TEXT, p->side, p->sides);
}

void pattern_describe(const struct pattern *p, char text[static PATTERN_TEXT])
{
	char sides[24], block[24], kind[80];
	unsigned periodic = 0;

	write_sides(sides, sizeof(sides), p->side, p->sides);
	write_sides(block, sizeof(block), p->block, p->sides);
	for (unsigned d = 0; d < p->sides; d++)
		periodic += p->periodic[d];
	if (p->kind == PATTERN_STENCIL && p->sides == 1)
		snprintf(kind, sizeof(kind), periodic ? "ring" : "chain");
	else if (p->kind == PATTERN_STENCIL)
		snprintf(kind, sizeof(kind), "%u-dimensional stencil %s%s", p->sides, sides,
			 periodic == p->sides ? ", periodic" : periodic ? ", periodic in part" : "");
	else if (p->kind == PATTERN_LINES && p->sides > 1)
		snprintf(kind, sizeof(kind), "pencils %s", sides);
	else
		snprintf(kind, sizeof(kind), p->kind == PATTERN_LINES ? "all-to-all" :
			 p->kind == PATTERN_BINARY ? "binary tree" : "binomial tree");
	snprintf(text, PATTERN_TEXT, "%s%s%s", kind,
		 (const char *[]){ "", ", ranks in Morton order", ", ranks in blocks of ",
				   ", ranks in no regular order" }[p->order],
		 p->order == PATTERN_BLOCKS ? block : "");
}
