/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cmd.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "client/cred.h"
#include "client/http.h"
#include "delta/pack.h"
#include "table.h"

#define TIMEOUT 60	/* seconds */

static void set_verbose(void *, const char *, struct argp_state *)
{
	log_set_level("debug");
}

static const struct cmd_option common_options[] = {
	{ NULL, 'v', NULL, CMD_SET(set_verbose), "Report each request to the registry on standard error" },
	{ "config", 0, "FILE", { ARG_TEXT, .at = offsetof(struct cmd, config) },
	  "Read this file instead of topiary.conf" },
	{ "url", 0, "URL", { ARG_TEXT, .at = offsetof(struct cmd, url) }, "Use the registry at this address" },
	{ "json", 0, NULL, { ARG_FLAG, .at = offsetof(struct cmd, json) }, "Print JSON" },
	{0},
};
static const struct cmd_syntax common_syntax = { .options = common_options };

int cmd_parse_common(struct cmd *c, int argc, char **argv)
{
	return cmd_line_parse_first(&common_syntax, c, argc, argv);
}

int cmd_parse(struct cmd *c, const struct cmd_syntax *s, void *args, int argc, char **argv, struct err *e)
{
	cmd_line_parse(s, args, &common_syntax, c, argc, argv);
	for (const struct cmd_option *o = s->options; o && (o->name || o->letter); o++)
		if (o->value.form == ARG_OUTPUT && cmd_writable(*(const char **) ((char *) args + o->value.at), e))
			return -1;
	return settings_load_named(c->config, &c->settings, e);
}

/* The subject to sign for a path with restricted read access (registry/http/access.c); NULL for others. malloc'ed. */
static char *read_about(const char *path)
{
	static const char *const tails[] = { "/facts", "/topology", "/history" };
	static const char nodes[] = "/v1/nodes/", facts[] = "/v1/facts";
	size_t len;

	if (!strncmp(path, facts, sizeof(facts) - 1))
		return strdup("registry");
	if (strncmp(path, nodes, sizeof(nodes) - 1))
		return NULL;
	path += sizeof(nodes) - 1;
	len = strcspn(path, "/");
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++)
		if (!strncmp(path + len, tails[i], strcspn(path + len, "?")) && path[len])
			return strndup(path, len);
	return NULL;
}

/* Without munge a user still reads what is public: a failure to sign matters only when the registry answers 401. */
static char *read_authorization(const struct cmd *c, const char *path, struct err *e)
{
	char *about = read_about(path), *credential = NULL, sha256[HASH_HEX];
	struct buf b = {0};

	hash_hex("", 0, sha256);
	if (about && (credential = cmd_sign(c, CLAIM_READ, about, sha256, 0, e)))
		buf_printf(&b, "Munge %s", credential);
	free(credential);
	free(about);
	return b.data;
}

/* The registry's own error message, where its answer has one. */
static int answer_error(const char *url, const struct http_answer *a, const char *unsigned_why, struct err *e)
{
	json_t *j = http_json(a);
	const char *also = a->status == 401 ? unsigned_why : "";

	err_set(e, "%.200s%s%.200s (registry %s, HTTP status %ld)", http_why(j), *also ? "; " : "", also, url,
		a->status);
	json_decref(j);
	return -1;
}

