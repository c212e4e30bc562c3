/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "pattern.h"

#include <math.h>

/* --- the matrix of a pattern --- */

/*
 * Before weights are known, a pair weighs 1 + LABELS * its term, the index of pattern.weight, + the sides (bit by side)
 * around which it goes, from the last cell to the first.
 */
#define LABELS (1u << PATTERN_SIDES)

static unsigned power(unsigned base, unsigned n)
{
	return n ? base * power(base, n - 1) : 1;
}

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

/* One step; false: outside the grid. Cells are counted row by row. */
static bool grid_step(const struct pattern *p, unsigned cell, unsigned step, unsigned *to, unsigned *around)
{
	unsigned stride = 1;

	*to = cell;
	*around = 0;
	for (unsigned d = 0; d < p->sides; d++, step /= 3) {
		unsigned side = p->side[d], at = cell / stride % side, next = at + step % 3 - 1;

		if (next >= side) {
			if (!p->periodic[d])
				return false;
			*around |= 1 << d;
			next = next == side ? 0 : side - 1;
		}
		*to += (next - at) * stride;
		stride *= side;
	}
	return true;
}

/* Adds the pairs of a cell with those after it: each pair is added once for each way from one to the other. */
static int add_pairs(struct matrix_entries *f, const struct pattern *p, const unsigned *rank, unsigned cell, bool label)
{
	unsigned steps = power(3, p->sides), stride = 1, to, around;
	int rc = 0;

	switch (p->kind) {
	case PATTERN_STENCIL:
		for (unsigned step = steps / 2 + 1; step < steps && !rc; step++)
			if ((label || p->weight[step] > 0) && grid_step(p, cell, step, &to, &around))
				rc = matrix_entries_add(f, rank[cell], rank[to],
							label ? 1 + LABELS * step + around : p->weight[step]);
		return rc;
	case PATTERN_LINES:
		for (unsigned d = 0; d < p->sides; stride *= p->side[d++])
			for (unsigned i = 1; cell / stride % p->side[d] + i < p->side[d] && !rc; i++)
				rc = matrix_entries_add(f, rank[cell], rank[cell + i * stride],
							label ? 1 + LABELS * d : p->weight[d]);
		return rc;
	default:
		to = p->kind == PATTERN_BINARY ? (cell - 1) / 2 : cell & (cell - 1);
		return cell ? matrix_entries_add(f, cell, to, label ? 1 : p->weight[0]) : 0;
	}
}

static struct matrix *matrix_of(const struct pattern *p, bool label)
{
	unsigned *rank = malloc(p->ranks * sizeof(*rank));
	struct matrix_entries found = {0};
	struct matrix *m = NULL;
	int rc = rank ? 0 : -1;

	for (unsigned r = 0; r < p->ranks && rank; r++) {
		unsigned at[PATTERN_SIDES], cell = 0;

		place_rank(p, r, at);
		for (unsigned d = p->sides; d--;)
			cell = cell * p->side[d] + at[d];
		rank[cell] = r;
	}
	for (unsigned cell = 0; cell < p->ranks && !rc; cell++)
		rc = add_pairs(&found, p, rank, cell, label);
	if (!rc)
		m = matrix_build(p->ranks, &found);
	free(found.entry);
	free(rank);
	return m;
}

struct matrix *pattern_matrix(const struct pattern *p)
{
	return matrix_of(p, false);
}

/* --- recognised --- */

/* Ranks that are looked at before a grid is tried, and of fewer ranks too little is seen. */
#define SAMPLES 8u
/*
 * Visits of pairs in all, whether a grid is tried or rejected, which are less than a second of CPU time; and as many as
 * a pair takes that is made or sorted.
 */
#define WORK 60e6
#define MAKE_WORK 8
/* A pattern that is numbered less plainly must have a misfit() that is smaller by so much. */
#define NEARER 0.001

struct search {
	const struct matrix *m;
	double work;			/* left */
	struct pattern best;
	bool no_memory;
};

static double bytes_of(const struct matrix *m, unsigned a, unsigned b)
{
	size_t low = m->row[a], high = m->row[a + 1];

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (m->adj[middle] == b)
			return m->weight[middle];
		*(m->adj[middle] < b ? &low : &high) = middle + (m->adj[middle] < b);
	}
	return 0;
}

