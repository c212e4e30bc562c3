/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

#include "map/rankfile/rankfile_parts.h"

int rankfile_srun_file(const struct rankfile_writer *w, struct err *e)
{
	(void) e;
	for (unsigned r = 0; r < w->mapping->ranks; r++)
		buf_printf(w->out, "%s\n", rankfile_host_of(w, r));
	return 0;
}

/* "0-2+5" */
static void leaves_write(const struct rankfile_writer *w, unsigned rank, struct buf *out)
{
	const struct place *place = rankfile_place_of(w, rank);
	const unsigned *leaf = &w->places->leaf[place->leaf];

	for (unsigned i = 0, last; i < place->leaves; i = last + 1) {
		for (last = i; last + 1 < place->leaves && leaf[last + 1] == leaf[last] + 1; )
			last++;
		buf_printf(out, last > i ? "%s%u-%u" : "%s%u", i ? "+" : "", leaf[i], leaf[last]);
	}
}

/* "cn1:0,2-3+5/cn2:1": contains no character that is special to a shell. */
static int places_put_words(const struct rankfile_writer *w, struct buf *out, struct err *e)
{
	struct rankfile_locals l;
	const char *between = "";

	if (rankfile_local_ranks_make(w, &l, e))
		return -1;
	for (unsigned h = 0; h < w->places->nhosts; h++) {
		if (l.first[h] == l.first[h + 1])
			continue;
		buf_printf(out, "%s%s", between, w->places->hosts[h]);
		for (unsigned i = l.first[h]; i < l.first[h + 1]; i++) {
			buf_puts(out, i > l.first[h] ? "," : ":");
			leaves_write(w, l.rank[i], out);
		}
		between = "/";
	}
	rankfile_local_ranks_free(&l);
	return out->failed ? err_set(e, "out of memory") : 0;
}

int rankfile_srun_env(const struct rankfile_writer *w, struct err *e)
{
	struct buf words = {0};
	int rc = places_put_words(w, &words, e);

	if (!rc)
		buf_printf(w->out, "SLURM_HOSTFILE=%s\nSLURM_DISTRIBUTION=arbitrary\nTOPIARY_HOSTFILE=%s\n", w->path,
			   w->path);
	if (!rc && words.len && words.len <= RANKFILE_PLACES_MAX)
		buf_printf(w->out, "TOPIARY_PLACES=%s\n", words.data);
	buf_free(&words);
	return rc;
}
