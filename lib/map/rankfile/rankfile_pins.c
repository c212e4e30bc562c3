/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "map/rankfile/rankfile_parts.h"

/* Launchers that pin local rank i to entry i of one list, whatever the host: Intel MPI and MVAPICH2. */

static int leaf_compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *) a, y = *(const unsigned *) b;

	return (x > y) - (x < y);
}

static int same_pus(const struct rankfile_writer *w, unsigned a, unsigned b, bool *same)
{
	unsigned n = rankfile_pus_of(w, a, NULL), *pu = malloc((2 * (size_t) n + 1) * sizeof(*pu));

	if (!pu)
		return -1;
	*same = rankfile_pus_of(w, b, NULL) == n;
	if (*same) {
		rankfile_pus_of(w, a, pu);
		rankfile_pus_of(w, b, pu + n);
		qsort(pu, n, sizeof(*pu), leaf_compare);
		qsort(pu + n, n, sizeof(*pu), leaf_compare);
		*same = !memcmp(pu, pu + n, n * sizeof(*pu));
	}
	free(pu);
	return 0;
}

static unsigned ranks_of(const struct rankfile_locals *l, unsigned host)
{
	return l->first[host + 1] - l->first[host];
}

static unsigned longest_list(const struct rankfile_writer *w, const struct rankfile_locals *l)
{
	unsigned best = 0;

	for (unsigned h = 1; h < w->places->nhosts; h++)
		if (ranks_of(l, h) > ranks_of(l, best))
			best = h;
	return best;
}

static int check_host(const struct rankfile_writer *w, const struct rankfile_locals *l, unsigned host, unsigned model,
		      struct err *e)
{
	for (unsigned i = 0; i < ranks_of(l, host); i++) {
		unsigned here = l->rank[l->first[host] + i], there = l->rank[l->first[model] + i];
		bool same;

		if (same_pus(w, here, there, &same))
			return err_set(e, "out of memory");
		if (!same)
			return err_set(e, "one list of CPUs serves all hosts, but rank %u on %s and rank %u on %s, "
				       "each the host's rank %u, have different ones", here, w->places->hosts[host],
				       there, w->places->hosts[model], i);
	}
	return 0;
}

/* If a host has fewer ranks than there are domains, Intel MPI warns and binds none of them. */
static int check_equal(const struct rankfile_writer *w, const struct rankfile_locals *l, unsigned host, unsigned model,
		       struct err *e)
{
	if (!ranks_of(l, host) || ranks_of(l, host) == ranks_of(l, model))
		return 0;
	return err_set(e, "one list of CPUs serves all hosts, but %u of the ranks are on %s and %u on %s",
		       ranks_of(l, host), w->places->hosts[host], ranks_of(l, model), w->places->hosts[model]);
}

/* The ranks whose CPUs are the list: those of the host with most ranks, if those of the others do not differ. */
static int pins_find(const struct rankfile_writer *w, bool equal, struct rankfile_locals *l, unsigned *host,
		     struct err *e)
{
	int rc = 0;

	if (rankfile_local_ranks_make(w, l, e))
		return -1;
	*host = longest_list(w, l);
	for (unsigned h = 0; !rc && h < w->places->nhosts; h++)
		rc = (equal && check_equal(w, l, h, *host, e)) || check_host(w, l, h, *host, e) ? -1 : 0;
	if (rc)
		rankfile_local_ranks_free(l);
	return rc;
}

static int pins_check(const struct rankfile_writer *w, bool equal, struct err *e)
{
	struct rankfile_locals l;
	unsigned host;

	if (pins_find(w, equal, &l, &host, e))
		return -1;
	rankfile_local_ranks_free(&l);
	return 0;
}

static void mask_write(const unsigned *pu, unsigned n, struct buf *out)
{
	unsigned top = 0;

	for (unsigned i = 0; i < n; i++)
		top = pu[i] / 4 > top ? pu[i] / 4 : top;
	for (unsigned digit = top + 1; digit--; ) {
		unsigned value = 0;

		for (unsigned i = 0; i < n; i++)
			value |= pu[i] / 4 == digit ? 1u << pu[i] % 4 : 0;
		buf_printf(out, "%x", value);
	}
}

static int intel_mask(const struct rankfile_writer *w, unsigned rank)
{
	unsigned n = rankfile_pus_of(w, rank, NULL), *pu = malloc((n + 1) * sizeof(*pu));

	if (!pu)
		return -1;
	rankfile_pus_of(w, rank, pu);
	buf_puts(w->out, "0x");
	mask_write(pu, n, w->out);
	free(pu);
	return 0;
}

static int mvapich_cpus(const struct rankfile_writer *w, unsigned rank)
{
	return rankfile_pus_write(w, rank, ",", w->out);
}

struct list {
	const char *begin, *mark, *end;
	int (*put)(const struct rankfile_writer *w, unsigned rank);
	bool equal;			/* hosts with ranks have equally many */
};

static int pins_write(const struct rankfile_writer *w, const struct list *list, struct err *e)
{
	struct rankfile_locals l;
	unsigned host;
	int rc = 0;

	if (pins_find(w, list->equal, &l, &host, e))
		return -1;
	buf_puts(w->out, list->begin);
	for (unsigned i = l.first[host]; !rc && i < l.first[host + 1]; i++) {
		buf_puts(w->out, i > l.first[host] ? list->mark : "");
		rc = list->put(w, l.rank[i]);
	}
	buf_puts(w->out, list->end);
	rankfile_local_ranks_free(&l);
	return rc ? err_set(e, "out of memory") : 0;
}

int rankfile_intel_file(const struct rankfile_writer *w, struct err *e)
{
	if (pins_check(w, true, e))
		return -1;
	for (unsigned r = 0, end; r < w->mapping->ranks; r = end) {
		end = rankfile_run_end(w, r);
		buf_printf(w->out, "%s:%u\n", rankfile_host_of(w, r), end - r);
	}
	return 0;
}

/* Domains, because a list of processors has only one for each rank. */
int rankfile_intel_env(const struct rankfile_writer *w, struct err *e)
{
	static const struct list domains = { "I_MPI_PIN_DOMAIN=[", ",", "]\n", intel_mask, true };

	return pins_write(w, &domains, e);
}

/* One host a line, as for srun. */
int rankfile_mvapich_file(const struct rankfile_writer *w, struct err *e)
{
	return pins_check(w, false, e) ? -1 : rankfile_srun_file(w, e);
}

int rankfile_mvapich_env(const struct rankfile_writer *w, struct err *e)
{
	static const struct list cpus = { "MV2_ENABLE_AFFINITY=1\nMV2_CPU_MAPPING=", ":", "\n", mvapich_cpus, false };

	buf_printf(w->out, "HYDRA_HOST_FILE=%s\n", w->path);
	return pins_write(w, &cpus, e);
}
