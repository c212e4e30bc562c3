/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/log.h"
#include "base/order.h"
#include "nodes.h"
#include "table.h"
#include "target.h"

/* What the registry has of nodes: `topiary nodes`, `shapes`, `history` and `facts`. */
struct args {
	const char *hosts;	/* of facts without one the node */
	/* nodes */
	const char *shape, *class, *drift;
	bool names;
	/* history */
	const char *node;
	unsigned limit;		/* 0: the registry's */
	/* facts */
	const char *fact, *value;
};

/* --- nodes --- */

static void set_drift(void *args, const char *severity, struct argp_state *state)
{
	if (severity && strcmp(severity, "any") && drift_severity_parse(severity) < 0)
		argp_error(state, "--drift=%s: invalid value, expected one of: cosmetic, wiring, slow, capacity, any",
			   severity);
	((struct args *) args)->drift = severity ? severity : "any";
}

static const struct cmd_option nodes_options[] = {
	{ "shape", 0, "SHAPE", CMD_TEXT(shape), "Only nodes of this shape" },
	{ "class", 0, "CLASS", CMD_TEXT(class), "Only nodes of this class" },
	{ "drift", 0, "SEVERITY", CMD_OPTIONAL(set_drift),
	  "Only nodes that have drifted from the baseline of their class: cosmetic, wiring, slow, "
	  "capacity or any (default)" },
	{ "names", 0, NULL, CMD_FLAG(names), "Print only names, one per line" },
	{0},
};

static const struct cmd_syntax nodes_syntax = {
	nodes_options, "[HOSTLIST]", "List the nodes that the registry knows.", CMD_TEXT(hosts), NULL, NULL,
};

static int nodes_print_table(const json_t *nodes, struct err *e)
{
	struct table *t = table_new("NODE|CLASS|DRIFT|SHAPE|STORED|>BYTES|>XML|LAST BOOT");
	json_int_t stored = 0, xml = 0;
	size_t i, drifted = 0;
	const json_t *node;

	json_array_foreach(nodes, i, node) {
		const char *base = json_string_value(json_object_get(node, "base"));
		char when[WHEN_MAX];

		table_cell(t, "%s|%s|%s", cmd_text(node, "node"), cmd_text(node, "class"), cmd_text(node, "drift"));
		table_severity(t, cmd_text(node, "drift"));
		table_cell(t, "%s|%s%s%s|%" JSON_INTEGER_FORMAT "|%" JSON_INTEGER_FORMAT "|%s", cmd_text(node, "shape"),
			   cmd_text(node, "stored"), base ? " of " : "", base ? base : "",
			   cmd_number(node, "stored_bytes"), cmd_number(node, "xml_bytes"),
			   when_local(json_string_value(json_object_get(node, "last_boot")), when));
		stored += cmd_number(node, "stored_bytes");
		xml += cmd_number(node, "xml_bytes");
		drifted += json_is_string(json_object_get(node, "drift"));
	}
	if (table_finish(t, e))
		return -1;
	printf("%zu node%s, %zu with drift; %" JSON_INTEGER_FORMAT " bytes stored for %" JSON_INTEGER_FORMAT
	       " bytes of XML\n",
	       i, PLURAL(i), drifted, stored, xml);
	return 0;
}

static int nodes_print_names(const json_t *nodes, struct err *e)
{
	const json_t *node;
	size_t i;

	json_array_foreach(nodes, i, node)
		puts(cmd_text(node, "node"));
	return fflush(stdout) || ferror(stdout) ? err_set(e, "cannot write the names to standard output") : 0;
}

static int print_name(const char *name, void *)
{
	puts(name);
	return 0;
}

/* All names come folded with the shapes, in a thousandth of the bytes: fast enough for completion in a shell. */
static int print_all_names(const struct cmd *c, struct err *e)
{
	struct buf path = {0}, hosts = {0}, sorted = {0};
	const json_t *shape;
	json_t *answer;
	int rc = 0;
	size_t i;

	buf_puts(&path, "/v1/shapes");
	if (!(answer = cmd_get_list(c, &path, "shapes", e)))
		return -1;
	json_array_foreach(json_object_get(answer, "shapes"), i, shape)
		buf_printf(&hosts, "%s%s", i ? "," : "", cmd_text(shape, "hosts"));
	json_decref(answer);
	if (hosts.failed)
		rc = err_set(e, "out of memory");
	else if (hosts.len)
		rc = hostlist_fold(hosts.data, &sorted, e);
	if (rc == 0 && sorted.len)
		rc = hostlist_expand(sorted.data, print_name, NULL, e);
	if (rc == 0 && (fflush(stdout) || ferror(stdout)))
		rc = err_set(e, "cannot write the names to standard output");
	buf_free(&sorted);
	buf_free(&hosts);
	return rc;
}

