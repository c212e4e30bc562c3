/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric.h"

#include <stdlib.h>
#include <string.h>

#include "target.h"

struct args {
	const char *verb;
	const char **files, **exports;	/* exports: XML files of nodes */
	size_t nfiles, nexports;
	const char *nodes, *format, *output, *limit;
	unsigned job, plane;
	bool svg;
};

/* diff(1) */
enum { STATUS_DIFFERENT = 1, STATUS_TROUBLE };

enum { OPT_SVG = 0x200, OPT_NODES, OPT_JOB, OPT_XML, OPT_FORMAT, OPT_PLANE, OPT_LIMIT };

static const struct argp_option options[] = {
	{ "svg", OPT_SVG, NULL, 0, "show: draw it", 0 },
	{ "nodes", OPT_NODES, "HOSTLIST", 0, "show --svg: highlight these; export: write only these (Slurm formats)", 0 },
	{ "job", OPT_JOB, "ID", 0, "The same, for the nodes of this job", 0 },
	{ "xml", OPT_XML, "FILE.xml", 0, "A node's exported XML, to name its GUIDs; may be repeated", 0 },
	{ "format", OPT_FORMAT, "NAME", 0, "export: slurm (topology.conf), slurm-yaml (topology.yaml), paper (levels as text), "
	  "scotch (architecture) or json", 0 },
	{ "plane", OPT_PLANE, "N", 0,
	  "export: the plane to write, from 0, in formats with a single plane (default: 0, the plane with the most hosts)", 0 },
	{ "limit", OPT_LIMIT, "N", 0, "history: only the last N versions", 0 },
	{ "output", 'o', "FILE", 0, "Write to FILE, atomically", 0 },
	{0},
};

static int run_write(struct cmd *c, const struct args *a, struct err *e);
static int run_import(struct cmd *c, const struct args *a, struct err *e);
static int run_history(struct cmd *c, const struct args *a, struct err *e);
static int run_diff(struct cmd *c, const struct args *a, struct err *e);

#define ANY ((size_t) -1)
#define VERBS "show, export, import, history or diff"

static const struct verb {
	const char *name;
	int (*run)(struct cmd *c, const struct args *a, struct err *e);
	size_t least, most;		/* files, or times of the registry's */
	const char *wanted;
} verbs[] = {
	{ "show", run_write, 0, ANY, "" },
	{ "export", run_write, 0, ANY, "" },
	{ "import", run_import, 1, ANY, "import: at least one FILE is required" },
	{ "history", run_history, 0, 0, "history takes no file: it lists the versions in the registry" },
	{ "diff", run_diff, 1, 2, "diff takes one or two of FILE or @WHEN; one is compared with the present fabric" },
};

static const struct verb *verb_of(const char *name)
{
	for (size_t i = 0; name && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(name, verbs[i].name))
			return &verbs[i];
	return NULL;
}

static error_t at_end(const struct args *a, struct argp_state *state)
{
	const struct verb *v = verb_of(a->verb);

	if (!a->verb)
		argp_error(state, "%s?", VERBS);
	if (!v)
		return 0;
	if (a->nfiles < v->least || a->nfiles > v->most)
		argp_error(state, "%s", v->wanted);
	if (a->nodes && a->job)
		argp_error(state, "--nodes and --job exclude each other");
	if (!strcmp(v->name, "export") != !!a->format)
		argp_error(state, a->format ? "--format applies to export only" : "export requires --format");
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case OPT_SVG:
		return a->svg = true, 0;
	case OPT_NODES:
		return a->nodes = arg, 0;
	case OPT_JOB:
		return a->job = cmd_arg_number(state, "--job", arg, 1), 0;
	case OPT_XML:
		return a->exports[a->nexports++] = arg, 0;
	case OPT_FORMAT:
		return a->format = arg, 0;
	case OPT_PLANE:
		return a->plane = cmd_arg_number(state, "--plane", arg, 0), 0;
	case OPT_LIMIT:
		return cmd_arg_number(state, "--limit", arg, 1), a->limit = arg, 0;
	case 'o':
		return a->output = arg, 0;
	case ARGP_KEY_ARG:
		if (a->verb)
			a->files[a->nfiles++] = arg;
		else
			a->verb = arg;
		return 0;
	case ARGP_KEY_END:
		return at_end(a, state);
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	options, parse, "show [FILE...|@WHEN]\nexport --format=NAME [FILE...|@WHEN]\nimport FILE...\nhistory\ndiff A [B]",
	"Show, draw, convert, import or compare a network fabric. It is read from ibnetdiscover's output, Slurm's topology.conf or "
	"topology.yaml, or a tree or torus in text; without a file, from the registry.",
	NULL, NULL, NULL,
};

