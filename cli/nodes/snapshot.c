/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "watch.h"
#include "xml.h"
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
	{ "force", 'f', NULL, CMD_FLAG(force), "With --output: replace a snapshot that has nodes by one without" },
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
static int add_file(struct inventory *v, const char *pair, struct err *e)
{
	const char *file = strchr(pair, '=');
	struct strings strings = {0};
	char *nodes;
	int rc;

	if (!(nodes = strndup(pair, file++ - pair)))
		return err_set(e, "%s: out of memory", pair);
	rc = xml_file_strings(file, &strings, e);
	if (rc == 0)
		rc = inventory_add(v, nodes, strings.allocation, e);
	strings_free(&strings);
	free(nodes);
	return rc;
}

static int from_files(const struct args *a, struct buf *out, struct err *e)
{
	struct inventory *v = inventory_new();
	int rc = v ? 0 : err_set(e, "out of memory");

	for (int i = 0; i < a->pairs.n && rc == 0; i++)
		rc = add_file(v, a->pairs.list[i], e);
	if (rc == 0)
		rc = inventory_snapshot(v, out, e);
	inventory_free(v);
	return rc;
}

/* Only a snapshot that slurmctld's own parser accepts is written. */
static int snapshot_check(const struct buf *text, struct err *e)
{
	struct snapshot *s = snapshot_parse(text->data, text->len, "snapshot", e);

	snapshot_free(s);
	return s ? 0 : -1;
}

static int print_json(const struct buf *text, struct err *e)
{
	struct snapshot *s = snapshot_parse(text->data, text->len, "snapshot", e);
	json_t *list = json_array();
	int rc;

	for (size_t i = 0; s && i < s->nnodes; i++)
		json_array_append_new(list, json_pack("{s:s, s:s}", "hosts", s->nodes[i].hosts,
						      "synthetic", s->nodes[i].shape->text));
	rc = s ? cmd_print_json(list, e) : -1;
	json_decref(list);
	snapshot_free(s);
	return rc;
}

int cmd_snapshot(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	struct buf out = {0};
	int rc;

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	if (a.watch)
		watch_snapshot(&c->settings, c->url ? c->url : c->settings.registry_url,
			       a.output ? a.output : c->settings.snapshot_file,
			       a.interval ? a.interval : c->settings.snapshot_poll);
	rc = a.offline ? from_files(&a, &out, e) : cmd_get(c, "/v1/snapshot", &out, e);
	if (rc == 0)
		rc = snapshot_check(&out, e);
	if (rc == 0)
		rc = c->json && !a.output ? print_json(&out, e) :
		     a.output && !cmd_is_device(a.output) ? snapshot_replace(a.output, &out, a.force, e) :
							    cmd_write(a.output, &out, e);
	rc = rc < 0 ? -1 : 0;
	buf_free(&out);
	return rc;
}
