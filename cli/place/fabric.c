/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fabric.h"

#include <ctype.h>
#include <string.h>

#include "cores.h"
#include "target.h"

struct args {
	struct cmd_words words;		/* the verb, then files or times of the registry's */
	const struct verb *verb;
	const char *const *files;
	size_t nfiles;
	struct buf exports;		/* const char *[]: XML files of nodes */
	const char *nodes, *format, *output;
	unsigned job, plane, limit;
};

static int run_write(struct cmd *c, const struct args *a, struct err *e);
static int run_import(struct cmd *c, const struct args *a, struct err *e);
static int run_history(struct cmd *c, const struct args *a, struct err *e);

#define ANY ((size_t) -1)
#define VERBS "show, export, import or history"

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
};

static const struct verb *verb_of(const char *name)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(name, verbs[i].name))
			return &verbs[i];
	return NULL;
}

static void add_export(void *args, const char *path, struct argp_state *state)
{
	(void) state;
	buf_add(&((struct args *) args)->exports, &path, sizeof(path));
}

static void check_together(void *args, struct argp_state *state)
{
	struct args *a = args;
	const struct verb *v;

	if (!a->words.n)
		argp_error(state, "%s is required", VERBS);
	if (!(v = a->verb = verb_of(a->words.list[0])))
		argp_error(state, "'%s': invalid command, expected one of: " VERBS, a->words.list[0]);
	a->files = (const char *const *) a->words.list + 1;
	a->nfiles = a->words.n - 1;
	if (a->nfiles < v->least || a->nfiles > v->most)
		argp_error(state, "%s", v->wanted);
	if (a->nodes && a->job)
		argp_error(state, "--nodes and --job exclude each other");
	if (!strcmp(v->name, "export") != !!a->format)
		argp_error(state, a->format ? "--format applies to export only" : "export requires --format");
	if (a->format && !fabric_format_exists(a->format))
		argp_error(state, "unknown format '%s': expected " FABRIC_FORMATS, a->format);
}

static const struct cmd_option options[] = {
	{ "nodes", 0, "HOSTLIST", CMD_TEXT(nodes), "export: colour these (dot), write only these (Slurm formats)" },
	{ "job", 0, "ID", CMD_NUMBER(job, 1, UINT32_MAX),
	  "export: colour the nodes of this job (dot), write only these (Slurm formats)" },
	{ "xml", 0, "FILE.xml", CMD_SET(add_export),
	  "A node's exported XML, which has the names of its adapters' GUIDs; may be repeated" },
	{ "format", 0, "NAME", CMD_TEXT(format),
	  "export: slurm (topology.conf), slurm-yaml (topology.yaml), paper (levels as text), "
	  "scotch (architecture), dot (Graphviz) or json" },
	{ "plane", 0, "N", CMD_NUMBER(plane, 0, UINT32_MAX),
	  "export: the plane to write, from 0, in formats with a single plane (default: 0, the plane with the most "
	  "hosts)" },
	{ "limit", 0, "N", CMD_NUMBER(limit, 1, UINT32_MAX), "history: only the last N versions" },
	{ "output", 'o', "FILE", CMD_TEXT(output), "Write to FILE, atomically" },
	{0},
};

static const struct cmd_syntax syntax = {
	options,
	"show [FILE...|@WHEN]\nexport --format=NAME [FILE...|@WHEN]\nimport FILE...\nhistory",
	"Show, convert or import a network fabric. It is read from ibnetdiscover's output, Slurm's "
	"topology.conf or topology.yaml, or a tree or torus in text; without a file, from the registry.",
	CMD_WORDS(words), NULL, check_together,
};

/* hwloc's "506b:4b03:003c:eee8"; of a GID the last four groups are the GUID of the port. 0: none. */
static uint64_t guid_of(const char *text)
{
	uint64_t guid = 0;

	for (; *text; text++) {
		if (*text == ':')
			continue;
		if (!isxdigit((unsigned char) *text))
			return 0;
		guid = guid << 4 |
			(isdigit((unsigned char) *text) ? *text - '0' : tolower((unsigned char) *text) - 'a' + 10);
	}
	return guid;
}