static struct fabric *read_files(const struct args *a, const char *const *files, size_t n, struct err *e)
{
	struct fabric_names *names = fabric_names_new();
	struct fabric *f = NULL;
	int rc = names ? 0 : err_set(e, "out of memory");

	for (size_t i = 0; i < a->nexports && rc == 0; i++)
		rc = fabric_names_learn(names, a->exports[i], e);
	if (rc == 0)
		f = fabric_read(files, n, names, e);
	fabric_names_free(names);
	return f;
}

/* Files, or "@WHEN" (the registry's at that time), or none (the registry's now). */
static struct fabric *load(const struct cmd *c, const struct args *a, const char *const *files, size_t n, struct err *e)
{
	char when[WHEN_MAX] = "";

	if (n > 1 || (n && *files[0] != '@'))
		return read_files(a, files, n, e);
	if (n && when_parse(files[0] + 1, when, e))
		return NULL;
	return fabric_fetch(c, when, e);
}

static int show(const struct cmd *c, const struct args *a, const struct fabric_wish *w, struct buf *out, struct err *e)
{
	if (a->svg)
		return fabric_draw(w->fabric, w->chosen, out, e);
	return c->json ? fabric_write_json(w, out, e) : fabric_print(w->fabric, e);
}

/* A writer of a fabric, restricted to the chosen hosts if there are any. */
static int write_wish(const struct cmd *c, const struct args *a, const struct hostset *hosts, struct err *e)
{
	const struct chosen chosen = { hosts_has, (void *) hosts };
	struct fabric *f = load(c, a, a->files, a->nfiles, e);
	const struct fabric_wish w = { f, hosts ? &chosen : NULL, a->format, a->plane };
	struct buf out = {0};
	int rc = -1;

	if (f)
		rc = a->format ? fabric_export(&w, &out, e) : show(c, a, &w, &out, e);
	if (rc == 0 && out.len)
		rc = cmd_write(a->output, &out, e);
	buf_free(&out);
	fabric_free(f);
	return rc;
}

static int run_write(struct cmd *c, const struct args *a, struct err *e)
{
	struct hostset *hosts = NULL;
	int rc;

	if ((a->nodes || a->job) && !(hosts = a->nodes ? hostset_parse(a->nodes, e) : hosts_of_job(a->job, e)))
		return -1;
	rc = write_wish(c, a, hosts, e);
	hostset_free(hosts);
	return rc;
}

static int run_import(struct cmd *c, const struct args *a, struct err *e)
{
	struct fabric *f = read_files(a, a->files, a->nfiles, e);
	int rc = f ? fabric_send(c, f, e) : -1;

	fabric_free(f);
	return rc;
}

static int run_history(struct cmd *c, const struct args *a, struct err *e)
{
	return fabric_history(c, a->limit, e);
}

static int run_diff(struct cmd *c, const struct args *a, struct err *e)
{
	const char *const names[2] = { a->files[0], a->nfiles > 1 ? a->files[1] : "now" };
	struct fabric *from = load(c, a, a->files, 1, e),
		      *to = from ? load(c, a, a->files + 1, a->nfiles - 1, e) : NULL;
	int rc = to ? fabric_diff(c, (const struct fabric *const[]){ from, to }, names, e) : -1;

	c->status = rc < 0 ? STATUS_TROUBLE : rc ? STATUS_DIFFERENT : 0;
	fabric_free(from);
	fabric_free(to);
	return rc < 0 ? -1 : 0;
}

int cmd_fabric(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .files = calloc(argc + 1, sizeof(*a.files)), .exports = calloc(argc + 1, sizeof(*a.exports)) };
	int rc = a.files && a.exports ? 0 : err_set(e, "out of memory");

	if (rc == 0)
		rc = cmd_parse(c, &argp, &a, argc, argv, e);
	if (rc == 0)
		rc = verb_of(a.verb) ? verb_of(a.verb)->run(c, &a, e) : err_set(e, "'%s': " VERBS "?", a.verb);
	free(a.files);
	free(a.exports);
	return rc;
}
