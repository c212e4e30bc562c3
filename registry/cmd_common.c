/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cmd.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "client/http.h"

enum { OPT_CONFIG = 0x100, OPT_URL, OPT_JSON };

static const struct argp_option options[] = {
	{ "config", OPT_CONFIG, "FILE", 0, "Read this instead of topiary.conf", 90 },
	{ "url", OPT_URL, "URL", 0, "Ask the registry at this address", 90 },
	{ "json", OPT_JSON, NULL, 0, "Answer in JSON", 90 },
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct cmd *c = state->input;

	switch (key) {
	case OPT_CONFIG:
		c->config = arg;
		return 0;
	case OPT_URL:
		c->url = arg;
		return 0;
	case OPT_JSON:
		c->json = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp common = { options, parse, NULL, NULL, NULL, NULL, NULL };

struct inputs {
	struct cmd *cmd;
	void *own;
};

static error_t share(int key, char *arg, struct argp_state *state)
{
	struct inputs *in = state->input;

	(void) arg;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[0] = in->own;
	state->child_inputs[1] = in->cmd;
	return 0;
}

int cmd_parse(struct cmd *c, const struct argp *own, void *input, int argc, char **argv, struct err *e)
{
	const struct argp_child children[] = { { own, 0, NULL, 0 }, { &common, 0, NULL, 0 }, {0} };
	const struct argp whole = { NULL, share, own->args_doc, own->doc, children, NULL, NULL };
	struct inputs in = { c, input };

	argp_parse(&whole, argc, argv, 0, NULL, &in);
	return settings_load(c->config, &c->settings, e);
}

/* The registry's own sentence where it gave one. */
static int refused(const char *url, const char *path, const struct http_answer *a, struct err *e)
{
	json_t *j = json_loadb(a->body.data ? a->body.data : "", a->body.len, 0, NULL);
	const char *why = json_string_value(json_object_get(j, "error"));

	err_set(e, "%s%s: status %ld%s%.300s", url, path, a->status, why ? ": " : "", why ? why : "");
	json_decref(j);
	return -1;
}

int cmd_get(const struct cmd *c, const char *path, struct buf *out, struct err *e)
{
	const char *url = c->url ? c->url : c->settings.registry_url;
	const struct http_request r = { .method = "GET", .base = url, .path = path, .timeout = 60 };
	struct http_answer a = {0};

	if (http_do(&r, &a, e))
		return -1;
	if (a.status != 200) {
		refused(url, path, &a, e);
		http_free(&a);
		return -1;
	}
	*out = a.body;
	a.body = (struct buf){0};
	http_free(&a);
	return 0;
}

json_t *cmd_get_json(const struct cmd *c, const char *path, struct err *e)
{
	struct buf b = {0};
	json_error_t why;
	json_t *j;

	if (cmd_get(c, path, &b, e))
		return NULL;
	if (!(j = json_loadb(b.data ? b.data : "", b.len, JSON_REJECT_DUPLICATES, &why)))
		err_set(e, "%s: the registry's answer is no JSON: %s", path, why.text);
	buf_free(&b);
	return j;
}

int cmd_print_json(const json_t *j, struct err *e)
{
	if (json_dumpf(j, stdout, JSON_INDENT(2)) || putchar('\n') == EOF || fflush(stdout))
		return err_set(e, "stdout: %s", strerror(errno));
	return 0;
}

int cmd_write(const char *path, const struct buf *b, struct err *e)
{
	if (path)
		return file_replace(path, b->data, b->len, 0644, e);
	if (fwrite(b->data, 1, b->len, stdout) != b->len || fflush(stdout))
		return err_set(e, "stdout: %s", strerror(errno));
	return 0;
}
