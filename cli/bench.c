/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <hwloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "hwbench/hwbench.h"
#include "map/places/places.h"
#include "progress.h"
#include "table.h"

#define SCALE 10u	/* of --costs: these are integers */
#define ENOUGH 0.95	/* part of a domain's bandwidth with which more cores bring nothing */

struct args {
	unsigned milliseconds;
	bool is_costs;
	const char *what;
};

static const struct cmd_option options[] = {
	{ "time", 0, "MS", CMD_NUMBER(milliseconds, 1, 10000), "Milliseconds for each value; default 100" },
	{ "costs", 0, NULL, CMD_FLAG(is_costs), "Print costs by level for `topiary map --costs` alone" },
	{0},
};

static void check(void *args, struct argp_state *state)
{
	const struct args *a = args;

	if (strcmp(a->what, "node"))
		argp_error(state, "%s: unknown, expected: node", a->what);
}

static const struct cmd_syntax syntax = {
	options, "node",
	"Measure latency and bandwidth of memory between NUMA nodes, bandwidth by number of cores, and how long cores"
	" take to pass a cache line to each other, on the cores and memory that this process may use.",
	CMD_TEXT(what), "node", check,
};

static hwloc_topology_t discover(struct err *e)
{
	hwloc_topology_t t;

	if (hwloc_topology_init(&t)) {
		err_set(e, "out of memory");
		return NULL;
	}
	if (!hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM |
				      HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING) && !hwloc_topology_load(t))
		return t;
	err_set(e, "hwloc cannot discover this machine");
	hwloc_topology_destroy(t);
	return NULL;
}

/* Others use the node: of its cores, what they use is not this program's. */
static void warn_busy(unsigned cores)
{
	double load;

	if (getloadavg(&load, 1) == 1 && load > 0.1 * cores)
		fprintf(stderr, "topiary bench: this node has a load of %.1f: it is slower than when idle\n", load);
}

/* --- costs --- */

/*
 * The nearest cores that were measured cost what they cost by default, others in proportion to the time that they take;
 * cores farther away cost no less, and what was not measured keeps its default.
 */
static void costs_write(const struct hwbench *b, struct buf *out)
{
	double unit = 0, least = 0;
	unsigned cost[LEVEL_COUNT];

	for (int level = LEVEL_CORE; level >= LEVEL_NODE; level--) {
		const struct hwbench_handover *h = &b->handovers[level];
		double own = SCALE * places_default_cost[level];

		if (level != LEVEL_NODE && h->pairs) {
			unit = unit ? unit : own / h->seconds;
			own = h->seconds * unit;
		}
		cost[level] = lround(fmax(own, least));
		least = cost[level];
	}
	for (int level = LEVEL_NODE; level < LEVEL_COUNT; level++)
		buf_printf(out, "%s%s=%u", level ? "," : "", level_name(level), cost[level]);
}

static int print_costs(const struct hwbench *b, struct err *e)
{
	struct buf out = {0};
	int rc;

	costs_write(b, &out);
	buf_puts(&out, "\n");
	rc = out.failed ? err_set(e, "out of memory") : cmd_write(NULL, &out, e);
	buf_free(&out);
	return rc;
}

/* --- tables --- */

static void number_cell(struct table *t, double value, const char *unit)
{
	if (isnan(value))
		table_cell(t, "-");
	else
		table_cell(t, "%.1f %s", value, unit);
}

static int print_handovers(const struct hwbench *b, struct err *e)
{
	static const struct table_column columns[] = {
		{ "CORES IN DIFFERENT", TABLE_LEFT }, { "PAIRS", TABLE_RIGHT }, { "CACHE LINE PASSED IN", TABLE_RIGHT },
		{ NULL, 0 },
	};
	struct table *t = table_new(columns);
	unsigned n = 0;

	for (int level = LEVEL_PACKAGE; level < LEVEL_COUNT; level++) {
		const struct hwbench_handover *h = &b->handovers[level];

		if (!h->pairs)
			continue;
		table_cell(t, "%s", level_name(level));
		table_cell(t, "%u", h->pairs);
		number_cell(t, h->seconds * 1e9, "ns");
		n++;
	}
	if (n)
		return table_finish(t, e) || putchar('\n') == EOF ? -1 : 0;
	table_free(t);
	return 0;
}

static int print_memory(const struct hwbench *b, struct err *e)
{
	static const struct table_column columns[] = {
		{ "CORES OF NUMA NODE", TABLE_RIGHT }, { "MEMORY OF NUMA NODE", TABLE_RIGHT },
		{ "LATENCY", TABLE_RIGHT }, { "BANDWIDTH", TABLE_RIGHT }, { NULL, 0 },
	};
	struct table *t = table_new(columns);

	for (unsigned i = 0; i < b->numas * b->numas; i++) {
		table_cell(t, "%u", b->os_index[i / b->numas]);
		table_cell(t, "%u", b->os_index[i % b->numas]);
		number_cell(t, b->latency[i] * 1e9, "ns");
		number_cell(t, b->bandwidth[i] * 1e-9, "GB/s");
	}
	return table_finish(t, e);
}