/* Is what the sampled ranks exchange near enough in this grid to be worth a closer look? */
static bool is_likely(struct search *s, const struct pattern *p)
{
	double all = 0, near = 0;

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
			near += (p->kind == PATTERN_LINES ? moved == 1 : !far) * s->m->weight[j];
		}
		s->work -= 4 * (1 + s->m->row[r + 1] - s->m->row[r]);
	}
	return near >= (1 - 3 * PATTERN_DISTANCE) * all;
}

/* A periodic side of 2 leads to the same rank both ways. */
static unsigned ways(const struct pattern *p, unsigned step)
{
	unsigned n = 1;

	for (unsigned d = 0; d < p->sides && p->kind == PATTERN_STENCIL; d++, step /= 3)
		n *= p->side[d] == 2 && p->periodic[d] && step % 3 != 1 ? 2 : 1;
	return n;
}

/*
 * A side is periodic if steps around it carry at least half of what the same steps carry within. A side of 2 does not
 * show it: it is as the others are. False if they differ.
 */
static bool find_periodic(struct pattern *p, double sum[PATTERN_STEPS][LABELS])
{
	unsigned shown[2] = {0}, hidden = 0;

	for (unsigned d = 0; d < p->sides; d++) {
		double within = 0, around = 0;

		for (unsigned t = 0; t < power(3, p->sides); t++)
			if (t / power(3, d) % 3 != 1) {
				within += sum[t][0];
				around += sum[t][1 << d];
			}
		p->periodic[d] = around > 0 && around * (p->side[d] - 1) >= within / 2;
		*(p->side[d] > 2 ? &shown[p->periodic[d]] : &hidden) += 1;
	}
	for (unsigned d = 0; d < p->sides; d++)
		if (p->side[d] == 2)
			p->periodic[d] = shown[1];
	return !hidden || !shown[0] || !shown[1];
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

/*
 * The mean of what the pairs of each term exchange; nothing, where fewer than half of them do. The labels of t become
 * these weights. False if this is no pattern.
 */
static bool find_weights(const struct matrix *m, struct matrix *t, struct pattern *p)
{
	double sum[PATTERN_STEPS][LABELS] = {{0}};
	unsigned pairs[PATTERN_STEPS][LABELS] = {{0}}, silent[PATTERN_STEPS][LABELS] = {{0}}, open = 0;

	for (unsigned r = 0; r < p->ranks; r++)
		for (size_t i = t->row[r]; i < t->row[r + 1]; i++) {
			unsigned label = t->weight[i] - 1;
			double bytes = bytes_of(m, r, t->adj[i]);

			sum[label / LABELS][label % LABELS] += bytes;
			pairs[label / LABELS][label % LABELS]++;
			silent[label / LABELS][label % LABELS] += bytes == 0;
		}
	if (p->kind == PATTERN_STENCIL && !find_periodic(p, sum))
		return false;
	for (unsigned d = 0; d < p->sides; d++)
		open |= !p->periodic[d] << d;
	for (unsigned term = 0; term < PATTERN_STEPS; term++) {
		for (unsigned around = 1; around < LABELS; around++)
			if (!(around & open)) {
				sum[term][0] += sum[term][around];
				pairs[term][0] += pairs[term][around];
				silent[term][0] += silent[term][around];
			}
		/* As a float, whose sums do not depend on the order. */
		p->weight[term] = 2 * silent[term][0] < pairs[term][0] ?
			(float) (sum[term][0] / pairs[term][0] / ways(p, term)) : 0;
	}
	for (unsigned step = 0, last = power(3, p->sides) - 1; p->kind == PATTERN_STENCIL && step < last / 2; step++)
		p->weight[step] = p->weight[last - step];
	for (size_t i = 0; i < t->row[t->ranks]; i++) {
		unsigned label = t->weight[i] - 1, term = label / LABELS;

		t->weight[i] = label % LABELS & open ? 0 : p->weight[term] * ways(p, term);
	}
	return is_shown(p);
}

/* --- ranks in no order --- */

/* So that the recursion stays within the stack; and the part of the work that is left that one grid may take. */
#define SHUFFLED_RANKS 4096u
#define SHUFFLED_WORK 16
/* Pairs that exchange less than this share of the heaviest are passed over, and steps may differ by so much. */
#define LIGHT 0.05
#define ALIKE 0.3

/* Cells that are filled in order, each by a rank that exchanges with those before it as the labels of the grid do. */
struct filling {
	struct search *s;
	const struct pattern *p;
	const struct matrix *labels;
	unsigned *rank_in, *cell_of;	/* ranks: in none yet */
	double least;			/* weight */
	double weight[PATTERN_STEPS];	/* by term, as the first such pair has it */
	unsigned since[PATTERN_STEPS];	/* the cell of that pair; of none before the present one: not known */
};

static bool fill_fits(struct filling *f, unsigned cell, unsigned rank)
{
	const struct matrix *m = f->s->m, *t = f->labels;
	unsigned placed = 0;
	bool fits = true;

	for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++)
		placed += m->weight[i] >= f->least && f->cell_of[m->adj[i]] < cell;
	f->s->work -= 1 + m->row[rank + 1] - m->row[rank];
	for (size_t i = t->row[cell]; i < t->row[cell + 1] && t->adj[i] < cell && fits; i++) {
		unsigned term = (unsigned) (t->weight[i] - 1) / LABELS;
		double bytes = bytes_of(m, rank, f->rank_in[t->adj[i]]);

		bytes = bytes >= f->least ? bytes : 0;
		if (f->since[term] >= cell) {
			f->since[term] = cell;
			f->weight[term] = bytes;
		}
		fits = fabs(bytes - f->weight[term]) <= ALIKE * f->weight[term];
		placed -= bytes > 0;
		f->s->work -= 4;
	}
	return fits && !placed;
}

