/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/rankfile/rankfile_parts.h"

/* Hydra silently drops the end of a longer line, so that those ranks are not bound (tested with 4.0.2 and 5.0.2). */
enum { HYDRA_LINE = 16000 };

static int hydra_line(const struct rankfile_writer *w, unsigned first, unsigned end, struct err *e)
{
	size_t before = w->out->len;

	buf_printf(w->out, "%s:%u binding=user:", rankfile_host_of(w, first), end - first);
	for (unsigned r = first; r < end; r++) {
		buf_puts(w->out, r > first ? "," : "");
		if (rankfile_pus_write(w, r, "+", w->out))
			return err_set(e, "out of memory");
	}
	buf_puts(w->out, "\n");
	if (w->out->len - before > HYDRA_LINE)
		return err_set(
			e, "ranks %u to %u, side by side on %s, need a line longer than the %d bytes that Hydra reads",
			first, end - 1, rankfile_host_of(w, first), HYDRA_LINE);
	return 0;
}

int rankfile_hydra_file(const struct rankfile_writer *w, struct err *e)
{
	for (unsigned r = 0, end; r < w->mapping->ranks; r = end) {
		end = rankfile_run_end(w, r);
		if (hydra_line(w, r, end, e))
			return -1;
	}
	return 0;
}

int rankfile_hydra_env(const struct rankfile_writer *w, struct err *e)
{
	(void) e;
	buf_printf(w->out, "HYDRA_HOST_FILE=%s\n", w->path);
	return 0;
}
