/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <signal.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "client/http.h"
#include "nodes.h"
#include "shape/inventory.h"
#include "shape/snapshot.h"

#define MAX_INTERVAL 86400

struct args {
	bool offline, watch, force;
	unsigned interval;	/* 0: SnapshotPoll */
	const char *output;
	struct cmd_words pairs;
};

static const struct cmd_option options[] = {
	{ "offline", 'O', NULL, CMD_FLAG(offline), "Build it from XML files, without a registry" },
	{ "output", 'o', "FILE", CMD_TEXT(output),
	  "Write to FILE, atomically (default: standard output; with --watch SnapshotFile)" },
	{ "force", 'f', NULL, CMD_FLAG(force),
	  "With --output: replace a snapshot that has nodes by one without most of them, or of another database" },
	{ "watch", 'w', NULL, CMD_FLAG(watch), "Keep FILE up to date with the registry until terminated" },
	{ "interval", 'i', "SECONDS", CMD_NUMBER(interval, 1, MAX_INTERVAL),
	  "Seconds between requests (default: SnapshotPoll)" },
	{0},
};

static void check_together(void *args, struct argp_state *state)
{
	const struct args *a = args;

	if (a->offline != (a->pairs.n > 0))
		argp_error(state, "--offline requires NODES=FILE arguments, and they require --offline");
	for (int i = 0; i < a->pairs.n; i++)
		if (!strchr(a->pairs.list[i], '=') || *a->pairs.list[i] == '=')
			argp_error(state, "'%s': expected NODES=FILE", a->pairs.list[i]);
	if (a->watch && a->offline)
		argp_error(state, "--watch and --offline exclude each other");
	if (a->force && (a->watch || !a->output))
		argp_error(state, "--force requires --output, without --watch");
	if (a->interval && !a->watch)
		argp_error(state, "--interval requires --watch");
}

static const struct cmd_syntax syntax = {
	options, "[--offline NODES=FILE.xml...]", "Write the snapshot that slurmctld reads.", CMD_WORDS(pairs), NULL,
	check_together,
};

/* NODES=FILE: only the file name may contain '='. */
static int from_files(const struct args *a, struct buf *out, struct err *e)
{
	struct inventory *v = inventory_new();
	int rc = v ? 0 : err_set(e, "out of memory");

	for (int i = 0; i < a->pairs.n && rc == 0; i++) {
		const char *pair = a->pairs.list[i], *file = strchr(pair, '=');
		struct strings strings = {0};
		char *nodes = strndup(pair, file - pair);

		rc = nodes ? xml_file_strings(file + 1, &strings, e) : err_set(e, "%s: out of memory", pair);
		if (rc == 0)
			rc = inventory_add(v, nodes, strings.allocation, e);
		strings_free(&strings);
		free(nodes);
	}
	if (rc == 0)
		rc = inventory_snapshot(v, NULL, out, e);
	inventory_free(v);
	return rc;
}

/* --- watch --- */

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

static void on_end(int)
{
	_exit(EXIT_SUCCESS);
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

/*
 * Keep a file identical to the registry's snapshot by snapshot_replace, polling every `interval` seconds, until SIGTERM
 * or SIGINT ends the process with status 0. A file that was removed or damaged is written anew. An error is logged
 * once, and its end once; the file stays unchanged meanwhile.
 */
static _Noreturn void watch_snapshot(const struct settings *s, const char *url, const char *path, unsigned interval)
{
	struct watch w = { .settings = s, .url = url, .path = path };

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		sigaction(endings[i], &(struct sigaction){ .sa_handler = on_end }, NULL);
	for (;;) {
		struct err e = {""};
		unsigned least = 0;

		if (snapshot_poll(&w, &least, &e)) {
			if (!w.wait)
				log_error("snapshot: %s; keeping %s unchanged", e.text, path);
			w.wait = w.wait ? 2 * w.wait : 1;
			w.wait = w.wait < least ? least : w.wait;
			w.wait = w.wait > MAX_BACKOFF ? MAX_BACKOFF : w.wait;
			sleep(w.wait);
			continue;
		}
		if (w.wait)
			log_info("snapshot: %s is kept up to date again", path);
		w.wait = 0;
		sleep(interval);
	}
}

/* --- the command --- */

int cmd_snapshot(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct snapshot *s = NULL;
	struct args a = {0};
	struct buf out = {0};
	json_t *list;
	int rc;

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	if (a.watch)
		watch_snapshot(&c->settings, c->url ? c->url : c->settings.registry_url,
			       a.output ? a.output : c->settings.snapshot_file,
			       a.interval ? a.interval : c->settings.snapshot_poll);
	rc = a.offline ? from_files(&a, &out, e) : cmd_get(c, "/v1/snapshot", &out, e);
	/* Only a snapshot that slurmctld's own parser accepts is written. */
	if (rc == 0 && !(s = snapshot_parse(out.data, out.len, "snapshot", e)))
		rc = -1;
	if (rc == 0 && c->json && !a.output) {
		list = json_array();
		for (size_t i = 0; i < s->nnodes; i++)
			json_array_append_new(list, json_pack("{s:s, s:s}", "hosts", s->nodes[i].hosts, "synthetic",
							      s->nodes[i].shape->text));
		rc = cmd_print_new(list, e);
	} else if (rc == 0) {
		rc = a.output && !cmd_is_device(a.output) ? snapshot_replace(a.output, &out, a.force, e) :
							    cmd_write(a.output, &out, e);
	}
	snapshot_free(s);
	buf_free(&out);
	return rc < 0 ? -1 : 0;
}