int cmd_nodes(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	struct buf path = {0};
	json_t *answer, *nodes;
	bool is_filtered;
	int rc = 0;

	if (cmd_parse(c, &nodes_syntax, &a, argc, argv, e))
		return -1;
	is_filtered = a.shape || a.class || a.drift;
	if (a.names && !c->json && !a.hosts && !is_filtered)
		return print_all_names(c, e);
	buf_puts(&path, "/v1/nodes");
	hosts_query(&path, a.hosts);
	cmd_query(&path, "shape", a.shape);
	cmd_query(&path, "class", a.class);
	cmd_query(&path, "drift", a.drift);
	if (!(answer = cmd_get_list(c, &path, "nodes", e)))
		return -1;
	cmd_warn_truncated(answer, "select fewer nodes with a host list");
	if (a.hosts)
		rc = hosts_keep(c, a.hosts, answer, "nodes", !is_filtered, e);
	if (rc == 0)
		rc = hosts_sort(answer, "nodes", e);
	nodes = json_object_get(answer, "nodes");
	if (rc == 0)
		rc = c->json ? cmd_print_json(answer, e) :
		     a.names ? nodes_print_names(nodes, e) : nodes_print_table(nodes, e);
	json_decref(answer);
	return rc;
}

/* --- shapes --- */

static const struct cmd_syntax shapes_syntax = {
	.operands = "", .help = "List the shapes of the nodes, and which nodes have each.",
};

static void shapes_row(struct table *t, const json_t *shape)
{
	table_cell(t, "%s|%lld|%lld|%lld|%s|%s", cmd_text(shape, "shape"), cmd_number(shape, "nodes"),
		   cmd_number(shape, "cores"), cmd_number(shape, "pus"), cmd_text(shape, "hosts"),
		   cmd_text(shape, "hierarchy"));
}

int cmd_shapes(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct buf path = {0};

	if (cmd_parse(c, &shapes_syntax, NULL, argc, argv, e))
		return -1;
	buf_puts(&path, "/v1/shapes");
	return cmd_print_list(c, &path, "shapes", NULL, "SHAPE|>NODES|>CORES|>PUS|~HOSTS|~HIERARCHY", shapes_row, e);
}

/* --- history --- */

static const struct cmd_option history_options[] = {
	{ "limit", 0, "N", CMD_NUMBER(limit, 1, 999999999), "Only the last N exports" },
	{0},
};

static const struct cmd_syntax history_syntax = {
	history_options, "NODE", "List a node's exports, newest first, and what changed each time.", CMD_TEXT(node),
	"a NODE", NULL,
};

static void history_row(struct table *t, const json_t *export)
{
	const json_t *changes = json_object_get(export, "changes"), *change;
	const char *end = json_string_value(json_object_get(export, "until"));
	char since[WHEN_MAX], until[WHEN_MAX];
	size_t i;

	table_cell(t, "%s|%s|%s|%s|%" JSON_INTEGER_FORMAT "|%s", when_local(cmd_text(export, "since"), since),
		   end ? when_local(end, until) : "now", cmd_text(export, "shape"), cmd_text(export, "stored"),
		   cmd_number(export, "stored_bytes"), cmd_text(json_array_get(changes, 0), "words"));
	table_severity(t, cmd_text(json_array_get(changes, 0), "severity"));
	json_array_foreach(changes, i, change) {
		if (!i)
			continue;
		table_cell(t, "|||||%s", cmd_text(change, "words"));
		table_severity(t, cmd_text(change, "severity"));
	}
}

