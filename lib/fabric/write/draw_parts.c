/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric/write/draw_parts.h"

#include <math.h>
#include <string.h>

enum {
	LETTER = 61,		/* width of a letter, in tenths */
	NAME_LETTERS = 28,	/* longer names are shortened in the middle */
	TITLE_LETTER = 75,	/* width of a bold letter of the title, in tenths */
};

double draw_width(unsigned letters)
{
	return letters * LETTER / 10.0 + 10;
}

unsigned draw_letters(const char *name)
{
	size_t len = strlen(name);

	return len < NAME_LETTERS ? len : NAME_LETTERS;
}

static void name_write(struct buf *out, const char *name)
{
	size_t len = strlen(name), half = NAME_LETTERS / 2 - 1;

	if (len <= NAME_LETTERS)
		buf_puts(out, name);
	else
		buf_printf(out, "%.*s..%s", (int) half, name, name + len - half);
}

double draw_stroke(unsigned cables)
{
	return 0.8 + 0.6 * log2(cables);
}

void draw_box(struct buf *out, const char *class, double x, double y, double width, double height, const char *name)
{
	buf_printf(out, "<g class=\"%s\"><title>%s</title>"
		   "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\"/>",
		   class, name, x, y, width, height);
	buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\">", x + width / 2, y + height / 2 + 3.5);
	name_write(out, name);
	buf_puts(out, "</text></g>\n");
}

static void dimensions_write(const struct fabric_plane *p, struct buf *out)
{
	const struct hierarchy_level *l = p->levels ? &p->levels->level[0] : NULL;

	for (unsigned d = 0; l && l->form == HIERARCHY_TORUS && d < l->dims; d++)
		buf_printf(out, "%s%u", d ? " x " : " ", l->dim[d]);
}

double draw_title(const struct fabric *f, unsigned plane, double y, struct buf *out)
{
	const struct fabric_plane *p = &f->planes[plane];
	size_t begin, letters;

	buf_printf(out, "<text class=\"t\" x=\"%d\" y=\"%.1f\">", MARGIN, y + 14);
	begin = out->len;
	if (f->nplanes > 1)
		buf_printf(out, "plane %u: ", plane);
	buf_puts(out, fabric_kind_name(p->kind));
	dimensions_write(p, out);
	buf_printf(out, ", %u switch%s, %u host%s", p->switches, p->switches == 1 ? "" : "es", p->hosts,
		   p->hosts == 1 ? "" : "s");
	letters = out->len - begin;
	buf_puts(out, "</text>\n");
	return 2 * MARGIN + letters * TITLE_LETTER / 10.0;
}
