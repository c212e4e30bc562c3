/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric.h"

#include <stdlib.h>
#include <string.h>

int fabric_write_json(const struct fabric_wish *w, struct buf *out, struct err *e)
{
	json_t *j = fabric_json(w->fabric);
	char *text = j ? json_dumps(j, JSON_INDENT(2)) : NULL;

	if (text)
		buf_printf(out, "%s\n", text);
	free(text);
	json_decref(j);
	return text ? 0 : err_set(e, "out of memory");
}

static int write_slurm(const struct fabric_wish *w, struct buf *out, struct err *e)
{
	return fabric_write_slurm(w->fabric, w->chosen, out, e);
}

static int write_yaml(const struct fabric_wish *w, struct buf *out, struct err *e)
{
	return fabric_write_slurm_yaml(w->fabric, w->chosen, out, e);
}

static const struct hierarchy *plane_of(const struct fabric_wish *w, struct err *e)
{
	if (w->plane < w->fabric->nplanes && w->fabric->planes[w->plane].levels)
		return w->fabric->planes[w->plane].levels;
	err_set(e, "plane %u: no such plane with hosts", w->plane);
	return NULL;
}

static int write_paper(const struct fabric_wish *w, struct buf *out, struct err *e)
{
	const struct hierarchy *h = plane_of(w, e);

	return h ? hierarchy_write(h, out, e) : -1;
}

static int write_scotch(const struct fabric_wish *w, struct buf *out, struct err *e)
{
	const struct hierarchy *h = plane_of(w, e);

	return h ? fabric_write_scotch(h, out, e) : -1;
}

static int write_dot(const struct fabric_wish *w, struct buf *out, struct err *e)
{
	return fabric_write_dot(w->fabric, w->chosen, out, e);
}

static const struct {
	const char *name;
	int (*write)(const struct fabric_wish *w, struct buf *out, struct err *e);
} formats[] = {
	{ "slurm", write_slurm }, { "slurm-yaml", write_yaml }, { "paper", write_paper },
	{ "scotch", write_scotch }, { "dot", write_dot }, { "json", fabric_write_json },
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static size_t format_find(const char *name)
{
	size_t i = 0;

	while (i < FORMATS && strcmp(name, formats[i].name))
		i++;
	return i;
}

bool fabric_format_exists(const char *name)
{
	return format_find(name) < FORMATS;
}

int fabric_export(const struct fabric_wish *w, struct buf *out, struct err *e)
{
	return formats[format_find(w->format)].write(w, out, e) ? err_within(e, "%s", w->format) : 0;
}
