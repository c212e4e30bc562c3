/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>

#include "map/rankfile/rankfile_parts.h"

int local_ranks_make(const struct rankfile_writer *w, struct rankfile_locals *l, struct err *e)
{
	unsigned hosts = w->places->nhosts, ranks = w->mapping->ranks;

	/* Counts are stored one entry further, so that filling in moves each to its position. */
	l->first = calloc((size_t) hosts + 2, sizeof(*l->first));
	l->rank = malloc(((size_t) ranks + 1) * sizeof(*l->rank));
	if (!l->first || !l->rank) {
		local_ranks_free(l);
		return err_set(e, "out of memory");
	}
	for (unsigned r = 0; r < ranks; r++)
		l->first[place_of(w, r)->host + 2]++;
	for (unsigned h = 0; h < hosts; h++)
		l->first[h + 2] += l->first[h + 1];
	for (unsigned r = 0; r < ranks; r++)
		l->rank[l->first[place_of(w, r)->host + 1]++] = r;
	return 0;
}

void local_ranks_free(struct rankfile_locals *l)
{
	free(l->first);
	free(l->rank);
}

unsigned run_end(const struct rankfile_writer *w, unsigned rank)
{
	unsigned host = place_of(w, rank)->host;

	while (rank < w->mapping->ranks && place_of(w, rank)->host == host)
		rank++;
	return rank;
}

unsigned pus_of(const struct rankfile_writer *w, unsigned rank, unsigned *pu)
{
	const struct place *place = place_of(w, rank);
	const struct numbers *n = w->places->numbers[place->host];
	unsigned count = 0;

	for (unsigned i = 0; i < place->leaves; i++) {
		unsigned core = w->places->core[place->leaf + i];

		for (unsigned k = n->first[core]; k < n->first[core + 1]; k++, count++)
			if (pu)
				pu[count] = n->pu[k];
	}
	return count;
}

int pus_write(const struct rankfile_writer *w, unsigned rank, const char *mark, struct buf *out)
{
	unsigned n = pus_of(w, rank, NULL), *pu = malloc((n + 1) * sizeof(*pu));

	if (!pu)
		return -1;
	pus_of(w, rank, pu);
	for (unsigned i = 0; i < n; i++)
		buf_printf(out, "%s%u", i ? mark : "", pu[i]);
	free(pu);
	return 0;
}
