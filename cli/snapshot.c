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
	bool offline, watch;
	unsigned interval;	/* 0: SnapshotPoll */
	const char *output;
	char **pairs;
	int npairs;
};

static const struct argp_option options[] = {
	{ "offline", 'O', NULL, 0, "Build it from XML files, without a registry", 0 },
	{ "output", 'o', "FILE", 0, "Write to FILE, atomically, instead of standard output", 0 },
	{ "watch", 'w', NULL, 0, "Keep FILE up to date with the registry until terminated", 0 },
	{ "interval", 'i', "SECONDS", 0, "Seconds between requests (default: SnapshotPoll)", 0 },
	{0},
};

static unsigned seconds(const char *arg, struct argp_state *state)
{
	char *end;
	long n = strtol(arg, &end, 10);

	if (*end || n < 1 || n > MAX_INTERVAL)
		argp_error(state, "--interval: expected 1 to %d seconds", MAX_INTERVAL);
	return n;
}

static void check_together(const struct args *a, struct argp_state *state)
{
	if (a->offline != (a->npairs > 0))
		argp_error(state, "--offline requires NODES=FILE arguments, and they require --offline");
	if (a->watch && (a->offline || !a->output))
		argp_error(state, "--watch requires --output and excludes --offline");
	if (a->interval && !a->watch)
		argp_error(state, "--interval requires --watch");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'w':
		a->watch = true;
		return 0;
	case 'i':
		a->interval = seconds(arg, state);
		return 0;
	case 'O':
		a->offline = true;
		return 0;
	case 'o':
		a->output = arg;
		return 0;
	case ARGP_KEY_ARGS:
		a->pairs = state->argv + state->next;
		a->npairs = state->argc - state->next;
		return 0;
	case ARGP_KEY_END:
		check_together(a, state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	options, parse, "[--offline NODES=FILE.xml...]", "Write the snapshot that slurmctld reads.", NULL, NULL, NULL,
};

/* NODES=FILE: only the file name may contain '='. */
static int add_file(struct inventory *v, const char *pair, struct err *e)
{
	const char *file = strchr(pair, '=');
	struct strings strings = {0};
	char *nodes;
	int rc;

	if (!file || file == pair)
		return err_set(e, "'%s': expected NODES=FILE", pair);
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

	for (int i = 0; i < a->npairs && rc == 0; i++)
		rc = add_file(v, a->pairs[i], e);
	if (rc == 0)
		rc = inventory_snapshot(v, out, e);
	inventory_free(v);
	return rc;
}

/* Only a snapshot that slurmctld's own parser accepts is written. */
static int check(const struct buf *text, struct err *e)
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

	if (cmd_parse(c, &argp, &a, argc, argv, e))
		return -1;
	if (a.watch)
		watch_snapshot(c->url ? c->url : c->settings.registry_url, a.output,
			       a.interval ? a.interval : c->settings.snapshot_poll);
	rc = a.offline ? from_files(&a, &out, e) : cmd_get(c, "/v1/snapshot", &out, e);
	if (rc == 0)
		rc = check(&out, e);
	if (rc == 0)
		rc = c->json && !a.output ? print_json(&out, e) : cmd_write(a.output, &out, e);
	buf_free(&out);
	return rc;
}