static int request_send(const struct cmd *c, struct http_request r, struct buf *out, struct err *e)
{
	struct http_answer a = {0};
	struct err unsigned_why = {0}, unknown;
	char *own = r.authorization ? NULL : read_authorization(c, r.path, &unsigned_why);
	double begun;
	int rc;

	r.base = c->url ? c->url : c->settings.registry_url;
	r.timeout = TIMEOUT;
	if (own)
		r.authorization = own;
	if (r.authorization && settings_uid(c->settings.registry_user, &r.owner, &unknown))
		r.owner = 0;
	begun = clock_now();
	rc = http_do(&c->settings, &r, &a, e);
	free(own);
	if (rc)
		return -1;
	log_debug("%s %s%s: status %ld, %zu bytes, %.0f ms", r.method, r.base, r.path, a.status, a.body.len,
		  1000 * (clock_now() - begun));
	if (a.status != 200) {
		answer_error(r.base, &a, unsigned_why.text, e);
		http_free(&a);
		return -1;
	}
	buf_puts(&a.body, "");	/* terminate an empty body, too */
	if (a.body.failed) {
		http_free(&a);
		return err_set(e, "out of memory");
	}
	*out = a.body;
	a.body = (struct buf){0};
	http_free(&a);
	return 0;
}

static json_t *request_json(const struct cmd *c, struct http_request r, struct err *e)
{
	struct buf b = {0};
	json_error_t why;
	json_t *j;

	if (request_send(c, r, &b, e))
		return NULL;
	if (!(j = json_loadb(b.data, b.len, JSON_REJECT_DUPLICATES, &why)))
		err_set(e, "%.300s: the registry's answer is not JSON: %s", r.path, why.text);
	buf_free(&b);
	return j;
}

int cmd_get(const struct cmd *c, const char *path, struct buf *out, struct err *e)
{
	return request_send(c, (struct http_request){ .method = "GET", .path = path }, out, e);
}

json_t *cmd_get_json(const struct cmd *c, struct buf *path, struct err *e)
{
	json_t *answer = NULL;

	if (path->failed)
		err_set(e, "out of memory");
	else
		answer = request_json(c, (struct http_request){ .method = "GET", .path = path->data }, e);
	buf_free(path);
	return answer;
}

json_t *cmd_get_list(const struct cmd *c, struct buf *path, const char *list, struct err *e)
{
	json_t *answer = cmd_get_json(c, path, e);

	if (answer && !json_is_array(json_object_get(answer, list))) {
		err_set(e, "the registry's answer has no list of %s", list);
		json_decref(answer);
		answer = NULL;
	}
	return answer;
}

void cmd_warn_truncated(const json_t *answer, const char *advice)
{
	if (json_is_true(json_object_get(answer, "truncated")))
		log_warning("the registry truncated its answer: %s", advice);
}

char *cmd_sign(const struct cmd *c, const char *purpose, const char *what, const char *sha256, size_t length,
	       struct err *e)
{
	struct claim claim = { .length = length };
	struct timespec now;
	uid_t reader;

	if (settings_uid(c->settings.registry_user, &reader, e) || claim_boot_id(claim.boot_id, e))
		return NULL;
	clock_gettime(CLOCK_REALTIME, &now);
	claim.seq = now.tv_sec * 1000000000ull + now.tv_nsec;
	snprintf(claim.purpose, sizeof(claim.purpose), "%s", purpose);
	snprintf(claim.node, sizeof(claim.node), "%s", what);
	snprintf(claim.sha256, sizeof(claim.sha256), "%s", sha256);
	return cred_sign(&claim, reader, c->settings.munge_socket, e);
}

static json_t *request_signed(const struct cmd *c, struct http_request r, const char *credential, struct err *e)
{
	struct buf authorization = {0};
	json_t *answer = NULL;

	buf_printf(&authorization, "Munge %s", credential);
	r.authorization = authorization.data;
	if (authorization.failed)
		err_set(e, "out of memory");
	else
		answer = request_json(c, r, e);
	buf_free(&authorization);
	return answer;
}

json_t *cmd_post(const struct cmd *c, struct buf *path, char *credential, struct err *e)
{
	json_t *answer = NULL;

	if (credential && path->failed)
		err_set(e, "out of memory");
	else if (credential)
		answer = request_signed(c, (struct http_request){ .method = "POST", .path = path->data }, credential,
					e);
	buf_free(path);
	free(credential);
	return answer;
}

