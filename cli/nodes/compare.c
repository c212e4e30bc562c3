/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "hwcmp/compare.h"

#include <signal.h>

#include "base/file.h"
#include "base/order.h"
#include "hwcmp/hwdiff.h"
#include "hwxml/canon.h"
#include "nodes.h"
#include "table.h"
#include "target.h"

/*
 * Changes of topologies: `topiary diff` of any two, `topiary verify` of one against its class or a file, and of all
 * nodes `topiary drift`.
 */

struct args {
	/* diff */
	struct cmd_words names;
	bool hwloc, all;
	/* verify */
	int mode, least;	/* enum verify_mode, enum severity */
	const char *against, *name;
	bool verbose;
	/* drift */
	int severity;		/* 0: any */
	const char *hosts;
};

int drift_severity_parse(const char *name)
{
	int severity = severity_parse(name);

	return severity < SEVERITY_COSMETIC ? -1 : severity;
}

/* As in the registry's answers: {"severity", "direction", "object", "what", "from", "to", "words"}. */
static json_t *changes_to_json(const struct changes *c)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < c->n; i++)
		if (json_array_append_new(list, change_to_json(&c->list[i]))) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static char *member_text(const json_t *o, const char *key)
{
	return strdup(json_string_value(json_object_get(o, key)) ?: "");
}

/* Severity, direction and words are mandatory. 0, or -1 with out untouched. */
static int changes_from_json(const json_t *list, struct changes *out, struct err *e)
{
	struct changes c = { .list = calloc(json_array_size(list) + 1, sizeof(*c.list)) };
	const json_t *o;
	size_t i;

	if (!json_is_array(list))
		err_set(e, "the registry's answer has no list of changes");
	else if (!c.list)
		err_set(e, "out of memory");
	if (!json_is_array(list) || !c.list)
		goto error;
	json_array_foreach(list, i, o) {
		const char *direction = json_string_value(json_object_get(o, "direction"));
		int s = severity_parse(json_string_value(json_object_get(o, "severity")) ?: ""), d = 0;
		struct change *x = &c.list[c.n];

		while (d < DIRECTION_COUNT && strcmp(change_direction_name(d), direction ? direction : ""))
			d++;
		if (s < 0 || d == DIRECTION_COUNT || !json_is_string(json_object_get(o, "words"))) {
			err_set(e, "the registry's answer has a change without severity, direction or words");
			goto error;
		}
		c.n++;
		*x = (struct change){ s, d, member_text(o, "object"), member_text(o, "what"), member_text(o, "from"),
				      member_text(o, "to"), member_text(o, "words") };
		if (!x->object || !x->what || !x->from || !x->to || !x->words) {
			err_set(e, "out of memory");
			goto error;
		}
	}
	*out = c;
	return 0;
error:
	changes_free(&c);
	return -1;
}

static size_t changes_count(const struct changes *c, enum severity s)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += c->list[i].severity == s;
	return n;
}

/* "capacity  NUMA node 3: memory 64 GiB -> 48 GiB", coloured on a terminal; control characters become spaces. */
static void change_print(const struct change *c)
{
	static const char *const colours[SEVERITY_COUNT] = {
		[SEVERITY_IDENTITY] = "\033[2m", [SEVERITY_COSMETIC] = "", [SEVERITY_WIRING] = "\033[33m",
		[SEVERITY_SLOW] = "\033[33m", [SEVERITY_CAPACITY] = "\033[31m",
	};
	bool coloured = isatty(STDOUT_FILENO) && *colours[c->severity];

	printf("%s%-8s  ", coloured ? colours[c->severity] : "", severity_name(c->severity));
	for (const char *p = c->words; *p; p++)
		putchar(iscntrl((unsigned char) *p) ? ' ' : *p);
	puts(coloured ? "\033[0m" : "");
}

static int output_end(struct err *e)
{
	return fflush(stdout) || ferror(stdout) ? err_set(e, "stdout: %s", strerror(errno)) : 0;
}

/* --- diff --- */

enum { STATUS_EQUAL, STATUS_DIFFERENT, STATUS_TROUBLE };	/* diff(1) */

static const struct cmd_option diff_options[] = {
	{ "all", 0, NULL, CMD_FLAG(all), "Also report differences of identity: names, serial numbers, addresses" },
	{ "hwloc", 0, NULL, CMD_FLAG(hwloc),
	  "Print hwloc's diff XML for hwloc-patch(1), if hwloc can express the difference" },
	{0},
};

