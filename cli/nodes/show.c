/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/hash.h"
#include "hwview/draw.h"
#include "nodes.h"
#include "place/cores.h"
#include "table.h"
#include "target.h"

#define LINE 512
#define LEGEND "L#: hwloc's logical index. White: caches and PUs; pink: memory; grey: cores; olive: PCI devices"

enum form { FORM_SUMMARY, FORM_XML, FORM_CANONICAL, FORM_SVG, FORM_SYNTHETIC, FORM_FACTS };

/* Precisions, each with its member in the registry's answer. */
static const struct precision {
	const char *name, *member;
} precisions[] = {
	{ "hierarchy", "hierarchy" }, { "cores", "cores_only" }, { "detail", "detail" }, { "allocation", "allocation" },
};
#define PRECISIONS (sizeof(precisions) / sizeof(precisions[0]))

struct args {
	int form;		/* enum form */
	const char *node;
	struct target target;
	const struct precision *precision;
	const char *cores, *output;
	unsigned job;		/* 0: none */
};

static void set_synthetic(void *args, const char *text, struct argp_state *state)
{
	struct args *a = args;

	a->precision = NULL;
	for (size_t i = 0; i < PRECISIONS; i++)
		if (!strcmp(precisions[i].name, text ? text : "hierarchy"))
			a->precision = &precisions[i];
	if (!a->precision)
		argp_error(state, "--synthetic=%s: invalid value, expected one of: hierarchy, cores, detail, "
			   "allocation", text);
}

static void check_together(void *args, struct argp_state *state)
{
	struct args *a = args;
	struct err e;

	if (target_parse(a->node, &a->target, &e))
		argp_error(state, "%s", e.text);
	if (a->precision && a->form)
		argp_error(state, "--synthetic excludes --xml, --canonical, --svg and --facts");
	if (a->precision)
		a->form = FORM_SYNTHETIC;
	if (a->cores && a->form != FORM_SVG)
		argp_error(state, "--cores requires --svg");
	if (a->job && a->form != FORM_SVG)
		argp_error(state, "--job requires --svg");
	if (a->output && (a->form == FORM_SUMMARY || a->form == FORM_FACTS))
		argp_error(state, "--output requires --xml, --canonical, --svg or --synthetic");
}