/*
 * First those at the rim, which exchange least; then straight on: few partners in common with the rank before last. No
 * two ranks are alike.
 */
static double fill_preference(struct filling *f, unsigned rank, unsigned before)
{
	const struct matrix *m = f->s->m;
	double all = 0, common = (double) rank / m->ranks;

	for (size_t i = m->row[rank]; i < m->row[rank + 1]; i++) {
		common += bytes_of(m, before, m->adj[i]) > 0;
		all += m->weight[i];
	}
	f->s->work -= 4 * (m->row[rank + 1] - m->row[rank]);
	return floor(all / f->least) + common / (m->ranks + 1);
}

static bool fill_from(struct filling *f, unsigned cell)
{
	const struct matrix *m = f->s->m;
	unsigned stride = 1, beside;

	if (cell == m->ranks)
		return true;
	for (unsigned d = 0; cell / stride % f->p->side[d] == 0; d++)
		stride *= f->p->side[d];
	beside = f->rank_in[cell - stride];
	for (double last = -1, best = 0; f->s->work > 0; last = best) {
		unsigned choice = m->ranks;

		best = INFINITY;
		for (size_t i = m->row[beside]; i < m->row[beside + 1] && f->s->work > 0; i++) {
			unsigned rank = m->adj[i];
			double own;

			if (f->cell_of[rank] != m->ranks || m->weight[i] < f->least || !fill_fits(f, cell, rank))
				continue;
			own = fill_preference(f, rank, f->rank_in[cell - (cell > 1 ? 2 : 1)]);
			if (own > last && own < best) {
				best = own;
				choice = rank;
			}
		}
		if (choice == m->ranks)
			break;
		f->rank_in[cell] = choice;
		f->cell_of[choice] = cell;
		if (fill_fits(f, cell, choice) && fill_from(f, cell + 1))
			return true;
		f->cell_of[choice] = m->ranks;
	}
	return false;
}

/* The matrix with its ranks in the order of the cells of this grid. NULL: none was found, or no memory. */
static struct matrix *put_in_order(struct search *s, const struct pattern *p, const struct matrix *labels)
{
	const struct matrix *m = s->m;
	unsigned *rank_in = malloc(m->ranks * sizeof(*rank_in)), first = 0;
	unsigned *cell_of = malloc(m->ranks * sizeof(*cell_of));
	struct filling f = { .s = s, .p = p, .labels = labels, .rank_in = rank_in, .cell_of = cell_of };
	struct matrix *ordered = NULL;
	double rest, least = INFINITY;