static void check_names(void *args, struct argp_state *state)
{
	const struct cmd_words *names = &((struct args *) args)->names;

	if (names->n != 2 && (names->n != 1 || !strchr(names->list[0], '@')))
		argp_error(state, "expected two of FILE, NODE or NODE@WHEN, or one NODE@WHEN to compare with its "
			   "present state");
}

static const struct cmd_syntax diff_syntax = {
	diff_options, "A B\nNODE@WHEN",
	"Compare two topologies, each a file, a NODE or a NODE@WHEN.\v"
	"The exit status is 0 if they are equal apart from names, serial numbers and addresses, 1 if they differ, "
	"2 on an error.",
	CMD_WORDS(names), NULL, check_names,
};

/* One side of the comparison: a file, or a node at some time. */
struct end {
	const char *name;
	struct target target;	/* node "" for a file */
	struct buf xml;
	struct tree *tree;
};

static int print_hwloc(const struct end ends[2], struct err *e)
{
	const struct buf *a = &ends[0].xml, *b = &ends[1].xml;
	struct canon was = {0}, is = {0};
	struct buf out = {0};
	int rc = canon_parse(a->data, a->len, ends[0].name, &was, e) ||
		 canon_parse(b->data, b->len, ends[1].name, &is, e) ? -1 :
		 hwdiff_xml(was.xml.data, was.xml.len, is.xml.data, is.xml.len, &out, e);

	if (rc > 0)
		rc = err_set(e, "%.100s and %.100s: hwloc's diff format cannot express added or removed objects",
			     ends[0].name, ends[1].name);
	else if (!rc)
		rc = out.failed ? err_set(e, "out of memory") : cmd_write(NULL, &out, e);
	buf_free(&out);
	canon_free(&was);
	canon_free(&is);
	return rc;
}

static int print_diff(const struct cmd *c, const struct end ends[2], const struct changes *changes, bool all,
		      struct err *e)
{
	json_t *counts = json_object();
	const char *gap = ": ";

	for (size_t i = 0; !c->json && i < changes->n; i++)
		if (all || changes->list[i].severity != SEVERITY_IDENTITY)
			change_print(&changes->list[i]);
	if (!c->json)
		printf("%zu change%s", changes->n, PLURAL(changes->n));
	for (int s = SEVERITY_COUNT - 1; s >= 0; s--) {
		size_t n = changes_count(changes, s);

		if (s != SEVERITY_SLOW)		/* which a comparison does not find */
			json_object_set_new(counts, severity_name(s), json_integer(n));
		if (n && !c->json) {
			printf("%s%zu %s", gap, n, severity_name(s));
			gap = ", ";
		}
	}
	if (c->json)
		return cmd_print_new(json_pack("{s:s,s:s,s:o,s:o}", "from", ends[0].name, "to", ends[1].name, "changes",
					       changes_to_json(changes), "counts", counts), e);
	json_decref(counts);
	putchar('\n');
	return output_end(e);
}

int cmd_diff(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	struct end ends[2] = {0};
	struct changes changes;
	int rc = 0;

	c->status = argp_err_exit_status = STATUS_TROUBLE;
	if (cmd_parse(c, &diff_syntax, &a, argc, argv, e))
		return -1;
	for (int i = 0; rc == 0 && i < 2; i++) {
		struct end *d = &ends[i];

		d->name = i < a.names.n ? a.names.list[i] : ends[0].target.node;
		if (strchr(d->name, '/') || !access(d->name, F_OK))
			rc = file_read(d->name, CANON_MAX_BYTES, &d->xml, e);
		else if ((rc = target_parse(d->name, &d->target, e)) == 0)
			rc = target_read(c, &d->target, NULL, &d->xml, e);
		rc = rc || !(d->tree = tree_parse(d->xml.data ?: "", d->xml.len, d->name, e)) ? -1 : 0;
	}
	if (rc == 0 && (rc = compare_trees(ends[0].tree, ends[1].tree, &changes, e)) == 0) {
		bool itself = *ends[0].target.node && !strcmp(ends[0].target.node, ends[1].target.node);

		rc = a.hwloc ? print_hwloc(ends, e) : print_diff(c, ends, &changes, a.all || itself, e);
		if (rc == 0)
			c->status = changes_count(&changes, SEVERITY_IDENTITY) < changes.n ? STATUS_DIFFERENT :
											     STATUS_EQUAL;
		changes_free(&changes);
	}
	tree_free(ends[0].tree);
	tree_free(ends[1].tree);
	buf_free(&ends[0].xml);
	buf_free(&ends[1].xml);
	return rc;
}