json_t *cmd_put(const struct cmd *c, struct buf *path, const char *purpose, const char *what, const char *text,
		size_t len, struct err *e)
{
	char sha256[HASH_HEX], *credential = NULL;
	struct buf body = {0};
	json_t *answer = NULL;

	hash_hex(text, len, sha256);
	if (path->failed)
		err_set(e, "out of memory");
	else if (zip_make(text, len, &body, e) == 0 && (credential = cmd_sign(c, purpose, what, sha256, len, e)))
		answer = request_signed(c, (struct http_request){ .method = "PUT", .path = path->data,
								  .content_encoding = "zstd", .body = body.data,
								  .length = body.len }, credential, e);
	free(credential);
	buf_free(&body);
	buf_free(path);
	return answer;
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

void cmd_query_number(struct buf *path, const char *key, unsigned n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	cmd_query(path, key, n ? text : NULL);
}

json_t *cmd_get_node(const struct cmd *c, const char *node, const char *tail, struct err *e)
{
	struct buf path = {0};

	cmd_node_path(&path, node, tail);
	return cmd_get_json(c, &path, e);
}

bool cmd_has_word(const char *list, char separator, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; at && (at = strstr(at, word)); at += n ? n : 1)
		if ((at == list || at[-1] == separator) && (!at[n] || at[n] == separator))
			return true;
	return false;
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

int cmd_print_new(json_t *j, struct err *e)
{
	int rc = j ? cmd_print_json(j, e) : err_set(e, "cannot print JSON: out of memory, or a name is not UTF-8");

	json_decref(j);
	return rc;
}

void cmd_add_json(struct buf *out, const json_t *j)
{
	char *text = json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);

	for (const char *c = text; c && *c; c++)
		if (*c == '<')
			buf_puts(out, "\\u003c");
		else
			buf_add(out, c, 1);
	out->failed |= !text;
	free(text);
}

int cmd_print_list(const struct cmd *c, struct buf *path, const char *list, const char *truncated, const char *heads,
		   void (*row)(struct table *t, const json_t *row), struct err *e)
{
	json_t *answer = cmd_get_list(c, path, list, e), *one;
	struct table *t;
	size_t i;
	int rc;

	if (!answer)
		return -1;
	if (truncated)
		cmd_warn_truncated(answer, truncated);
	if (c->json) {
		rc = cmd_print_json(answer, e);
	} else {
		t = table_new(heads);
		json_array_foreach(json_object_get(answer, list), i, one)
			row(t, one);
		rc = table_finish(t, e);
	}
	json_decref(answer);
	return rc;
}

/*
 * Renaming onto a device replaces the device itself: as root, -o /dev/null made it a regular file. /dev/stdout may link
 * to a file.
 */
bool cmd_is_device(const char *path)
{
	struct stat st;

	return !strncmp(path, "/dev/", 5) || (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

int cmd_writable(const char *path, struct err *e)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	char folder[PATH_MAX];
	struct stat st;

	if (!path || (cmd_is_device(path) && !access(path, W_OK)))
		return 0;
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int) (slash - path) + 1 : 1, slash ? path : ".");
	if (!cmd_is_device(path) && !access(folder, W_OK | X_OK)) {
		if (stat(path, &st) || !S_ISDIR(st.st_mode))
			return 0;
		errno = EISDIR;
	}
	return err_set(e, "cannot write %s: %s", path, strerror(errno));
}

int cmd_write(const char *path, const struct buf *b, struct err *e)
{
	int fd;

	if (path && !cmd_is_device(path))
		return file_replace(path, b->data, b->len, 0644, e);
	if (path) {
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		return fd < 0 || file_write(fd, b->data, b->len) || close(fd) ?
			err_set(e, "%s: %s", path, strerror(errno)) : 0;
	}
	if (fwrite(b->data, 1, b->len, stdout) != b->len || fflush(stdout))
		return err_set(e, "stdout: %s", strerror(errno));
	return 0;
}
