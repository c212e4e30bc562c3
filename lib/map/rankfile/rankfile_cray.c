/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>

#include "map/rankfile/rankfile_parts.h"

struct seat {
	unsigned host, leaf, rank;
};

static int seat_compare(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;

	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	if (x->leaf != y->leaf)
		return x->leaf < y->leaf ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/*
 * The launcher fills node after node, each from its first core on: writes the ranks in that order, a line for each
 * node.
 */
int rankfile_cray_file(const struct rankfile_writer *w, struct err *e)
{
	unsigned ranks = w->mapping->ranks;
	struct seat *seats = malloc(((size_t) ranks + 1) * sizeof(*seats));

	if (!seats)
		return err_set(e, "out of memory");
	for (unsigned r = 0; r < ranks; r++) {
		const struct place *place = rankfile_place_of(w, r);

		seats[r] = (struct seat){ place->host, w->places->leaf[place->leaf], r };
	}
	qsort(seats, ranks, sizeof(*seats), seat_compare);
	for (unsigned i = 0; i < ranks; i++)
		buf_printf(w->out, "%u%s", seats[i].rank,
			   i + 1 < ranks && seats[i + 1].host == seats[i].host ? "," : "\n");
	free(seats);
	return 0;
}

int rankfile_cray_env(const struct rankfile_writer *w, struct err *e)
{
	(void) e;
	buf_printf(w->out, "MPICH_RANK_REORDER_METHOD=3\nMPICH_RANK_REORDER_FILE=%s\n", w->path);
	return 0;
}