/* "Port1GID0" */
static bool is_gid(const char *name)
{
	return !strncmp(name, "Port", 4) && !strcmp(name + 4 + strspn(name + 4, "0123456789"), "GID0");
}

static int learn_object(struct fabric_names *names, const struct tree_object *o, const char *host, struct err *e)
{
	for (size_t i = 0; i < o->ninfos; i++) {
		const struct tree_pair *info = &o->infos[i];
		uint64_t guid = !strcmp(info->name, "NodeGUID") || is_gid(info->name) ? guid_of(info->value) : 0;

		if (guid && fabric_names_add(names, guid, host, e))
			return -1;
	}
	return 0;
}

/*
 * Map GUIDs to nodes from an exported XML file: the node's HostName and the GUIDs of its adapters and their ports. 0 or
 * -1.
 */
static int names_learn(struct fabric_names *names, const char *path, struct err *e)
{
	struct tree *t = tree_of_file(path, e);
	const char *host;
	int rc;

	if (!t)
		return -1;
	host = tree_info(&t->objects[0], "HostName");
	rc = host ? 0 : err_set(e, "%s: the XML has no HostName, so its node is not known", path);
	for (size_t i = 0; i < t->n && rc == 0; i++)
		if ((rc = learn_object(names, &t->objects[i], host, e)))
			err_within(e, "%s", path);
	tree_free(t);
	return rc;
}

static struct fabric *read_files(const struct args *a, struct err *e)
{
	struct fabric_names *names = fabric_names_new();
	struct fabric *f = NULL;
	const char *const *exports = (const char *const *) a->exports.data;
	int rc = names && !a->exports.failed ? 0 : err_set(e, "out of memory");

	for (size_t i = 0; i < a->exports.len / sizeof(*exports) && rc == 0; i++)
		rc = names_learn(names, exports[i], e);
	if (rc == 0)
		f = fabric_read(a->files, a->nfiles, names, e);
	fabric_names_free(names);
	return f;
}

/* Files, or "@WHEN" (the registry's at that time), or none (the registry's now). */
static struct fabric *fabric_load(const struct cmd *c, const struct args *a, struct err *e)
{
	char when[WHEN_MAX] = "";

	if (a->nfiles > 1 || (a->nfiles && *a->files[0] != '@'))
		return read_files(a, e);
	if (a->nfiles && when_parse(a->files[0] + 1, when, e))
		return NULL;
	return fabric_fetch(c, when, e);
}

static bool hosts_has(const char *host, void *user)
{
	return hostset_has(user, host);
}

static int read_hosts(void *hosts, const job_info_t *job, struct err *e)
{
	struct hostset **h = hosts;

	if (!job->nodes || !*job->nodes)
		return err_set(e, "the job has no nodes");
	return (*h = hostset_parse(job->nodes, e)) ? 0 : -1;
}

static struct hostset *hosts_of_job(uint32_t job, struct err *e)
{
	struct hostset *h = NULL;

	return cores_job(job, read_hosts, &h, e) ? NULL : h;
}

/* A writer of a fabric, restricted to the chosen hosts if there are any. */
static int write_wish(const struct cmd *c, const struct args *a, const struct hostset *hosts, struct err *e)
{
	const struct fabric_hosts chosen = { hosts_has, (void *) hosts };
	struct fabric *f = fabric_load(c, a, e);
	const struct fabric_wish w = { f, hosts ? &chosen : NULL, a->format, a->plane };
	struct buf out = {0};
	int rc = -1;

	if (f && a->format)
		rc = fabric_export(&w, &out, e);
	else if (f)
		rc = c->json ? fabric_write_json(&w, &out, e) : fabric_print(f, e);
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
	struct fabric *f = read_files(a, e);
	int rc = f ? fabric_send(c, f, e) : -1;

	fabric_free(f);
	return rc;
}

static int run_history(struct cmd *c, const struct args *a, struct err *e)
{
	return fabric_history(c, a->limit, e);
}

int cmd_fabric(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	int rc = cmd_parse(c, &syntax, &a, argc, argv, e);

	if (rc == 0)
		rc = a.verb->run(c, &a, e);
	buf_free(&a.exports);
	return rc;
}
