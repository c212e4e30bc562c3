/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cmd.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "client/http.h"

#define TIMEOUT 60	/* seconds */

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
	const struct argp whole = { NULL, share, NULL, NULL, children, NULL, NULL };
	struct inputs in = { c, input };

	argp_parse(&whole, argc, argv, 0, NULL, &in);
	return settings_load(c->config, &c->settings, e);
}

error_t cmd_words(int key, char *arg, struct argp_state *state)
{
	struct words *w = state->input;

	(void) arg;
	switch (key) {
	case ARGP_KEY_ARGS:
		w->list = state->argv + state->next;
		w->n = state->argc - state->next;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which %s?", w->what);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
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

static int ask(const struct cmd *c, struct http_request r, struct buf *out, struct err *e)
{
	struct http_answer a = {0};

	r.base = c->url ? c->url : c->settings.registry_url;
	r.timeout = TIMEOUT;
	if (http_do(&r, &a, e))
		return -1;
	if (a.status != 200) {
		refused(r.base, r.path, &a, e);
		http_free(&a);
		return -1;
	}
	buf_puts(&a.body, "");	/* an answer without a body is text, too */
	if (a.body.failed) {
		http_free(&a);
		return err_set(e, "out of memory");
	}
	*out = a.body;
	a.body = (struct buf){0};
	http_free(&a);
	return 0;
}

static json_t *ask_json(const struct cmd *c, struct http_request r, struct err *e)
{
	struct buf b = {0};
	json_error_t why;
	json_t *j;

	if (ask(c, r, &b, e))
		return NULL;
	if (!(j = json_loadb(b.data, b.len, JSON_REJECT_DUPLICATES, &why)))
		err_set(e, "%.300s: the registry's answer is no JSON: %s", r.path, why.text);
	buf_free(&b);
	return j;
}

int cmd_get(const struct cmd *c, const char *path, struct buf *out, struct err *e)
{
	return ask(c, (struct http_request){ .method = "GET", .path = path }, out, e);
}

json_t *cmd_get_json(const struct cmd *c, const char *path, struct err *e)
{
	return ask_json(c, (struct http_request){ .method = "GET", .path = path }, e);
}

json_t *cmd_get_list(const struct cmd *c, struct buf *path, const char *list, struct err *e)
{
	json_t *answer = NULL;

	if (path->failed)
		err_set(e, "out of memory");
	else
		answer = cmd_get_json(c, path->data, e);
	if (answer && !json_is_array(json_object_get(answer, list))) {
		err_set(e, "%.300s: the registry's answer has no list of %s", path->data, list);
		json_decref(answer);
		answer = NULL;
	}
	buf_free(path);
	return answer;
}

void cmd_tell_truncated(const json_t *answer, const char *advice)
{
	if (json_is_true(json_object_get(answer, "truncated")))
		log_warning("the registry has more than it tells at once: %s", advice);
}

static json_t *ask_signed(const struct cmd *c, struct http_request r, const char *credential, struct err *e)
{
	struct buf authorization = {0};
	json_t *answer = NULL;

	buf_printf(&authorization, "Munge %s", credential);
	r.authorization = authorization.data;
	if (authorization.failed)
		err_set(e, "out of memory");
	else
		answer = ask_json(c, r, e);
	buf_free(&authorization);
	return answer;
}

json_t *cmd_post(const struct cmd *c, const char *path, const char *credential, struct err *e)
{
	return ask_signed(c, (struct http_request){ .method = "POST", .path = path }, credential, e);
}

json_t *cmd_put(const struct cmd *c, const char *path, const char *credential, const struct buf *body, struct err *e)
{
	return ask_signed(c, (struct http_request){ .method = "PUT", .path = path, .content_encoding = "zstd", .body = body->data,
						    .length = body->len }, credential, e);
}

static void add_escaped(struct buf *path, const char *text)
{
	char *escaped = http_escape(text);

	if (escaped)
		buf_puts(path, escaped);
	else
		path->failed = true;
	free(escaped);
}

void cmd_node_path(struct buf *path, const char *node, const char *tail)
{
	buf_puts(path, "/v1/nodes/");
	add_escaped(path, node);
	buf_puts(path, tail);
}

void cmd_query(struct buf *path, const char *key, const char *value)
{
	if (!value || path->failed)
		return;
	buf_printf(path, "%c%s=", strchr(path->data, '?') ? '&' : '?', key);
	add_escaped(path, value);
}

json_t *cmd_get_node(const struct cmd *c, const char *node, const char *tail, struct err *e)
{
	struct buf path = {0};
	json_t *answer = NULL;

	cmd_node_path(&path, node, tail);
	if (path.failed)
		err_set(e, "%s: out of memory", node);
	else
		answer = cmd_get_json(c, path.data, e);
	buf_free(&path);
	return answer;
}

const char *cmd_text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "-";
}

json_int_t cmd_number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
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

unsigned cmd_arg_number(struct argp_state *state, const char *what, const char *text, unsigned min)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || n < min || n > UINT32_MAX)
		argp_error(state, "%s: '%s' is no such number", what, text);
	return n;
}
