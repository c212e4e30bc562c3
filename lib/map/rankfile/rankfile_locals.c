/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>

#include "map/rankfile/rankfile_parts.h"

int rankfile_local_ranks_make(const struct rankfile_writer *w, struct rankfile_locals *l, struct err *e)
{
	unsigned hosts = w->places->nhosts, ranks = w->mapping->ranks;

	/* Counts are stored one entry further, so that filling in moves each to its position. */
	l->first = calloc((size_t) hosts + 2, sizeof(*l->first));
	l->rank = malloc(((size_t) ranks + 1) * sizeof(*l->rank));
	if (!l->first || !l->rank) {
		rankfile_local_ranks_free(l);
		return err_set(e, "out of memory");
	}
	for (unsigned r = 0; r < ranks; r++)
		l->first[rankfile_place_of(w, r)->host + 2]++;
	for (unsigned h = 0; h < hosts; h++)
		l->first[h + 2] += l->first[h + 1];
	for (unsigned r = 0; r < ranks; r++)
		l->rank[l->first[rankfile_place_of(w, r)->host + 1]++] = r;
	return 0;
}

void rankfile_local_ranks_free(struct rankfile_locals *l)
{
	free(l->first);
	free(l->rank);
}

unsigned rankfile_run_end(const struct rankfile_writer *w, unsigned rank)
{
	unsigned host = rankfile_place_of(w, rank)->host;

	while (rank < w->mapping->ranks && rankfile_place_of(w, rank)->host == host)
		rank++;
	return rank;
}

unsigned rankfile_pus_of(const struct rankfile_writer *w, unsigned rank, unsigned *pu)
{
	const struct place *place = rankfile_place_of(w, rank);
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

int rankfile_pus_write(const struct rankfile_writer *w, unsigned rank, const char *mark, struct buf *out)
{
	unsigned n = rankfile_pus_of(w, rank, NULL), *pu = malloc((n + 1) * sizeof(*pu));

	if (!pu)
		return -1;
	rankfile_pus_of(w, rank, pu);
	for (unsigned i = 0; i < n; i++)
		buf_printf(out, "%s%u", i ? mark : "", pu[i]);
	free(pu);
	return 0;
}
