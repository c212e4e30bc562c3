/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/rankfile/rankfile.h"

struct writer {
	const struct places *places;
	const struct mapping *mapping;
	const char *path;		/* of the file, for the environment */
	struct buf *out;
};

static inline const struct place *place_of(const struct writer *w, unsigned rank)
{
	return &w->places->place[w->mapping->place[rank]];
}

static inline const char *host_of(const struct writer *w, unsigned rank)
{
	return w->places->hosts[place_of(w, rank)->host];
}

/*
 * The ranks of each host, ascending: those of host h are rank[first[h]] .. rank[first[h + 1] - 1], in the order of
 * local ranks.
 */
struct locals {
	unsigned *first, *rank;
};

static void locals_free(struct locals *l)
{
	free(l->first);
	free(l->rank);
}

static int locals_make(const struct writer *w, struct locals *l, struct err *e)
{
	unsigned hosts = w->places->nhosts, ranks = w->mapping->ranks;

	/* Counts are stored one entry further, so that filling in moves each to its position. */
	l->first = calloc((size_t) hosts + 2, sizeof(*l->first));
	l->rank = malloc(((size_t) ranks + 1) * sizeof(*l->rank));
	if (!l->first || !l->rank) {
		locals_free(l);
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

static unsigned run_end(const struct writer *w, unsigned rank)
{
	unsigned host = place_of(w, rank)->host;

	while (rank < w->mapping->ranks && place_of(w, rank)->host == host)
		rank++;
	return rank;
}

static unsigned pus_of(const struct writer *w, unsigned rank, unsigned *pu)
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

static int pus_write(const struct writer *w, unsigned rank, const char *mark, struct buf *out)
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

/* --- MPICH --- */

/* Hydra silently drops the end of a longer line, so that those ranks are not bound (tested with 4.0.2 and 5.0.2). */
enum { HYDRA_LINE = 16000 };

static int hydra_line(const struct writer *w, unsigned first, unsigned end, struct err *e)
{
	size_t before = w->out->len;

	buf_printf(w->out, "%s:%u binding=user:", host_of(w, first), end - first);
	for (unsigned r = first; r < end; r++) {
		buf_puts(w->out, r > first ? "," : "");
		if (pus_write(w, r, "+", w->out))
			return err_set(e, "out of memory");
	}
	buf_puts(w->out, "\n");
	if (w->out->len - before > HYDRA_LINE)
		return err_set(
			e, "ranks %u to %u, side by side on %s, need a line longer than the %d bytes that Hydra reads",
			first, end - 1, host_of(w, first), HYDRA_LINE);
	return 0;
}

static int hydra_file(const struct writer *w, struct err *e)
{
	for (unsigned r = 0, end; r < w->mapping->ranks; r = end) {
		end = run_end(w, r);
		if (hydra_line(w, r, end, e))
			return -1;
	}
	return 0;
}

/* --- Cray --- */

struct seat {
	unsigned host, leaf, rank;
};

static int seat_compare(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;

	return COMPARE(x->host, y->host) ?: COMPARE(x->leaf, y->leaf) ?: COMPARE(x->rank, y->rank);
}

/*
 * The launcher fills node after node, each from its first core on: writes the ranks in that order, a line for each
 * node.
 */
static int cray_file(const struct writer *w, struct err *e)
{
	unsigned ranks = w->mapping->ranks;
	struct seat *seats = malloc(((size_t) ranks + 1) * sizeof(*seats));

	if (!seats)
		return err_set(e, "out of memory");
	for (unsigned r = 0; r < ranks; r++) {
		const struct place *place = place_of(w, r);

		seats[r] = (struct seat){ place->host, w->places->leaf[place->leaf], r };
	}
	qsort(seats, ranks, sizeof(*seats), seat_compare);
	for (unsigned i = 0; i < ranks; i++)
		buf_printf(w->out, "%u%s", seats[i].rank,
			   i + 1 < ranks && seats[i + 1].host == seats[i].host ? "," : "\n");
	free(seats);
	return 0;
}

/* --- srun --- */

static int srun_file(const struct writer *w, struct err *e)
{
	(void) e;
	for (unsigned r = 0; r < w->mapping->ranks; r++)
		buf_printf(w->out, "%s\n", host_of(w, r));
	return 0;
}

/* "cn1:0,2-3+5/cn2:1": contains no character that is special to a shell. */
static int places_put_words(const struct writer *w, struct buf *out, struct err *e)
{
	struct locals l;
	const char *between = "";

	if (locals_make(w, &l, e))
		return -1;
	for (unsigned h = 0; h < w->places->nhosts; h++) {
		if (l.first[h] == l.first[h + 1])
			continue;
		buf_printf(out, "%s%s", between, w->places->hosts[h]);
		for (unsigned i = l.first[h]; i < l.first[h + 1]; i++) {
			buf_puts(out, i > l.first[h] ? "," : ":");
			/* "0-2+5" */
			const struct place *place = place_of(w, l.rank[i]);
			const unsigned *leaf = &w->places->leaf[place->leaf];

			for (unsigned j = 0, last; j < place->leaves; j = last + 1) {
				for (last = j; last + 1 < place->leaves && leaf[last + 1] == leaf[last] + 1; )
					last++;
				buf_printf(out, last > j ? "%s%u-%u" : "%s%u", j ? "+" : "", leaf[j], leaf[last]);
			}
		}
		between = "/";
	}
	locals_free(&l);
	return out->failed ? err_set(e, "out of memory") : 0;
}

static int srun_env(const struct writer *w, struct err *e)
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

/* --- Intel MPI and MVAPICH2 --- */

/* Launchers that pin local rank i to entry i of one list, whatever the host: Intel MPI and MVAPICH2. */

static int leaf_compare(const void *a, const void *b)
{
	return COMPARE(*(const unsigned *) a, *(const unsigned *) b);
}

static int same_pus(const struct writer *w, unsigned a, unsigned b, bool *same)
{
	unsigned n = pus_of(w, a, NULL), *pu = malloc((2 * (size_t) n + 1) * sizeof(*pu));

	if (!pu)
		return -1;
	*same = pus_of(w, b, NULL) == n;
	if (*same) {
		pus_of(w, a, pu);
		pus_of(w, b, pu + n);
		qsort(pu, n, sizeof(*pu), leaf_compare);
		qsort(pu + n, n, sizeof(*pu), leaf_compare);
		*same = !memcmp(pu, pu + n, n * sizeof(*pu));
	}
	free(pu);
	return 0;
}

static unsigned ranks_of(const struct locals *l, unsigned host)
{
	return l->first[host + 1] - l->first[host];
}

/*
 * The ranks whose CPUs are the list: those of the host with most ranks, if those of the others do not differ. equal: if
 * a host has fewer ranks than there are domains, Intel MPI warns and binds none of them.
 */
static int pins_find(const struct writer *w, bool equal, struct locals *l, unsigned *host, struct err *e)
{
	unsigned model = 0;
	int rc = 0;

	if (locals_make(w, l, e))
		return -1;
	for (unsigned h = 1; h < w->places->nhosts; h++)
		if (ranks_of(l, h) > ranks_of(l, model))
			model = h;
	for (unsigned h = 0; !rc && h < w->places->nhosts; h++) {
		if (equal && ranks_of(l, h) && ranks_of(l, h) != ranks_of(l, model))
			rc = err_set(e, "one list of CPUs serves all hosts, but %u of the ranks are on %s and %u on %s",
				     ranks_of(l, h), w->places->hosts[h], ranks_of(l, model), w->places->hosts[model]);
		for (unsigned i = 0; !rc && i < ranks_of(l, h); i++) {
			unsigned here = l->rank[l->first[h] + i], there = l->rank[l->first[model] + i];
			bool same;

			if (same_pus(w, here, there, &same))
				rc = err_set(e, "out of memory");
			else if (!same)
				rc = err_set(e, "one list of CPUs serves all hosts, but rank %u on %s and rank %u on "
					     "%s, each the host's rank %u, have different ones", here,
					     w->places->hosts[h], there, w->places->hosts[model], i);
		}
	}
	if (rc)
		locals_free(l);
	*host = model;
	return rc;
}

/* Writes the list, of each rank its PUs: as a mask, or separated by commas. equal: as in pins_find. */
static int pins_write(const struct writer *w, bool masks, bool equal, const char *mark, struct err *e)
{
	struct locals l;
	unsigned host;
	int rc = 0;

	if (pins_find(w, equal, &l, &host, e))
		return -1;
	for (unsigned i = l.first[host]; !rc && i < l.first[host + 1]; i++) {
		unsigned n = pus_of(w, l.rank[i], NULL), *pu = malloc((n + 1) * sizeof(*pu)), top = 0;

		buf_puts(w->out, i > l.first[host] ? mark : "");
		if (!pu) {
			rc = err_set(e, "out of memory");
			break;
		}
		pus_of(w, l.rank[i], pu);
		for (unsigned k = 0; k < n; k++) {
			top = pu[k] / 4 > top ? pu[k] / 4 : top;
			if (!masks)
				buf_printf(w->out, "%s%u", k ? "," : "", pu[k]);
		}
		buf_puts(w->out, masks ? "0x" : "");
		for (unsigned digit = top + 1; masks && digit--; ) {
			unsigned value = 0;

			for (unsigned k = 0; k < n; k++)
				value |= pu[k] / 4 == digit ? 1u << pu[k] % 4 : 0;
			buf_printf(w->out, "%x", value);
		}
		free(pu);
	}
	locals_free(&l);
	return rc;
}

static int intel_file(const struct writer *w, struct err *e)
{
	struct locals l;
	unsigned host;

	if (pins_find(w, true, &l, &host, e))
		return -1;
	locals_free(&l);
	for (unsigned r = 0, end; r < w->mapping->ranks; r = end) {
		end = run_end(w, r);
		buf_printf(w->out, "%s:%u\n", host_of(w, r), end - r);
	}
	return 0;
}

/* Domains, because a list of processors has only one for each rank. */
static int intel_env(const struct writer *w, struct err *e)
{
	buf_puts(w->out, "I_MPI_PIN_DOMAIN=[");
	if (pins_write(w, true, true, ",", e))
		return -1;
	buf_puts(w->out, "]\n");
	return 0;
}

/* One host a line, as for srun. */
static int mvapich_file(const struct writer *w, struct err *e)
{
	struct locals l;
	unsigned host;

	if (pins_find(w, false, &l, &host, e))
		return -1;
	locals_free(&l);
	return srun_file(w, e);
}

static int mvapich_env(const struct writer *w, struct err *e)
{
	buf_puts(w->out, "MV2_ENABLE_AFFINITY=1\nMV2_CPU_MAPPING=");
	if (pins_write(w, false, false, ":", e))
		return -1;
	buf_puts(w->out, "\n");
	return 0;
}

/* --- any --- */

typedef int part_fn(const struct writer *w, struct err *e);

/* The file: a line for each rank, or what `file` writes. The environment: the path, then what `env` writes. */
static const struct format {
	const char *name;
	const char *rank, *host, *slot;	/* what precedes the rank (NULL: not written), the host and the leaves */
	part_fn *file;
	const char *path;
	part_fn *env;
	bool numbers;
} formats[] = {
	{ "plain", .rank = "", .host = " ", .slot = " " },
	{ "openmpi", .rank = "rank ", .host = "=", .slot = " slot=", .path = "OMPI_MCA_rmaps_rank_file_path=" },
	/* The sequential mapper reads one rank after another from its host file, each with the cores to bind to. */
	{ "openmpi-seq", .host = "", .slot = " ",
	  .path = "OMPI_MCA_rmaps_base_mapping_policy=seq\nOMPI_MCA_orte_default_hostfile=" },
	{ "openmpi5", .rank = "rank ", .host = "=", .slot = " slot=" },
	{ "mpich", .file = hydra_file, .path = "HYDRA_HOST_FILE=", .numbers = true },
	{ "intelmpi", .file = intel_file, .env = intel_env, .numbers = true },
	{ "mvapich2", .file = mvapich_file, .path = "HYDRA_HOST_FILE=", .env = mvapich_env, .numbers = true },
	{ "cray", .file = cray_file, .path = "MPICH_RANK_REORDER_METHOD=3\nMPICH_RANK_REORDER_FILE=" },
	{ "srun", .file = srun_file, .env = srun_env },
};

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static const struct format *format_find(const char *name)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

int rankfile_check(const char *name, struct err *e)
{
	struct buf names = {0};

	if (format_find(name))
		return 0;
	for (size_t i = 0; i < FORMATS; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", formats[i].name);
	err_set(e, "%s: unknown rank file format; expected one of: %s", name, names.failed ? "" : names.data);
	buf_free(&names);
	return -1;
}

bool rankfile_wants_numbers(const char *name)
{
	const struct format *f = format_find(name);

	return f && f->numbers;
}

static int check_numbers(const struct format *f, const struct places *p, struct err *e)
{
	for (unsigned h = 0; f->numbers && h < p->nhosts; h++)
		if (!p->numbers || !p->numbers[h])
			return err_set(e,
				       "format %s needs the OS CPU numbers of %s, which are not known",
				       f->name, p->hosts[h]);
	for (unsigned i = 0; f->numbers && i < p->nplaces; i++)
		for (unsigned l = p->place[i].leaf; l < p->place[i].leaf + p->place[i].leaves; l++)
			if (p->core[l] >= p->numbers[p->place[i].host]->cores)
				return err_set(e, "%s has %u cores, no core %u", p->hosts[p->place[i].host],
					       p->numbers[p->place[i].host]->cores, p->core[l]);
	return 0;
}

/* Removes a part that was begun but not completed. */
static int part_end(const struct writer *w, const struct format *f, size_t before, int rc, struct err *e)
{
	if (rc) {
		w->out->len = before;
		return err_within(e, "%s", f->name);
	}
	return w->out->failed ? err_set(e, "rank file: out of memory") : 0;
}

int rankfile_write(const char *format, const struct places *p, const struct mapping *m, struct buf *out, struct err *e)
{
	const struct format *f = format_find(format);
	struct writer w = { .places = p, .mapping = m, .out = out };
	size_t before = out->len;

	if (!f || check_numbers(f, p, e))
		return f ? -1 : rankfile_check(format, e);
	for (unsigned r = 0; !f->file && r < m->ranks; r++) {
		if (f->rank)
			buf_printf(out, "%s%u", f->rank, r);
		buf_printf(out, "%s%s%s", f->host, host_of(&w, r), f->slot);
		const struct place *place = place_of(&w, r);

		for (unsigned i = 0; i < place->leaves; i++)
			buf_printf(w.out, "%s%u", i ? "," : "", w.places->leaf[place->leaf + i]);
		buf_puts(w.out, "\n");
	}
	return part_end(&w, f, before, f->file ? f->file(&w, e) : 0, e);
}

int rankfile_env(const char *format, const struct places *p, const struct mapping *m, const char *path, struct buf *out,
		 struct err *e)
{
	const struct format *f = format_find(format);
	struct writer w = { .places = p, .mapping = m, .path = path, .out = out };
	size_t before = out->len;

	if (!f || check_numbers(f, p, e))
		return f ? -1 : rankfile_check(format, e);
	if (f->path)
		buf_printf(out, "%s%s\n", f->path, path);
	return part_end(&w, f, before, f->env ? f->env(&w, e) : 0, e);
}