static const struct cmd_option options[] = {
	{ "xml", 0, NULL, CMD_CONSTANT(form, FORM_XML), "The exported XML, as the node sent it" },
	{ "canonical", 0, NULL, CMD_CONSTANT(form, FORM_CANONICAL),
	  "The XML without what changes between exports of one unchanged node" },
	{ "svg", 0, NULL, CMD_CONSTANT(form, FORM_SVG), "A drawing" },
	{ "synthetic", 0, "PRECISION", CMD_OPTIONAL(set_synthetic),
	  "The topology as a synthetic string: hierarchy (default), cores, "
	  "detail or allocation" },
	{ "facts", 0, NULL, CMD_CONSTANT(form, FORM_FACTS), "Serial numbers, addresses, memory, versions" },
	{ "cores", 0, "LIST", CMD_TEXT(cores), "Highlight these cores in the drawing, e.g. 0-3,8" },
	{ "job", 0, "ID", CMD_NUMBER(job, 1, UINT32_MAX),
	  "Highlight the cores of this running job; with --cores, label them as this job's" },
	{ "output", 'o', "FILE", CMD_OUTPUT(output), "Write to FILE instead of standard output" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "NODE[@WHEN]", "Show one node, now or at a time in the past.", CMD_TEXT(node),
	"a NODE", check_together,
};

/* --- a node in words --- */

/* A member of the answer, as it is or as a time, if it has it. */
static void row_text(struct table *t, const char *name, const json_t *node, const char *key, bool is_time)
{
	char when[WHEN_MAX];

	if (!json_is_string(json_object_get(node, key)))
		return;
	table_label(t, name);
	table_cell(t, "%s", is_time ? when_local(cmd_text(node, key), when) : cmd_text(node, key));
}

/* The highest severity, and a line for each change. */
static void describe_drift(struct table *t, const json_t *drift)
{
	const char *severity = json_string_value(json_object_get(drift, "severity"));
	const json_t *change;
	size_t i;

	table_label(t, "drift");
	if (!severity) {
		table_cell(t, "none");
		return;
	}
	table_cell(t, "%s", severity);
	table_severity(t, severity);
	row_text(t, "drift since", drift, "since", true);
	json_array_foreach(json_object_get(drift, "changes"), i, change) {
		table_label(t, "");
		table_cell(t, "%s", cmd_text(change, "words"));
		table_severity(t, cmd_text(change, "severity"));
	}
}

/* A line for each member of the registry's answer, and its drift, which is NULL for a node in the past. */
static int summary_print(const json_t *node, const json_t *drift, struct err *e)
{
	const char *stored = json_string_value(json_object_get(node, "stored"));
	const char *base = json_string_value(json_object_get(node, "base"));
	struct table *t = table_new("|");

	table_label(t, "node");
	table_cell(t, "%s", cmd_text(node, "node"));
	table_colour(t, COLOUR_BOLD);
	row_text(t, "at", node, "at", true);
	row_text(t, "class", node, "class", false);
	if (drift)
		describe_drift(t, drift);
	row_text(t, "shape", node, "shape", false);
	table_label(t, "cores");
	table_cell(t, "%" JSON_INTEGER_FORMAT ", %" JSON_INTEGER_FORMAT " PUs", cmd_number(node, "cores"),
		   cmd_number(node, "pus"));
	row_text(t, "hierarchy", node, "hierarchy", false);
	row_text(t, "allocation", node, "allocation", false);
	row_text(t, "last boot", node, "last_boot", true);
	row_text(t, "topology since", node, "topology_since", true);
	row_text(t, "costs measured", node, "costs_measured", true);
	table_label(t, "XML");
	table_cell(t, "%" JSON_INTEGER_FORMAT " bytes", cmd_number(node, "xml_bytes"));
	if (stored) {
		table_label(t, "stored");
		table_cell(t, "%" JSON_INTEGER_FORMAT " bytes, %s%s%s", cmd_number(node, "stored_bytes"), stored,
			   base ? " of " : "", base ? base : "");
	}
	row_text(t, "SHA-256", node, "sha256", false);
	return table_finish(t, e);
}

/* --- its document --- */

/* Without the fraction by which a second is all of it (target.h). */
static json_t *time_json(const char *at)
{
	size_t n = strcspn(at, ".");

	return strcmp(at + n, "." WHEN_END "Z") ? json_string(at) : json_sprintf("%.*sZ", (int) n, at);
}

/*
 * A node in the past, computed here from the document that the registry has for that time: in the format of the
 * registry's answers about a node and about its facts, with the time as "at". NULL with an error.
 */
static json_t *past_describe(const struct buf *xml, const struct tree *tree, const struct target *t, struct err *e)
{
	char sha256[HASH_HEX];
	struct strings s;
	json_t *j;

	if (strings_make(tree, &s, e))
		return NULL;
	hash_hex(xml->data, xml->len, sha256);
	j = json_pack("{s:s, s:o, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:s}", "node", t->node, "at", time_json(t->at),
		      "hierarchy", s.hierarchy, "cores_only", s.cores, "detail", s.detail, "allocation", s.allocation,
		      "cores", (int) s.ncores, "pus", (int) s.npus, "xml_bytes", (json_int_t) xml->len,
		      "sha256", sha256);
	strings_free(&s);
	if (!j)
		err_set(e, "out of memory");
	return j;
}

static json_t *past_facts(const struct tree *tree, const struct target *t, struct err *e)
{
	json_t *list = json_array(), *j = NULL;
	struct buf text = {0};
	char *line, *rest;

	tree_facts(tree, &text);
	for (rest = text.data; rest && (line = strsep(&rest, "\n")) && *line;) {
		const char *object, *name;

		strsep(&line, "\t");
		object = strsep(&line, "\t");
		name = strsep(&line, "\t");
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "object", object, "fact", name,
						      "value", line));
	}
	if (!text.failed)
		j = json_pack("{s:s, s:o, s:O}", "node", t->node, "at", time_json(t->at), "facts", list);
	if (!j)
		err_set(e, "out of memory");
	json_decref(list);
	buf_free(&text);
	return j;
}

/* The registry's answer about a node, or its facts if these were requested; of the past from the document. */
static json_t *read_words(const struct cmd *c, const struct args *a, struct err *e)
{
	struct buf xml = {0};
	struct tree *tree;
	json_t *j = NULL;

	if (!*a->target.at)
		return cmd_get_node(c, a->target.node, a->form == FORM_FACTS ? "/facts" : "", e);
	if (target_read(c, &a->target, a->form == FORM_CANONICAL ? "canonical" : NULL, &xml, e))
		return NULL;
	if ((tree = tree_parse(xml.data, xml.len, a->target.node, e)))
		j = a->form == FORM_FACTS ? past_facts(tree, &a->target, e) : past_describe(&xml, tree, &a->target, e);
	tree_free(tree);
	buf_free(&xml);
	return j;
}