int cmd_history(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct buf path = {0};
	struct args a = {0};

	if (cmd_parse(c, &history_syntax, &a, argc, argv, e))
		return -1;
	cmd_node_path(&path, a.node, "/history");
	cmd_query_number(&path, "limit", a.limit);
	return cmd_print_list(c, &path, "history", a.limit ? NULL : "use --limit to get more",
			      "SINCE|UNTIL|SHAPE|STORED|>BYTES|CHANGE", history_row, e);
}

/* --- facts --- */

static const struct cmd_option facts_options[] = {
	{ "fact", 0, "NAME", CMD_TEXT(fact), "Print this fact for all nodes, or for those in HOSTLIST" },
	{ "value", 0, "VALUE", CMD_TEXT(value), "Only nodes where the fact has this value" },
	{0},
};

static void facts_check_together(void *args, struct argp_state *state)
{
	const struct args *a = args;

	if (!a->fact && !a->hosts)
		argp_error(state, "a NODE or --fact=NAME is required");
	if (a->value && !a->fact)
		argp_error(state, "--value requires --fact");
}

static const struct cmd_syntax facts_syntax = {
	facts_options, "NODE\n--fact=NAME [HOSTLIST]", "Look up serial numbers, addresses, memory, kernels.",
	CMD_TEXT(hosts),
	NULL, facts_check_together,
};

int facts_print(const json_t *facts, struct err *e)
{
	struct table *t = table_new("OBJECT|FACT|VALUE");
	const json_t *fact;
	size_t i;

	json_array_foreach(facts, i, fact)
		table_cell(t, "%s|%s|%s", cmd_text(fact, "object"), cmd_text(fact, "fact"), cmd_text(fact, "value"));
	return table_finish(t, e);
}

static void describe_fact(const json_t *row, struct buf *out)
{
	buf_printf(out, "%s\n%s", cmd_text(row, "object"), cmd_text(row, "value"));
}

/* By object, then by number of nodes, descending. */
ORDER(by_count, struct group, strcmp(cmd_text(x->rows->row, "object"), cmd_text(y->rows->row, "object")) ?:
      COMPARE(y->n, x->n) ?: host_compare(&x->rows->host, &y->rows->host))

static int print_groups(const json_t *facts, struct err *e)
{
	struct groups groups;
	struct table *t;
	int rc;

	if (groups_make(facts, describe_fact, &groups, e))
		return -1;
	qsort(groups.list, groups.n, sizeof(*groups.list), by_count);
	t = table_new("OBJECT|VALUE|>NODES|~HOSTS");
	for (size_t i = 0; i < groups.n; i++) {
		struct buf hosts = {0};

		group_hosts(&groups.list[i], &hosts);
		table_cell(t, "%s|%s|%zu|%s", cmd_text(groups.list[i].rows->row, "object"),
			   cmd_text(groups.list[i].rows->row, "value"), groups.list[i].n,
			   hosts.failed ? "?" : hosts.data);
		buf_free(&hosts);
	}
	rc = table_finish(t, e);
	groups_free(&groups);
	return rc;
}

int cmd_facts(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	struct buf path = {0};
	json_t *answer, *facts;
	int rc = 0;

	if (cmd_parse(c, &facts_syntax, &a, argc, argv, e))
		return -1;
	if (a.fact) {
		buf_puts(&path, "/v1/facts");
		cmd_query(&path, "fact", a.fact);
		hosts_query(&path, a.hosts);
		cmd_query(&path, "value", a.value);
	} else {
		cmd_node_path(&path, a.hosts, "/facts");
	}
	if (!(answer = cmd_get_list(c, &path, "facts", e)))
		return -1;
	cmd_warn_truncated(answer, "select fewer nodes with a host list");
	if (a.fact && a.hosts)
		rc = hosts_keep(c, a.hosts, answer, "facts", false, e);
	facts = json_object_get(answer, "facts");
	if (rc == 0 && a.fact && !json_array_size(facts))
		log_warning("%s: %s has this fact%s; `topiary facts NODE` prints the facts of a node", a.fact,
			    a.hosts ? "none of these nodes" : "no node", a.value ? " with this value" : "");
	if (rc == 0)
		rc = c->json ? cmd_print_json(answer, e) : a.fact ? print_groups(facts, e) : facts_print(facts, e);
	json_decref(answer);
	return rc;
}
