/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "watch.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "client/http.h"
#include "shape/snapshot.h"

#define TIMEOUT 60
#define MAX_BACKOFF 60u

struct watch {
	const char *url, *path;
	char *etag;		/* of the answer written to path, or NULL */
	unsigned wait;		/* backoff in seconds after an error, or 0 */
};

static const int endings[] = { SIGTERM, SIGINT };

static void on_end(int sig)
{
	(void) sig;
	_exit(EXIT_SUCCESS);
}

static void signals_handle(void)
{
	struct sigaction end = { .sa_handler = on_end };

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		sigaction(endings[i], &end, NULL);
}

/* Signals are blocked only while the temporary file exists. */
static int snapshot_replace(const char *path, const struct buf *text, struct err *e)
{
	sigset_t held, before;
	int rc;

	sigemptyset(&held);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		sigaddset(&held, endings[i]);
	sigprocmask(SIG_BLOCK, &held, &before);
	rc = file_replace(path, text->data, text->len, 0644, e);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		log_info("%s: written, %zu bytes", path, text->len);
	return rc;
}

static bool file_equals(const char *path, const struct buf *text)
{
	struct buf now = {0};
	bool same = file_read(path, SNAPSHOT_MAX_BYTES, &now, NULL) == 0 && now.len == text->len &&
		    !memcmp(now.data, text->data, text->len);

	buf_free(&now);
	return same;
}

static int snapshot_accept(const struct watch *w, const struct buf *text, struct err *e)
{
	struct snapshot *s = snapshot_parse(text->data ? text->data : "", text->len, "the registry's snapshot", e);

	snapshot_free(s);
	if (!s)
		return -1;
	return file_equals(w->path, text) ? 0 : snapshot_replace(w->path, text, e);
}

static int answer_apply(struct watch *w, struct http_answer *a, struct err *e)
{
	if (a->status == 304)
		return 0;
	if (a->status != 200)
		return err_set(e, "the registry at %s answered /v1/snapshot with HTTP status %ld", w->url, a->status);
	if (snapshot_accept(w, &a->body, e))
		return -1;
	free(w->etag);
	w->etag = a->etag;
	a->etag = NULL;
	return 0;
}

/* 0, or -1 with the minimum number of seconds to wait, from Retry-After. */
static int snapshot_poll(struct watch *w, unsigned *least, struct err *e)
{
	/* A file that was removed is written again. */
	const char *known = access(w->path, F_OK) == 0 ? w->etag : NULL;
	const struct http_request r = {
		.method = "GET", .base = w->url, .path = "/v1/snapshot", .if_none_match = known, .timeout = TIMEOUT,
	};
	struct http_answer a = {0};
	int rc = http_do(&r, &a, e);

	if (rc == 0) {
		rc = answer_apply(w, &a, e);
		*least = a.retry_after;
	}
	http_free(&a);
	return rc;
}

static unsigned error_backoff(struct watch *w, unsigned least, const struct err *e)
{
	if (!w->wait)
		log_error("snapshot: %s; keeping %s unchanged", e->text, w->path);
	w->wait = w->wait ? 2 * w->wait : 1;
	if (w->wait < least)
		w->wait = least;
	if (w->wait > MAX_BACKOFF)
		w->wait = MAX_BACKOFF;
	return w->wait;
}

static void error_end(struct watch *w)
{
	if (w->wait)
		log_info("snapshot: the registry at %s answers again", w->url);
	w->wait = 0;
}

_Noreturn void watch_snapshot(const char *url, const char *path, unsigned interval)
{
	struct watch w = { .url = url, .path = path };

	signals_handle();
	for (;;) {
		struct err e = {""};
		unsigned least = 0;

		if (snapshot_poll(&w, &least, &e)) {
			sleep(error_backoff(&w, least, &e));
			continue;
		}
		error_end(&w);
		sleep(interval);
	}
}
