/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "call.h"

#include <stdarg.h>

#include "base/clock.h"
#include "base/log.h"

/*
 * Notes
 *
 * Of a call its thread alone writes; the lock is of the reasons that were logged, for all threads.
 */
#define REPORT_SECONDS 60	/* between two lines about requests that fail alike */
#define REASONS 8		/* that are told apart at a time */
#define RETRY_SECONDS 10	/* at most, at random: clients refused together do not return together */

const char *call_param(const struct call *c, const char *name)
{
	for (unsigned i = 0; i < c->nparams; i++)
		if (!strcmp(c->params[i].name, name))
			return c->params[i].value;
	return NULL;
}

void call_json(struct call *c, unsigned status, json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	json_decref(json);
	if (!text) {
		c->reply.status = 500;
		return;
	}
	buf_free(&c->reply.body);
	buf_puts(&c->reply.body, text);
	buf_puts(&c->reply.body, "\n");
	free(text);
	c->reply.status = status;
	c->reply.type = "application/json";
}

/* Why requests fail, without the node's name: for the same reason all of them do while PostgreSQL is down. */
static struct failure {
	char reason[256];
	double logged;		/* in clock_now */
	unsigned long more;	/* since then */
} failures[REASONS];
static pthread_mutex_t failures_lock = PTHREAD_MUTEX_INITIALIZER;

void call_log_failure(const char *node, const char *text)
{
	size_t len = strlen(node);
	const char *reason = len && !strncmp(text, node, len) && text[len] == ':' ? text + len : text;
	struct failure *f = failures, *oldest = failures;
	double now = clock_now();

	pthread_mutex_lock(&failures_lock);
	/* That of this reason, or the one logged longest ago to be replaced by it. */
	for (; f < failures + REASONS && strncmp(f->reason, reason, sizeof(f->reason) - 1); f++)
		if (f->logged < oldest->logged)
			oldest = f;
	if (f == failures + REASONS) {
		f = oldest;
		*f = (struct failure){0};
		snprintf(f->reason, sizeof(f->reason), "%.*s", (int) sizeof(f->reason) - 1, reason);
	}
	if (f->logged && now < f->logged + REPORT_SECONDS) {
		f->more++;
	} else {
		if (f->more)
			log_error("%s (%lu more requests failed for this reason within %.0f s)", text, f->more,
				  now - f->logged);
		else
			log_error("%s", text);
		f->logged = now;
		f->more = 0;
	}
	pthread_mutex_unlock(&failures_lock);
}

int call_fail(struct call *c, unsigned status, const char *fmt, ...)
{
	char text[768];
	va_list ap;

	assert(status >= 400 && status < 600);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* Text of a worker or a client may not be UTF-8, which JSON requires. */
	for (char *p = text; *p; p++)
		if ((unsigned char) *p < ' ' || (unsigned char) *p > '~')
			*p = '?';
	if (status >= 500)
		call_log_failure(c->node, text);
	c->reply.retry_after = status == 503 ? 1 + random() % RETRY_SECONDS : 0;
	call_json(c, status, json_pack("{s:s}", "error", text));
	return -1;
}

void call_body(struct call *c, const char *type, struct buf *body)
{
	if (body->failed) {
		buf_free(body);
		call_fail(c, 503, "%s%sout of memory", c->node, *c->node ? ": " : "");
		return;
	}
	buf_free(&c->reply.body);
	c->reply.body = *body;
	c->reply.status = 200;
	c->reply.type = type;
	*body = (struct buf){0};
}

static struct db *pool_acquire(struct call *c, struct db_pool *pool)
{
	struct err e;
	struct db *db = db_acquire(pool, &e);

	if (!db)
		call_fail(c, 503, "%s%s%s", c->node, *c->node ? ": " : "", e.text);
	return db;
}

struct db *call_acquire_writer(struct call *c)
{
	return pool_acquire(c, c->service->pool);
}

struct db *call_acquire_reader(struct call *c)
{
	return pool_acquire(c, *c->node ? c->service->readers : c->service->lists);
}

int call_check_zstd(struct call *c)
{
	return c->encoding && !strcasecmp(c->encoding, "zstd") ? 0 :
	       call_fail(c, 415, "%s: the body must be zstd (Content-Encoding)", c->node);
}

int call_check_length(struct call *c, size_t max)
{
	return c->claim.length <= max ? 0 :
	       call_fail(c, 413, "%s: %llu bytes, at most %zu are allowed", c->node,
			 (unsigned long long) c->claim.length, max);
}

int call_body_text(struct call *c, struct buf *out)
{
	char sha256[HASH_HEX];
	struct err e;

	if (zip_open(c->body.data ? c->body.data : "", c->body.len, c->claim.length, out, &e))
		return call_fail(c, 422, "%s: %s", c->node, e.text);
	log_debug("%s: decompressed %zu bytes to %zu", c->node, c->body.len, out->len);
	hash_hex(out->data, out->len, sha256);
	if (out->len != c->claim.length || strcmp(sha256, c->claim.sha256))
		return call_fail(c, 422, "%s: the body differs from the document that was signed", c->node);
	return 0;
}

json_t *call_body_json(struct call *c)
{
	struct buf text = {0};
	json_error_t why;
	json_t *j = NULL;

	if (call_body_text(c, &text) == 0 && !(j = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &why)))
		call_fail(c, 422, "%s: line %d: %s", c->node, why.line, why.text);
	buf_free(&text);
	return j;
}

bool call_node_canonical(const struct call *c, char *name)
{
	return hostlist_name_canonical(name, !strcasecmp(c->service->settings.node_domain, "keep"));
}

int call_check_credential(struct call *c)
{
	static const char scheme[] = "Munge ";
	char name[sizeof(c->claim.node)];
	struct err e;

	if (!c->authorization || strncasecmp(c->authorization, scheme, sizeof(scheme) - 1))
		return call_fail(c, 401, "%s: the 'Authorization: Munge' credential is missing", c->node);
	if (cred_check(c->authorization + sizeof(scheme) - 1, c->service->settings.munge_socket, &c->claim, &c->signer,
		       &e))
		return call_fail(c, errno == EHOSTDOWN ? 503 : 401, "%s: %s", c->node, e.text);
	memcpy(name, c->claim.node, sizeof(name));
	memcpy(c->signed_name, name, sizeof(name));
	if (call_node_canonical(c, name) && !strcmp(name, c->node))
		memcpy(c->claim.node, name, sizeof(name));
	if (strcmp(c->claim.purpose, c->purpose))
		return call_fail(c, 403, "%s: the credential was signed for '%s', but '%s' is required", c->node,
				 c->claim.purpose, c->purpose);
	return 0;
}
