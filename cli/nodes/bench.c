/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <hwloc.h>
#include <math.h>

#include "base/file.h"
#include "base/log.h"
#include "client/claim.h"
#include "cmd.h"
#include "hwbench/hwbench.h"
#include "progress.h"
#include "table.h"
#include "target.h"

#define TIME_NODE 100u	/* milliseconds of each value */
#define ENOUGH 0.95	/* part of a domain's bandwidth with which more cores bring nothing */

struct args {
	unsigned milliseconds;
	bool is_costs, send;
	const char *from, *node;
	struct cmd_words words;	/* the verb, and the node to show */
};

static const struct cmd_option options[] = {
	{ "time", 0, "MS", CMD_NUMBER(milliseconds, 1, 10000),
	  "Milliseconds for each value (default: 100)" },
	{ "from", 0, "FILE", CMD_TEXT(from), "Read what `topiary bench node --json` printed, instead of measuring" },
	{ "costs", 0, NULL, CMD_FLAG(is_costs), "Print only the costs, as `topiary map --costs` reads them" },
	{ "send", 0, NULL, CMD_FLAG(send), "Send the result to the registry, as root of the node or an administrator" },
	{ "node", 0, "NAME", CMD_TEXT(node),
	  "With --send: the node's name in Slurm (default: $SLURMD_NODENAME, or this host's)" },
	{0},
};

static void check_together(void *args, struct argp_state *state)
{
	const struct args *a = args;
	static const struct { const char *verb, *words; int n; } verbs[] = {
		{ "node", "node", 1 }, { "show", "show NODE", 2 },
	};
	const char *verb = a->words.n ? a->words.list[0] : "";
	unsigned i = 0;

	while (i < sizeof(verbs) / sizeof(verbs[0]) && strcmp(verb, verbs[i].verb))
		i++;
	if (i == sizeof(verbs) / sizeof(verbs[0]))
		argp_error(state, "%s%sexpected node or show", verb, *verb ? ": unknown, " : "");
	else if (a->words.n != verbs[i].n)
		argp_error(state, "expected %s", verbs[i].words);
	if (a->send && a->is_costs)
		argp_error(state, "--send and --costs exclude each other");
	if (a->node && !a->send)
		argp_error(state, "--node requires --send");
	if (strcmp(verb, "node") && (a->send || a->is_costs || a->from))
		argp_error(state, "--send, --costs and --from require node");
	if (a->node && !claim_node_valid(a->node))
		argp_error(state, "--node=%s: not the name of a node", a->node);
}

static const struct cmd_syntax syntax = {
	options, "node\nshow NODE",
	"Measure latency and bandwidth of memory between NUMA nodes, bandwidth by number of cores, and how long cores"
	" take to pass a cache line to each other, on the cores and memory that this process may use; or show a "
	"node's values in the registry beside the medians of its class.",
	CMD_WORDS(words), NULL, check_together,
};

static hwloc_topology_t discover(struct err *e)
{
	hwloc_topology_t t;

	if (hwloc_topology_init(&t))
		return err_null(e, "out of memory");
	if (!hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM |
				      HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING) && !hwloc_topology_load(t))
		return t;
	err_set(e, "hwloc cannot discover this machine");
	hwloc_topology_destroy(t);
	return NULL;
}

static int print_costs(const struct hwbench *b, struct err *e)
{
	struct buf out = {0};
	int rc;

	hwbench_costs(b, &out);
	buf_puts(&out, "\n");
	rc = out.failed ? err_set(e, "out of memory") : cmd_write(NULL, &out, e);
	buf_free(&out);
	return rc;
}

/* --- tables --- */

static void number_cell(struct table *t, double value, const char *unit)
{
	table_cell(t, isnan(value) ? "-" : "%.1f %s", value, unit);
}

/* Without rows nothing is printed. */
static int table_if(struct table *t, unsigned rows, struct err *e)
{
	if (rows)
		return table_finish(t, e) || putchar('\n') == EOF ? -1 : 0;
	table_free(t);
	return 0;
}