	s->work -= MAKE_WORK * m->row[m->ranks];
	rest = s->work - s->work / SHUFFLED_WORK;
	s->work -= rest;
	for (unsigned r = 0; r < m->ranks && rank_in && cell_of; r++) {
		double all = 0;

		for (size_t i = m->row[r]; i < m->row[r + 1]; i++) {
			all += m->weight[i];
			f.least = fmax(f.least, LIGHT * m->weight[i]);
		}
		first = all < least ? r : first;
		least = fmin(least, all);
		cell_of[r] = m->ranks;
	}
	for (unsigned t = 0; t < PATTERN_STEPS; t++)
		f.since[t] = m->ranks;
	s->no_memory |= !rank_in || !cell_of;
	if (!s->no_memory) {
		rank_in[0] = first;
		cell_of[first] = 0;
		if (fill_from(&f, 1) && !(ordered = matrix_contract(m, cell_of, m->ranks)))
			s->no_memory = true;
	}
	s->work += rest;
	free(rank_in);
	free(cell_of);
	return ordered;
}

/* --- the search --- */

/*
 * One side more must explain half of what the matrix has beside the pattern. Any matrix is nearer to a grid of more
 * sides, and collectives exchange with the ranks that are 1, 2, 4 ... away, as in a grid that has many sides of 2.
 */
static double misfit(const struct pattern *p)
{
	return ldexp(p->distance, p->sides);
}

static void try(struct search *s, struct pattern p)
{
	double partners = p.kind == PATTERN_LINES ? 0 : power(3, p.sides) - 1;
	struct matrix *labels, *ordered = NULL;

	for (unsigned d = 0; d < p.sides; d++)
		partners += p.kind == PATTERN_LINES ? p.side[d] - 1 : 0;
	if (s->work <= 0 || (p.kind == PATTERN_LINES && p.ranks * partners > 2.0 * s->m->row[p.ranks]) ||
	    (p.kind <= PATTERN_LINES && p.order != PATTERN_NO_ORDER && !is_likely(s, &p)))
		return;
	s->work -= MAKE_WORK * p.ranks * (1 + partners) + s->m->row[p.ranks];
	if (s->work <= 0)
		return;
	if (!(labels = matrix_of(&p, true))) {
		s->no_memory = true;
		return;
	}
	if (p.order == PATTERN_NO_ORDER)
		ordered = put_in_order(s, &p, labels);
	if ((ordered || p.order != PATTERN_NO_ORDER) && find_weights(ordered ?: s->m, labels, &p)) {
		p.distance = matrix_distance(ordered ?: s->m, labels);
		if (p.distance <= PATTERN_DISTANCE &&
		    (!s->best.ranks || misfit(&p) < misfit(&s->best) - NEARER))
			s->best = p;
	}
	matrix_free(ordered);
	matrix_free(labels);
}

/* Whether sides are periodic is found with all of them so; but not before the ranks are in order. */
static void try_grid(struct search *s, struct pattern *p)
{
	for (p->kind = PATTERN_STENCIL; p->kind <= PATTERN_LINES; p->kind++)
		for (int open = p->kind == PATTERN_STENCIL && p->order == PATTERN_NO_ORDER; open >= 0; open--) {
			for (unsigned d = 0; d < p->sides; d++)
				p->periodic[d] = !open && p->kind == PATTERN_STENCIL && p->side[d] > 2;
			try(s, *p);
		}
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
	struct search s = { .m = m, .work = WORK };
	struct pattern p = { .ranks = m->ranks, .sides = 1, .side = { m->ranks } };

	if (m->ranks >= SAMPLES && m->row[m->ranks]) {
		for (p.kind = PATTERN_BINARY; p.kind <= PATTERN_BINOMIAL; p.kind++)
			try(&s, p);
		for (p.order = PATTERN_ROWS; p.order <= PATTERN_NO_ORDER && !s.best.ranks; p.order++)
			for (p.sides = 1; p.sides <= PATTERN_SIDES; p.sides++)
				try_sides(&s, &p, 0, m->ranks);
	}
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
	return COMPARE(*(const unsigned *) b, *(const unsigned *) a);
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

/*
 * Morton order differs from blocks of two if a side of more than 4 comes before one of more than 2; and a block may be
 * as long as its side.
 */
static bool shows_order(const struct pattern *p)
{
	bool long_one = false, shown = p->order != PATTERN_MORTON;

	for (unsigned d = 0; d < p->sides; d++) {
		if (p->order == PATTERN_BLOCKS && p->block[d] == p->side[d])
			return false;
		shown |= long_one && p->side[d] > 2;
		long_one |= p->side[d] > 4;
	}
	return shown;
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
				   ", " PATTERN_SHUFFLED }[p->order],
		 p->order == PATTERN_BLOCKS ? block : "");
}
