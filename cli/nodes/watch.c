/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "watch.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "client/http.h"
#include "shape/snapshot.h"

#define TIMEOUT 60
#define MAX_BACKOFF 60u

struct watch {
	const struct settings *settings;
	const char *url, *path;
	char *etag;		/* of the answer written to path, or NULL */
	char sha256[HASH_HEX];	/* of these bytes */
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
static int answer_write(const struct watch *w, const struct buf *text, struct err *e)
{
	sigset_t held, before;
	int rc;

	sigemptyset(&held);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		sigaddset(&held, endings[i]);
	sigprocmask(SIG_BLOCK, &held, &before);
	rc = snapshot_replace(w->path, text, false, e);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (rc > 0)
		log_info("%s: written, %zu bytes", w->path, text->len);
	return rc < 0 ? -1 : 0;
}

/* Does the file still have the bytes that came with the ETag? One that was removed or damaged is written again. */
static bool file_is_known(const struct watch *w)
{
	char sha256[HASH_HEX];
	struct buf now = {0};
	bool known;

	if (!w->etag || file_read(w->path, SNAPSHOT_MAX_BYTES, &now, NULL))
		return false;
	hash_hex(now.data ? now.data : "", now.len, sha256);
	known = !strcmp(sha256, w->sha256);
	buf_free(&now);
	return known;
}

/* 0, or -1 with the minimum number of seconds to wait, from Retry-After. */
static int snapshot_poll(struct watch *w, unsigned *least, struct err *e)
{
	const struct http_request r = {
		.method = "GET", .base = w->url, .path = "/v1/snapshot", .timeout = TIMEOUT,
		.if_none_match = file_is_known(w) ? w->etag : NULL,
	};
	struct http_answer a = {0};
	int rc = 0;

	if (http_do(w->settings, &r, &a, e))
		return -1;
	*least = a.retry_after;
	if (a.status != 200 && a.status != 304)
		rc = err_set(e, "the registry at %s answered /v1/snapshot with HTTP status %ld", w->url, a.status);
	else if (a.status == 200 && (rc = answer_write(w, &a.body, e)) == 0) {
		hash_hex(a.body.data, a.body.len, w->sha256);
		free(w->etag);
		w->etag = a.etag;
		a.etag = NULL;
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

_Noreturn void watch_snapshot(const struct settings *s, const char *url, const char *path, unsigned interval)
{
	struct watch w = { .settings = s, .url = url, .path = path };

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
