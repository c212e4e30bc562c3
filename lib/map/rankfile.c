/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map/rankfile.h"

#include <string.h>

static void leaves(struct buf *out, const unsigned *leaf, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		buf_printf(out, "%s%u", i ? "," : "", leaf[i]);
	buf_puts(out, "\n");
}

static void plain_line(struct buf *out, unsigned rank, const char *host)
{
	buf_printf(out, "%u %s ", rank, host);
}

static void openmpi_line(struct buf *out, unsigned rank, const char *host)
{
	buf_printf(out, "rank %u=%s slot=", rank, host);
}

static const struct format {
	const char *name;
	void (*begin)(struct buf *out, unsigned rank, const char *host);	/* a line, up to its leaves */
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

		f->begin(out, r, p->hosts[place->host]);
		leaves(out, &p->leaf[place->leaf], place->leaves);
	}
	return out->failed ? err_set(e, "rank file: out of memory") : 0;
}
