/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/rankfile.h"

#include <string.h>

static void plain_line(struct buf *out, unsigned rank, const char *host, unsigned leaf)
{
	buf_printf(out, "%u %s %u\n", rank, host, leaf);
}

static void openmpi_line(struct buf *out, unsigned rank, const char *host, unsigned leaf)
{
	buf_printf(out, "rank %u=%s slot=%u\n", rank, host, leaf);
}

static const struct format {
	const char *name;
	void (*line)(struct buf *out, unsigned rank, const char *host, unsigned leaf);
} formats[] = {
	{ "plain", plain_line },
	{ "openmpi", openmpi_line },
};

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static const struct format *format_find(const char *name)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

static int unknown(const char *name, struct err *e)
{
	struct buf names = {0};

	for (size_t i = 0; i < FORMATS; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", formats[i].name);
	err_set(e, "%s: no such format of rank files; there are: %s", name, names.failed ? "" : names.data);
	buf_free(&names);
	return -1;
}

int rankfile_write(const char *format, const struct places *p, const struct mapping *m, struct buf *out, struct err *e)
{
	const struct format *f = format_find(format);

	if (!f)
		return unknown(format, e);
	for (unsigned r = 0; r < m->ranks; r++) {
		const struct place *place = &p->place[m->place[r]];

		f->line(out, r, p->hosts[place->host], place->leaf);
	}
	return out->failed ? err_set(e, "rank file: out of memory") : 0;
}
