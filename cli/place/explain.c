/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map.h"

#include <jansson.h>

#include "table.h"

static double gain(double from, double to)
{
	return from > 0 ? 100 * (from - to) / from : 0;
}

static int as_json(const struct mapping *m, const struct places *p, const char *costs, FILE *out, struct err *e)
{
	json_t *j = json_pack("{s:s, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:f}",
			      "costs", costs,
			      "ranks", (int) m->ranks, "places", (int) p->nplaces, "hosts", (int) p->nhosts,
			      "network_levels", (int) (p->network ? p->network->nlevels : 0), "cost", m->cost,
			      "block", m->block, "cyclic", m->cyclic, "scotch", m->scotch,
			      "gain_over_block", gain(m->block, m->cost), "gain_over_cyclic", gain(m->cyclic, m->cost),
			      "busiest_nic", m->nic, "busiest_nic_block", m->nic_block, "method", m->method,
			      "seconds", m->seconds);
	int rc = j ? json_dumpf(j, out, JSON_COMPACT) : -1;

	json_decref(j);
	return rc || fputc('\n', out) == EOF || fflush(out) ? err_set(e, "cannot write the costs") : 0;
}

static const struct table_column columns[] = {
	{ "MAPPING", TABLE_LEFT }, { "COST", TABLE_RIGHT }, { "GAIN %", TABLE_RIGHT }, {0},
};

static int as_table(const struct mapping *m, const struct places *p, const char *costs, FILE *out, struct err *e)
{
	const struct {
		const char *name;
		double cost;
	} rows[] = {
		{ "block", m->block }, { "cyclic", m->cyclic }, { "scotch alone", m->scotch }, { m->method, m->cost },
	};
	struct table *t = table_new(columns);
	int rc;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		table_cell(t, "%s%s", i == 3 ? "chosen: " : "", rows[i].name);
		table_cell(t, "%.6g", rows[i].cost);
		table_cell(t, "%.1f", gain(rows[i].cost, m->cost));
	}
	rc = table_print(t, out);
	table_free(t);
	if (rc)
		return err_set(e, "cannot write the costs");
	fprintf(out, "%u rank%s on %u place%s of %u node%s, mapped in %.2f s; gain: relative to the chosen mapping\n",
		m->ranks, m->ranks == 1 ? "" : "s", p->nplaces, p->nplaces == 1 ? "" : "s", p->nhosts,
		p->nhosts == 1 ? "" : "s", m->seconds);
	fprintf(out, "costs %s\n", costs);
	fprintf(out, "busiest node: %.6g bytes exchanged with other nodes, %.6g with block\n", m->nic, m->nic_block);
	return 0;
}

int explain_mapping(const struct mapping *m, const struct places *p, const struct costs *c, bool json, FILE *out,
		    struct err *e)
{
	struct buf costs = {0};
	int rc;

	costs_describe(c, &costs);
	rc = costs.failed ? err_set(e, "out of memory") : (json ? as_json : as_table)(m, p, costs.data, out, e);
	buf_free(&costs);
	return rc;
}