static int print_handovers(const struct hwbench *b, struct err *e)
{
	struct table *t = table_new("CORES IN DIFFERENT|>PAIRS|>CACHE LINE PASSED IN");
	unsigned n = 0;

	for (int level = LEVEL_PACKAGE; level < LEVEL_COUNT; level++) {
		const struct hwbench_handover *h = &b->handovers[level];

		if (!h->pairs)
			continue;
		table_cell(t, "%s|%u", level_name(level), h->pairs);
		number_cell(t, h->seconds * 1e9, "ns");
		n++;
	}
	return table_if(t, n, e);
}

static int print_between(const struct hwbench *b, struct err *e)
{
	struct table *t = table_new(">CORES OF NUMA NODE|>AND OF NUMA NODE|>CACHE LINE PASSED IN");
	unsigned n = 0;

	for (unsigned from = 0; from < b->numas; from++)
		for (unsigned to = from + 1; to < b->numas; to++) {
			double seconds = b->between[from * b->numas + to];

			if (isnan(seconds))
				continue;
			table_cell(t, "%u|%u", b->os_index[from], b->os_index[to]);
			number_cell(t, seconds * 1e9, "ns");
			n++;
		}
	return table_if(t, n, e);
}

static int print_memory(const struct hwbench *b, struct err *e)
{
	struct table *t = table_new(">CORES OF NUMA NODE|>MEMORY OF NUMA NODE|>LATENCY|>BANDWIDTH");

	for (unsigned i = 0; i < b->numas * b->numas; i++) {
		table_cell(t, "%u|%u", b->os_index[i / b->numas], b->os_index[i % b->numas]);
		number_cell(t, b->latency[i] * 1e9, "ns");
		number_cell(t, b->bandwidth[i] * 1e-9, "GB/s");
	}
	return table_finish(t, e);
}

