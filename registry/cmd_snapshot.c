/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cmd.h"
#include "topo/canon.h"
#include "topo/inventory.h"
#include "topo/snapshot.h"

struct args {
	bool offline;
	const char *output;
	char **pairs;
	int npairs;
};

static const struct argp_option options[] = {
	{ "offline", 'O', NULL, 0, "From XML files alone, without a registry", 0 },
	{ "output", 'o', "FILE", 0, "Write there, whole or not at all, instead of on standard output", 0 },
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
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
		if (a->offline != (a->npairs > 0))
			argp_error(state, "--offline and NODES=FILE go together");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	options, parse, "[--offline NODES=FILE.xml...]", "Write the snapshot that slurmctld reads.", NULL, NULL, NULL,
};

/* NODES=FILE: the host list must not hold a '=', a file name may. */
static int add_file(struct inventory *v, const char *pair, struct err *e)
{
	const char *file = strchr(pair, '=');
	struct canon canon = {0};
	struct buf xml = {0};
	char *nodes;
	int rc = -1;

	if (!file || file == pair)
		return err_set(e, "'%s': NODES=FILE is wanted", pair);
	if (!(nodes = strndup(pair, file++ - pair)))
		return err_set(e, "%s: out of memory", pair);
	if (file_read(file, CANON_MAX_BYTES, &xml, e) == 0 && canon_parse(xml.data, xml.len, file, &canon, e) == 0) {
		rc = inventory_add(v, nodes, canon.shape, e);
		canon_free(&canon);
	}
	buf_free(&xml);
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

/* What comes from elsewhere is written only when the reader that slurmctld has would take it. */
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
	rc = a.offline ? from_files(&a, &out, e) : cmd_get(c, "/v1/snapshot", &out, e);
	if (rc == 0)
		rc = check(&out, e);
	if (rc == 0)
		rc = c->json && !a.output ? print_json(&out, e) : cmd_write(a.output, &out, e);
	buf_free(&out);
	return rc;
}