static int show_synthetic(const struct cmd *c, const struct args *a, const json_t *node, struct err *e)
{
	const char *text = json_string_value(json_object_get(node, a->precision->member));
	char *json = NULL;
	struct buf line = {0};
	json_t *j;
	int rc;

	if (!text)
		return err_set(e, "%s: the registry's answer has no %s", a->target.node, a->precision->name);
	if (c->json) {
		j = json_pack("{s:s, s:s}", "node", a->target.node, a->precision->name, text);
		line.failed = !(json = json_dumps(j, JSON_INDENT(2)));
		json_decref(j);
	}
	buf_printf(&line, "%s\n", json ? json : text);
	free(json);
	rc = line.failed ? err_set(e, "out of memory") : cmd_write(a->output, &line, e);
	buf_free(&line);
	return rc;
}

static int show_words(const struct cmd *c, const struct args *a, struct err *e)
{
	json_t *words = read_words(c, a, e), *drift = NULL;
	int rc = -1;

	if (!words)
		return -1;
	if (a->form == FORM_SYNTHETIC)
		rc = show_synthetic(c, a, words, e);
	else if (c->json)
		rc = cmd_print_json(words, e);
	else if (a->form == FORM_FACTS)
		rc = facts_print(json_object_get(words, "facts"), e);
	else if (*a->target.at || (drift = cmd_get_node(c, a->target.node, "/drift", e)))
		rc = summary_print(words, drift, e);
	json_decref(drift);
	json_decref(words);
	return rc;
}

/* The cores of a job on one node, for cores_job. */
struct cores_there {
	const char *node;
	struct buf cores;
};

static int add_cores(void *there, const char *host, const char *cores, unsigned, struct err *e)
{
	struct cores_there *t = there;

	if (!strcmp(host, t->node))
		buf_puts(&t->cores, cores);
	return t->cores.failed ? err_set(e, "out of memory") : 0;
}

static int load_cores(void *there, const job_info_t *job, struct err *e)
{
	struct cores_there *t = there;

	if (cores_each(job, add_cores, there, e))
		return -1;
	return t->cores.len ? 0 : err_set(e, "the job has no cores on %s", t->node);
}

static int show_drawing(const struct cmd *c, const struct args *a, const struct buf *xml, struct err *e)
{
	struct cores_there job = { .node = a->target.node };
	struct buf drawing = {0}, coloured = {0};
	char of[LINE], when[WHEN_MAX];
	json_t *node = *a->target.at ? NULL : cmd_get_node(c, a->target.node, "", e);
	int rc = node || *a->target.at ? 0 : -1;

	if (*a->target.at)
		snprintf(of, LINE, "%s as of %s", a->target.node, when_local(a->target.at, when));
	else
		snprintf(of, LINE, "%s, unchanged since %s", a->target.node,
			 when_local(cmd_text(node, "topology_since"), when));
	json_decref(node);
	if (rc == 0 && a->job && !a->cores)
		rc = cores_job(a->job, load_cores, &job, e);

	const char *cores = a->cores ? a->cores : job.cores.data;
	const char *caption[DRAW_LINES] = { of, LEGEND, NULL };

	if (cores) {
		buf_printf(&coloured, "Dark green: core%s %s", strpbrk(cores, ",-") ? "s" : "", cores);
		if (a->job)
			buf_printf(&coloured, " of job %u", a->job);
		caption[1] = coloured.data;
		caption[2] = LEGEND;
	}
	if (rc == 0 && (rc = coloured.failed ? err_set(e, "out of memory") : 0) == 0 &&
	    draw_svg(xml->data, xml->len, cores, caption, &drawing, e))
		rc = err_within(e, "%s", a->target.node);
	if (rc == 0)
		rc = cmd_write(a->output, &drawing, e);
	buf_free(&job.cores);
	buf_free(&coloured);
	buf_free(&drawing);
	return rc;
}

int cmd_show(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .form = FORM_SUMMARY };
	struct buf xml = {0};
	int rc;

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	if (a.form != FORM_XML && a.form != FORM_CANONICAL && a.form != FORM_SVG)
		return show_words(c, &a, e);
	if ((rc = target_read(c, &a.target, a.form == FORM_CANONICAL ? "canonical" : NULL, &xml, e)) == 0)
		rc = a.form == FORM_SVG ? show_drawing(c, &a, &xml, e) : cmd_write(a.output, &xml, e);
	buf_free(&xml);
	return rc;
}