static int print_domains(const struct hwbench *b, struct err *e)
{
	static const struct table_column columns[] = {
		{ "DOMAIN", TABLE_LEFT }, { "CORES USED", TABLE_RIGHT }, { "BANDWIDTH", TABLE_RIGHT },
		{ "", TABLE_LEFT }, { NULL, 0 },
	};
	struct table *t = table_new(columns);

	for (const struct hwbench_domain *d = b->domains; d < b->domains + b->ndomains; d++) {
		double most = 0;
		bool was_enough = false;

		for (unsigned i = 0; i < d->n; i++)
			most = fmax(most, d->bandwidth[i]);
		for (unsigned i = 0; i < d->n; i++) {
			bool is_enough = d->bandwidth[i] >= ENOUGH * most;

			table_cell(t, "%s of %u cores", level_name(d->level), d->cores);
			table_cell(t, "%u", d->used[i]);
			number_cell(t, d->bandwidth[i] * 1e-9, "GB/s");
			table_cell(t, "%s", is_enough && !was_enough && i + 1 < d->n ? "more cores bring nothing" : "");
			was_enough |= is_enough;
		}
	}
	if (b->ndomains)
		return putchar('\n') == EOF || table_finish(t, e) ? -1 : 0;
	table_free(t);
	return 0;
}

/* --- JSON --- */

static json_t *value_json(double value)
{
	return isnan(value) ? json_null() : json_real(value);
}

static json_t *memory_json(const struct hwbench *b)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < b->numas * b->numas; i++)
		json_array_append_new(list, json_pack("{s:I, s:I, s:o, s:o}", "from",
						      (json_int_t) b->os_index[i / b->numas], "to",
						      (json_int_t) b->os_index[i % b->numas], "latency_seconds",
						      value_json(b->latency[i]), "bytes_per_second",
						      value_json(b->bandwidth[i])));
	return list;
}

static json_t *domains_json(const struct hwbench *b)
{
	json_t *list = json_array();

	for (const struct hwbench_domain *d = b->domains; d < b->domains + b->ndomains; d++)
		for (unsigned i = 0; i < d->n; i++)
			json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:o}", "level", level_name(d->level),
							      "cores", (json_int_t) d->cores, "used",
							      (json_int_t) d->used[i], "bytes_per_second",
							      value_json(d->bandwidth[i])));
	return list;
}

static json_t *handovers_json(const struct hwbench *b)
{
	json_t *list = json_array();

	for (int level = LEVEL_PACKAGE; level < LEVEL_COUNT; level++)
		if (b->handovers[level].pairs)
			json_array_append_new(list, json_pack("{s:s, s:I, s:f}", "level", level_name(level), "pairs",
							      (json_int_t) b->handovers[level].pairs, "seconds",
							      b->handovers[level].seconds));
	return list;
}

static int print_json(const struct hwbench *b, struct err *e)
{
	struct buf costs = {0};
	json_t *j;
	int rc;

	costs_write(b, &costs);
	j = costs.failed ? NULL :
	    json_pack("{s:I, s:I, s:o, s:o, s:o, s:s}", "cores", (json_int_t) b->cores, "numa_nodes",
		      (json_int_t) b->numas, "cache_line", handovers_json(b), "memory", memory_json(b), "domains",
		      domains_json(b), "costs", costs.data);
	rc = j ? cmd_print_json(j, e) : err_set(e, "out of memory");
	json_decref(j);
	buf_free(&costs);
	return rc;
}

/* --- */

static void tell_progress(void *user, unsigned done, unsigned all)
{
	struct progress *p = user;

	(void) done;
	p->total = all;
	progress_step(p, 1);
}

int cmd_bench(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .milliseconds = 100 };
	struct progress progress;
	struct hwbench b = {0};
	hwloc_topology_t t;
	int rc;

	if (cmd_parse(c, &syntax, &a, argc, argv, e) || !(t = discover(e)))
		return -1;
	warn_busy(hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE));
	progress_start(&progress, "measuring", 0);
	rc = hwbench_run(&b, t, a.milliseconds * 1e-3, tell_progress, &progress, e);
	progress_end(&progress);
	if (rc == 0)
		rc = c->json ? print_json(&b, e) : a.is_costs ? print_costs(&b, e) :
		     print_handovers(&b, e) || print_memory(&b, e) || print_domains(&b, e) ? -1 : 0;
	hwbench_free(&b);
	hwloc_topology_destroy(t);
	return rc;
}
