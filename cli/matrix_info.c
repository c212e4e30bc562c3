/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "matrix_info.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define HEAVIEST 10

struct pair {
	unsigned a, b;
	double bytes;
};

struct summary {
	size_t pairs, most_partners;
	double bytes;
	struct pair heaviest[HEAVIEST];
	size_t nheaviest;
};

/* Stable: equal pairs keep their order. */
static void keep_heaviest(struct summary *s, struct pair p)
{
	size_t at = s->nheaviest;

	if (at == HEAVIEST && s->heaviest[at - 1].bytes >= p.bytes)
		return;
	at -= at == HEAVIEST;
	for (; at && s->heaviest[at - 1].bytes < p.bytes; at--)
		s->heaviest[at] = s->heaviest[at - 1];
	s->heaviest[at] = p;
	s->nheaviest += s->nheaviest < HEAVIEST;
}

static void matrix_summarise(const struct matrix *m, struct summary *s)
{
	*s = (struct summary){ .pairs = m->row[m->ranks] / 2 };
	for (unsigned r = 0; r < m->ranks; r++) {
		if (m->row[r + 1] - m->row[r] > s->most_partners)
			s->most_partners = m->row[r + 1] - m->row[r];
		for (size_t i = m->row[r]; i < m->row[r + 1]; i++)
			if (m->adj[i] > r) {
				s->bytes += m->weight[i];
				keep_heaviest(s, (struct pair){ r, m->adj[i], m->weight[i] });
			}
	}
}

static int info_print_text(const struct matrix *m, const struct summary *s, FILE *out, struct err *e)
{
	fprintf(out, "ranks      %u\n", m->ranks);
	fprintf(out, "pairs      %zu, %.1f partners a rank, at most %zu\n", s->pairs, 2.0 * s->pairs / m->ranks,
		s->most_partners);
	fprintf(out, "bytes      %.15g\n", s->bytes);
	for (size_t i = 0; i < s->nheaviest; i++)
		fprintf(out, "%-10s %u and %u: %.15g, %.2f %%\n", i ? "" : "heaviest", s->heaviest[i].a,
			s->heaviest[i].b, s->heaviest[i].bytes, 100 * s->heaviest[i].bytes / s->bytes);
	return fflush(out) ? err_set(e, "stdout: %s", strerror(errno)) : 0;
}

static int info_print_json(const struct matrix *m, const struct summary *s, FILE *out, struct err *e)
{
	json_t *pairs = json_array(), *all;
	int rc;

	for (size_t i = 0; i < s->nheaviest; i++)
		json_array_append_new(pairs, json_pack("{s:i, s:i, s:f}", "a", s->heaviest[i].a, "b", s->heaviest[i].b,
						       "bytes", s->heaviest[i].bytes));
	all = json_pack("{s:i, s:I, s:I, s:f, s:o}", "ranks", m->ranks, "pairs", (json_int_t) s->pairs, "most_partners",
			(json_int_t) s->most_partners, "bytes", s->bytes, "heaviest", pairs);
	rc = !all || json_dumpf(all, out, JSON_INDENT(2)) || putc('\n', out) == EOF || fflush(out);
	json_decref(all);
	return rc ? err_set(e, "stdout: %s", strerror(errno)) : 0;
}

int matrix_print_info(const struct matrix *m, bool json, struct err *e)
{
	struct summary s;

	matrix_summarise(m, &s);
	return (json ? info_print_json : info_print_text)(m, &s, stdout, e);
}