/* --- verify --- */

#define STATUS_UNKNOWN 4
#define SECONDS 10

/* The exit status by severity. */
static const int statuses[SEVERITY_COUNT] = {
	[SEVERITY_COSMETIC] = 1, [SEVERITY_WIRING] = 2, [SEVERITY_SLOW] = 5, [SEVERITY_CAPACITY] = 3,
};

static const struct cmd_option verify_options[] = {
	{ "mode", 0, "MODE",
	  CMD_KEYWORD(mode, verify_mode_parse, "strict, allow-extra, allow-missing, ignore"),
	  "strict (default), allow-extra, allow-missing or ignore" },
	{ "against", 0, "FILE", CMD_TEXT(against), "Compare with this XML file, without the registry" },
	{ "severity", 0, "SEVERITY", CMD_KEYWORD(least, drift_severity_parse, "cosmetic, wiring, slow, capacity"),
	  "Ignore changes below cosmetic, wiring (default), slow or capacity" },
	{ "verbose", 0, NULL, CMD_FLAG(verbose), "Also report success" },
	{0},
};

static const struct cmd_syntax verify_syntax = {
	verify_options, "[NODE]\n--against FILE [FILE]",
	"Check a node against its class, or a topology against a file, for Slurm's HealthCheckProgram.\v"
	"The exit status is 0 for no change, 1 for cosmetic changes, 2 for wiring, 5 for a slow node, 3 for capacity, "
	"4 on an error.",
	CMD_TEXT(name), NULL, NULL,
};

static void on_alarm(int)
{
	static const char words[] = "topiary: verify: no answer within 10 s\n";
	ssize_t ignored = write(STDERR_FILENO, words, sizeof(words) - 1);

	(void) ignored;
	_exit(STATUS_UNKNOWN);
}

/* Of a file against another, or of a node against its class. */
static int changes_find(const struct cmd *c, const struct args *a, const char *name, struct changes *out,
			struct err *e)
{
	struct tree *expected, *is;
	json_t *answer;
	int rc = -1;

	if (a->against) {
		if ((expected = tree_of_file(a->against, e)) && (is = tree_of_file(name, e))) {
			rc = compare_trees(expected, is, out, e);
			tree_free(is);
		}
		tree_free(expected);
	} else if ((answer = cmd_get_node(c, name, "/drift", e))) {
		rc = changes_from_json(json_object_get(answer, "changes"), out, e);
		json_decref(answer);
	}
	return rc;
}

int cmd_verify(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .mode = VERIFY_STRICT, .least = SEVERITY_WIRING };
	struct changes changes;
	int verdict, rc = 0;
	const char *name;
	size_t n = 0;

	c->status = argp_err_exit_status = STATUS_UNKNOWN;
	if (cmd_parse(c, &verify_syntax, &a, argc, argv, e))
		return -1;
	signal(SIGALRM, on_alarm);
	alarm(SECONDS);
	name = a.name ? a.name : a.against ? c->settings.topology_file : c->settings.node_name;
	if (changes_find(c, &a, name, &changes, e))
		return -1;
	/* Changes that the mode allows, or below the severity, are not reported. */
	for (size_t i = 0; i < changes.n; i++)
		if (changes_verdict(&(struct changes){ &changes.list[i], 1 }, a.mode) >= a.least)
			changes.list[n++] = changes.list[i];
		else
			change_free(&changes.list[i]);
	changes.n = n;
	verdict = changes_verdict(&changes, a.mode);
	if (c->json) {
		rc = cmd_print_new(json_pack("{s:s,s:s?,s:o}", "checked", name, "severity",
					     verdict < 0 ? NULL : severity_name(verdict), "changes",
					     changes_to_json(&changes)), e);
	} else {
		for (size_t i = 0; i < changes.n; i++)
			change_print(&changes.list[i]);
		if (!changes.n && a.verbose)
			printf("%s: as expected\n", name);
		rc = output_end(e);
	}
	if (rc == 0)
		c->status = verdict < 0 ? 0 : statuses[verdict];
	changes_free(&changes);
	return rc;
}

