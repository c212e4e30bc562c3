/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

/* Extents: "4 x 4 x 4" of a torus, the largest fan-out of a tree. */
static void level_size(struct buf *b, const struct hierarchy_level *l)
{
	for (unsigned d = 0; d < l->dims; d++)
		buf_printf(b, "%s%u", d ? " x " : "", l->dim[d]);
}

static int print_planes(const struct fabric *f, struct err *e)
{
	static const struct table_column columns[] = {
		{ "PLANE", TABLE_RIGHT }, { "KIND", TABLE_LEFT }, { "SWITCHES", TABLE_RIGHT }, { "HOSTS", TABLE_RIGHT },
		{ "LINKS", TABLE_RIGHT }, { "CABLES", TABLE_RIGHT }, { NULL, TABLE_LEFT },
	};
	struct table *t = table_new(columns);

	for (unsigned i = 0; t && i < f->nplanes; i++) {
		const struct fabric_plane *p = &f->planes[i];

		table_cell(t, "%u", i);
		table_cell(t, "%s", fabric_kind_name(p->kind));
		table_cell(t, "%u", p->switches);
		table_cell(t, "%u", p->hosts);
		table_cell(t, "%u", p->links);
		table_cell(t, "%u", p->cables);
	}
	return table_finish(t, e);
}

/* What an element of a tree's level is called. */
static const char *element_name(const struct hierarchy *h, unsigned l)
{
	if (l + 1 == h->nlevels)
		return "host";
	return l + 2 == h->nlevels ? "leaf switch" : "group";
}

static int print_levels(const struct fabric *f, struct err *e)
{
	static const struct table_column columns[] = {
		{ "PLANE", TABLE_RIGHT }, { "LEVEL", TABLE_RIGHT }, { "OF", TABLE_LEFT }, { "AT MOST", TABLE_RIGHT },
		{ "COST", TABLE_RIGHT }, { "PRUNED", TABLE_RIGHT }, { NULL, TABLE_LEFT },
	};
	struct table *t = table_new(columns);

	for (unsigned i = 0; t && i < f->nplanes; i++)
		for (unsigned l = 0; f->planes[i].levels && l < f->planes[i].levels->nlevels; l++) {
			const struct hierarchy_level *level = &f->planes[i].levels->level[l];
			struct buf size = {0};

			level_size(&size, level);
			table_cell(t, "%u", i);
			table_cell(t, "%u", l);
			table_cell(t, "%s", element_name(f->planes[i].levels, l));
			table_cell(t, "%s", size.failed ? "?" : size.data);
			table_cell(t, "%u", level->cost[0]);
			if (level->pruned > 100)
				table_cell(t, "%u.%02u:1", level->pruned / 100, level->pruned % 100);
			else
				table_cell(t, "-");
			buf_free(&size);
		}
	return table_finish(t, e);
}

/* Switches with their hosts and trunks. */
static int print_switches(const struct fabric *f, struct err *e)
{
	static const struct table_column columns[] = {
		{ "SWITCH", TABLE_LEFT }, { "PLANE", TABLE_RIGHT }, { "RANK", TABLE_RIGHT }, { "HOSTS", TABLE_RIGHT },
		{ "NEIGHBOURS", TABLE_RIGHT }, { "CABLES", TABLE_RIGHT }, { NULL, TABLE_LEFT },
	};
	struct {
		unsigned hosts, neighbours, cables;
	} *sums = calloc(f->nswitches + 1, sizeof(*sums));
	struct table *t = table_new(columns);
	int rc = -1;

	for (unsigned i = 0; sums && i < f->nlinks; i++) {
		const struct fabric_link *l = &f->links[i];

		if (l->a >= f->nswitches)
			continue;
		sums[l->a].hosts += l->b >= f->nswitches;
		for (unsigned end = 0; end < 2 && l->b < f->nswitches; end++) {
			sums[end ? l->b : l->a].neighbours++;
			sums[end ? l->b : l->a].cables += l->count;
		}
	}
	for (unsigned i = 0; sums && t && i < f->nswitches; i++) {
		table_cell(t, "%s", f->nodes[i].name);
		table_cell(t, "%u", f->nodes[i].plane);
		table_cell(t, "%u", f->nodes[i].rank);
		table_cell(t, "%u", sums[i].hosts);
		table_cell(t, "%u", sums[i].neighbours);
		table_cell(t, "%u", sums[i].cables);
	}
	if (sums && t)
		rc = table_print(t, stdout);
	free(sums);
	table_free(t);
	return rc ? err_set(e, "cannot write the table to standard output") : 0;
}

static int print_odd(const struct fabric *f, struct err *e)
{
	struct buf odd = {0};
	int rc = 0;

	fabric_list_anomalies(f, &odd);
	if (odd.failed)
		rc = err_set(e, "out of memory");
	else if (odd.len && (putchar('\n') == EOF || fputs(odd.data, stdout) == EOF))
		rc = err_set(e, "stdout: %s", strerror(errno));
	buf_free(&odd);
	return rc;
}

int fabric_print(const struct fabric *f, struct err *e)
{
	if (print_planes(f, e) || putchar('\n') == EOF || print_levels(f, e) || putchar('\n') == EOF ||
	    print_switches(f, e))
		return -1;
	return print_odd(f, e);
}
