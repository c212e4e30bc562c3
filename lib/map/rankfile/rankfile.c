/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/rankfile/rankfile.h"

#include <string.h>

#include "map/rankfile/rankfile_parts.h"

static void leaves_write(const struct rankfile_writer *w, unsigned rank)
{
	const struct place *place = rankfile_place_of(w, rank);

	for (unsigned i = 0; i < place->leaves; i++)
		buf_printf(w->out, "%s%u", i ? "," : "", w->places->leaf[place->leaf + i]);
	buf_puts(w->out, "\n");
}

static int plain_file(const struct rankfile_writer *w, struct err *e)
{
	(void) e;
	for (unsigned r = 0; r < w->mapping->ranks; r++) {
		buf_printf(w->out, "%u %s ", r, rankfile_host_of(w, r));
		leaves_write(w, r);
	}
	return 0;
}

static int openmpi_file(const struct rankfile_writer *w, struct err *e)
{
	(void) e;
	for (unsigned r = 0; r < w->mapping->ranks; r++) {
		buf_printf(w->out, "rank %u=%s slot=", r, rankfile_host_of(w, r));
		leaves_write(w, r);
	}
	return 0;
}

static int openmpi_env(const struct rankfile_writer *w, struct err *e)
{
	(void) e;
	buf_printf(w->out, "OMPI_MCA_rmaps_rank_file_path=%s\n", w->path);
	return 0;
}

/* The sequential mapper reads one rank after another from its host file, each with the cores to bind to. */
static int openmpi_seq_file(const struct rankfile_writer *w, struct err *e)
{
	(void) e;
	for (unsigned r = 0; r < w->mapping->ranks; r++) {
		buf_printf(w->out, "%s ", rankfile_host_of(w, r));
		leaves_write(w, r);
	}
	return 0;
}

static int openmpi_seq_env(const struct rankfile_writer *w, struct err *e)
{
	(void) e;
	buf_printf(w->out, "OMPI_MCA_rmaps_base_mapping_policy=seq\nOMPI_MCA_orte_default_hostfile=%s\n", w->path);
	return 0;
}

static int no_env(const struct rankfile_writer *w, struct err *e)
{
	(void) w, (void) e;
	return 0;
}

typedef int part_fn(const struct rankfile_writer *w, struct err *e);

static const struct format {
	const char *name;
	part_fn *file, *env;
	bool numbers;
} formats[] = {
	{ "plain", plain_file, no_env, false },
	{ "openmpi", openmpi_file, openmpi_env, false },
	{ "openmpi-seq", openmpi_seq_file, openmpi_seq_env, false },
	{ "openmpi5", openmpi_file, no_env, false },
	{ "mpich", rankfile_hydra_file, rankfile_hydra_env, true },
	{ "intelmpi", rankfile_intel_file, rankfile_intel_env, true },
	{ "mvapich2", rankfile_mvapich_file, rankfile_mvapich_env, true },
	{ "cray", rankfile_cray_file, rankfile_cray_env, false },
	{ "srun", rankfile_srun_file, rankfile_srun_env, false },
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
static int write_part(const struct format *f, part_fn *part, const struct rankfile_writer *w, struct err *e)
{
	size_t len = w->out->len;

	if (check_numbers(f, w->places, e))
		return -1;
	if (part(w, e)) {
		w->out->len = len;
		return err_within(e, "%s", f->name);
	}
	return w->out->failed ? err_set(e, "rank file: out of memory") : 0;
}

int rankfile_write(const char *format, const struct places *p, const struct mapping *m, struct buf *out, struct err *e)
{
	const struct format *f = format_find(format);
	struct rankfile_writer w = { .places = p, .mapping = m, .out = out };

	return f ? write_part(f, f->file, &w, e) : rankfile_check(format, e);
}

int rankfile_env(const char *format, const struct places *p, const struct mapping *m, const char *path, struct buf *out,
		 struct err *e)
{
	const struct format *f = format_find(format);
	struct rankfile_writer w = { .places = p, .mapping = m, .path = path, .out = out };

	return f ? write_part(f, f->env, &w, e) : rankfile_check(format, e);
}