/* --- drift --- */

static const struct cmd_option drift_options[] = {
	{ "severity", 0, "SEVERITY", CMD_KEYWORD(severity, drift_severity_parse, "cosmetic, wiring, slow, capacity"),
	  "Only nodes whose most severe change is this: cosmetic, wiring, slow or capacity" },
	{0},
};

static const struct cmd_syntax drift_syntax = {
	drift_options, "[HOSTLIST]",
	"List nodes that have drifted from the baseline of their class, grouped by change.", CMD_TEXT(hosts), NULL,
	NULL,
};

static void describe_changes(const json_t *node, struct buf *out)
{
	const json_t *change;
	size_t i;

	buf_printf(out, "%s\n%s", cmd_text(node, "severity"), cmd_text(node, "class"));
	json_array_foreach(json_object_get(node, "changes"), i, change)
		buf_printf(out, "\n%s", cmd_text(change, "words"));
}

static int severity_of(const struct group *g)
{
	return severity_parse(cmd_text(g->rows->row, "severity"));
}

/* By severity, then by number of nodes, both descending. */
ORDER(by_gravity, struct group, severity_of(y) - severity_of(x) ?: COMPARE(y->n, x->n) ?:
      host_compare(&x->rows->host, &y->rows->host))

static int print_drift(const json_t *drift, struct err *e)
{
	size_t nodes[SEVERITY_COUNT] = {0}, all = 0;
	struct groups groups;
	struct table *t;
	int rc;

	if (groups_make(drift, describe_changes, &groups, e))
		return -1;
	qsort(groups.list, groups.n, sizeof(*groups.list), by_gravity);
	t = table_new("SEVERITY|CLASS|SINCE|>NODES|CHANGE|~HOSTS");
	for (const struct group *g = groups.list; g < groups.list + groups.n; g++) {
		const json_t *node = g->rows->row, *changes = json_object_get(node, "changes");
		const char *since = cmd_text(node, "since");
		struct buf hosts = {0};
		char when[WHEN_MAX];

		/* The earliest; RFC 3339 in UTC sorts as text. */
		for (size_t i = 1; i < g->n; i++)
			if (strcmp(cmd_text(g->rows[i].row, "since"), since) < 0)
				since = cmd_text(g->rows[i].row, "since");
		group_hosts(g, &hosts);
		table_cell(t, "%s", cmd_text(node, "severity"));
		table_severity(t, cmd_text(node, "severity"));
		table_cell(t, "%s|%s|%zu|%s|%s", cmd_text(node, "class"), when_local(since, when), g->n,
			   cmd_text(json_array_get(changes, 0), "words"), hosts.failed ? "?" : hosts.data);
		for (size_t i = 1; i < json_array_size(changes); i++)
			table_cell(t, "||||%s|", cmd_text(json_array_get(changes, i), "words"));
		buf_free(&hosts);
		all += g->n;
		if (severity_of(g) >= 0)
			nodes[severity_of(g)] += g->n;
	}
	rc = table_finish(t, e);
	if (rc == 0)
		printf("%zu node%s with drift: %zu capacity, %zu slow, %zu wiring, %zu cosmetic\n", all,
		       PLURAL(all), nodes[SEVERITY_CAPACITY], nodes[SEVERITY_SLOW], nodes[SEVERITY_WIRING],
		       nodes[SEVERITY_COSMETIC]);
	groups_free(&groups);
	return rc;
}

int cmd_drift(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	struct buf path = {0};
	json_t *answer;
	int rc;

	if (cmd_parse(c, &drift_syntax, &a, argc, argv, e))
		return -1;
	buf_puts(&path, "/v1/drift");
	cmd_query(&path, "severity", a.severity ? severity_name(a.severity) : NULL);
	if (!(answer = cmd_get_list(c, &path, "drift", e)))
		return -1;
	cmd_warn_truncated(answer, "select one severity with --severity");
	rc = a.hosts ? hosts_keep(c, a.hosts, answer, "drift", false, e) : 0;
	if (rc == 0)
		rc = c->json ? cmd_print_json(answer, e) : print_drift(json_object_get(answer, "drift"), e);
	json_decref(answer);
	return rc;
}
