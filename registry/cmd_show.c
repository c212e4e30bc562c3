/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "client/http.h"
#include "cmd.h"
#include "topo/draw.h"

enum form { FORM_SUMMARY, FORM_XML = 0x200, FORM_SVG, FORM_SYNTHETIC, OPT_CORES };

struct args {
	enum form form;
	const char *node, *cores, *output;
};

static const struct argp_option options[] = {
	{ "xml", FORM_XML, NULL, 0, "The exported XML, as the node sent it", 0 },
	{ "svg", FORM_SVG, NULL, 0, "A drawing", 0 },
	{ "synthetic", FORM_SYNTHETIC, NULL, 0, "The shape, as a synthetic string", 0 },
	{ "cores", OPT_CORES, "LIST", 0, "Colour these cores in the drawing, e.g. 0-3,8", 0 },
	{ "output", 'o', "FILE", 0, "Write there instead of on standard output", 0 },
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case FORM_XML:
	case FORM_SVG:
	case FORM_SYNTHETIC:
		a->form = key;
		return 0;
	case OPT_CORES:
		a->cores = arg;
		return 0;
	case 'o':
		a->output = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (a->node)
			return ARGP_ERR_UNKNOWN;
		a->node = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->node)
			argp_error(state, "which node?");
		if (a->cores && a->form != FORM_SVG)
			argp_error(state, "--cores goes with --svg");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = { options, parse, "NODE", "Show one node.", NULL, NULL, NULL };

static char *node_path(const char *node, const char *tail)
{
	char *segment = http_escape(node), *path = NULL;

	if (segment && asprintf(&path, "/v1/nodes/%s%s", segment, tail) < 0)
		path = NULL;
	free(segment);
	return path;
}

static json_t *get_node(const struct cmd *c, const char *node, struct err *e)
{
	char *path = node_path(node, "");
	json_t *j = NULL;

	if (!path)
		err_set(e, "%s: out of memory", node);
	else
		j = cmd_get_json(c, path, e);
	free(path);
	return j;
}

static int show_summary(const struct cmd *c, const struct args *a, struct buf *out, struct err *e)
{
	json_t *j = get_node(c, a->node, e), *value;
	const char *key;

	if (!j)
		return -1;
	if (c->json) {
		char *text = json_dumps(j, JSON_INDENT(2));

		buf_printf(out, "%s\n", text ? text : "");
		out->failed |= !text;
		free(text);
	} else json_object_foreach(j, key, value) {
		char *text = json_is_string(value) ? strdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY);

		buf_printf(out, "%-14s %s\n", key, text ? text : "");
		out->failed |= !text;
		free(text);
	}
	json_decref(j);
	return 0;
}

static const char *synthetic_of(const json_t *shapes, const char *name)
{
	const json_t *shape;
	size_t i;

	json_array_foreach(json_object_get(shapes, "shapes"), i, shape) {
		const char *s = json_string_value(json_object_get(shape, "shape"));

		if (s && !strcmp(s, name))
			return json_string_value(json_object_get(shape, "synthetic"));
	}
	return NULL;
}

static int show_synthetic(const struct cmd *c, const struct args *a, struct buf *out, struct err *e)
{
	json_t *node = get_node(c, a->node, e), *shapes = node ? cmd_get_json(c, "/v1/shapes", e) : NULL;
	const char *name = json_string_value(json_object_get(node, "shape"));
	const char *text = shapes && name ? synthetic_of(shapes, name) : NULL;

	if (text)
		buf_printf(out, "%s\n", text);
	else if (shapes)
		err_set(e, "%s: the registry tells no shape of it", a->node);
	json_decref(shapes);
	json_decref(node);
	return text ? 0 : -1;
}

static int show_xml(const struct cmd *c, const struct args *a, struct buf *out, struct err *e)
{
	char *path = node_path(a->node, "/topology");
	int rc = path ? cmd_get(c, path, out, e) : err_set(e, "%s: out of memory", a->node);

	free(path);
	return rc;
}

static int show_svg(const struct cmd *c, const struct args *a, struct buf *out, struct err *e)
{
	struct buf xml = {0};
	int rc;

	if (show_xml(c, a, &xml, e))
		return -1;
	rc = draw_svg(xml.data, xml.len, a->cores, out, e);
	buf_free(&xml);
	return rc ? err_within(e, "%s", a->node) : 0;
}

static int show(const struct cmd *c, const struct args *a, struct buf *out, struct err *e)
{
	switch (a->form) {
	case FORM_XML:
		return show_xml(c, a, out, e);
	case FORM_SVG:
		return show_svg(c, a, out, e);
	case FORM_SYNTHETIC:
		return show_synthetic(c, a, out, e);
	default:
		return show_summary(c, a, out, e);
	}
}

int cmd_show(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .form = FORM_SUMMARY };
	struct buf out = {0};
	int rc;

	if (cmd_parse(c, &argp, &a, argc, argv, e))
		return -1;
	rc = show(c, &a, &out, e);
	if (rc == 0)
		rc = out.failed ? err_set(e, "%s: out of memory", a.node) : cmd_write(a.output, &out, e);
	buf_free(&out);
	return rc;
}