static int print_domains(const struct hwbench *b, struct err *e)
{
	struct table *t = table_new("DOMAIN|>CORES USED|>BANDWIDTH|");

	for (const struct hwbench_domain *d = b->domains; d < b->domains + b->ndomains; d++) {
		double most = 0;
		bool was_enough = false;

		for (unsigned i = 0; i < d->n; i++)
			most = fmax(most, d->bandwidth[i]);
		for (unsigned i = 0; i < d->n; i++) {
			bool is_enough = d->bandwidth[i] >= ENOUGH * most;

			table_cell(t, "%s of %u cores|%u", level_name(d->level), d->cores, d->used[i]);
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

/* --- in the registry --- */

static int bench_node_send(const struct cmd *c, const char *node, const struct hwbench *b, struct err *e)
{
	json_t *j = hwbench_to_json(b), *answer = NULL;
	char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	struct buf path = {0};
	int rc = 0;

	cmd_node_path(&path, node, "/costs");
	if (!text)
		rc = err_set(e, "out of memory");
	else if (!(answer = cmd_put(c, &path, CLAIM_COSTS, node, text, strlen(text), e)))
		rc = -1;
	else if (c->json)
		rc = cmd_print_json(answer, e);
	else
		printf("%s: costs of %u cores and %u NUMA node%s sent\n", node, b->cores, b->numas,
		       PLURAL(b->numas));
	json_decref(answer);
	json_decref(j);
	free(text);
	return rc;
}

static void quantity_cell(struct table *t, const json_t *row, const char *key)
{
	const json_t *j = json_object_get(row, key);
	bool is_rate = !strncmp(cmd_text(row, "quantity"), HWBENCH_RATE, strlen(HWBENCH_RATE));

	number_cell(t, json_is_number(j) ? json_number_value(j) * (is_rate ? 1e-9 : 1e9) : NAN,
		    is_rate ? "GB/s" : "ns");
}

static int print_node(const struct cmd *c, const char *node, const json_t *list, struct err *e)
{
	json_t *about = cmd_get_node(c, node, "", e);
	json_int_t measured = cmd_number(json_array_get(list, 0), "nodes");
	char when[WHEN_MAX];

	if (!about)
		return -1;
	printf("%s: measured %s; class %s, ", node, when_local(cmd_text(about, "costs_measured"), when),
	       cmd_text(about, "class"));
	if (measured)
		printf("%" JSON_INTEGER_FORMAT " of its nodes measured\n\n", measured);
	else
		puts("whose medians topiaryd has not computed yet\n");
	json_decref(about);
	struct table *t = table_new("QUANTITY|>VALUE|>CLASS|>SLOW BEYOND|");
	const json_t *row;
	size_t i;

	json_array_foreach(list, i, row) {
		bool is_slow = json_is_true(json_object_get(row, "slow"));

		table_cell(t, "%s", cmd_text(row, "quantity"));
		quantity_cell(t, row, "value");
		quantity_cell(t, row, "median");
		quantity_cell(t, row, "limit");
		table_cell(t, "%s", is_slow ? "slow" : "");
		table_severity(t, is_slow ? "slow" : "");
	}
	return table_finish(t, e);
}

/* --- the command --- */

static void tell_progress(void *user, unsigned, unsigned all)
{
	struct progress *p = user;

	p->total = all;
	progress_step(p, 1);
}

static int node_measure(const struct args *a, struct hwbench *b, struct err *e)
{
	hwloc_topology_t t = discover(e);
	struct progress progress;
	double load;
	int rc;

	if (!t)
		return -1;
	/* Others use the node: what of its cores they use is not this program's. Below 1 it may be left from before. */
	if (getloadavg(&load, 1) == 1 && load > fmax(1, 0.1 * hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE)))
		log_warning("bench: this node has a load of %.1f: it is slower than when idle", load);
	progress_start(&progress, "measuring", 0);
	rc = hwbench_run(b, t, a->milliseconds * 1e-3, tell_progress, &progress, e);
	progress_end(&progress);
	hwloc_topology_destroy(t);
	return rc;
}

static int file_result(const char *path, struct hwbench *b, struct err *e)
{
	struct buf text = {0};
	json_error_t why;
	json_t *j = NULL;
	int rc = file_read(path, HWBENCH_JSON_MAX, &text, e);

	if (rc == 0 && !(j = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, &why)))
		rc = err_set(e, "%s: line %d: %s", path, why.line, why.text);
	if (rc == 0 && (rc = hwbench_from_json(b, j, e)))
		err_within(e, "%s", path);
	json_decref(j);
	buf_free(&text);
	return rc;
}

int cmd_bench(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .milliseconds = TIME_NODE };
	struct hwbench b = {0};
	int rc;

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	if (a.words.n > 1) {
		const char *node = a.words.list[1];
		struct buf path = {0};
		json_t *answer, *list;

		cmd_node_path(&path, node, "/costs");
		if (!(answer = cmd_get_list(c, &path, "costs", e)))
			return -1;
		list = json_object_get(answer, "costs");
		if (c->json)
			rc = cmd_print_json(answer, e);
		else if (!json_array_size(list))
			rc = err_set(e, "%s: not measured with its present hardware; see topiary bench node --send",
				     node);
		else
			rc = print_node(c, node, list, e);
		json_decref(answer);
		return rc;
	}
	rc = a.from ? file_result(a.from, &b, e) : node_measure(&a, &b, e);
	if (rc == 0)
		rc = a.send ? bench_node_send(c, a.node ?: getenv("SLURMD_NODENAME") ?: c->settings.node_name, &b, e) :
		     c->json ? cmd_print_new(hwbench_to_json(&b), e) : a.is_costs ? print_costs(&b, e) :
		     print_handovers(&b, e) || print_between(&b, e) || print_memory(&b, e) || print_domains(&b, e) ?
		     -1 : 0;
	hwbench_free(&b);
	return rc;
}
