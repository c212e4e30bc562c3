/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cables.h"
#include "client/claim.h"
#include "cores.h"
#include "fabric/model/names.h"
#include "fabric/read/json.h"
#include "fabric/write/export.h"
#include "shape/hostlist.h"
#include "table.h"
#include "target.h"

/* --- as tables --- */

static int print_planes(const struct fabric *f, struct err *e)
{
	struct table *t = table_new(">PLANE|KIND|>SWITCHES|>HOSTS|>LINKS|>CABLES");

	for (unsigned i = 0; t && i < f->nplanes; i++) {
		const struct fabric_plane *p = &f->planes[i];

		table_cell(t, "%u|%s|%u|%u|%u|%u", i, fabric_kind_name(p->kind), p->switches, p->hosts, p->links,
			   p->cables);
	}
	return table_finish(t, e);
}

static int print_levels(const struct fabric *f, struct err *e)
{
	struct table *t = table_new(">PLANE|>LEVEL|OF|>AT MOST|>COST|>PRUNED");

	for (unsigned i = 0; t && i < f->nplanes; i++)
		for (unsigned l = 0; f->planes[i].levels && l < f->planes[i].levels->nlevels; l++) {
			unsigned nlevels = f->planes[i].levels->nlevels;
			const struct hierarchy_level *level = &f->planes[i].levels->level[l];
			struct buf size = {0};

			/* Extents: "4 x 4 x 4" of a torus, the largest fan-out of a tree. */
			for (unsigned d = 0; d < level->dims; d++)
				buf_printf(&size, "%s%u", d ? " x " : "", level->dim[d]);
			table_cell(t, "%u|%u|%s|%s|%u", i, l,
				   l + 1 == nlevels ? "host" : l + 2 == nlevels ? "leaf switch" : "group",
				   size.failed ? "?" : size.data, level->cost[0]);
			if (level->pruned > 100)
				table_cell(t, "%u.%02u:1", level->pruned / 100, level->pruned % 100);
			else
				table_cell(t, "-");
			buf_free(&size);
		}
	return table_finish(t, e);
}

/* Switches with their hosts and trunks. */
static int print_switches(const struct fabric *f, struct err *e)
{
	struct {
		unsigned hosts, neighbours, cables;
	} *sums = calloc(f->nswitches + 1, sizeof(*sums));
	struct table *t = table_new("SWITCH|>PLANE|>RANK|>HOSTS|>NEIGHBOURS|>CABLES");
	int rc = -1;

	for (unsigned i = 0; sums && i < f->nlinks; i++) {
		const struct fabric_link *l = &f->links[i];

		if (l->a >= f->nswitches)
			continue;
		sums[l->a].hosts += l->b >= f->nswitches;
		for (unsigned end = 0; end < 2 && l->b < f->nswitches; end++) {
			sums[end ? l->b : l->a].neighbours++;
			sums[end ? l->b : l->a].cables += l->count;
		}
	}
	for (unsigned i = 0; sums && t && i < f->nswitches; i++)
		table_cell(t, "%s|%u|%u|%u|%u|%u", f->nodes[i].name, f->nodes[i].plane, f->nodes[i].rank, sums[i].hosts,
			   sums[i].neighbours, sums[i].cables);
	if (sums && t)
		rc = table_print(t, stdout);
	free(sums);
	table_free(t);
	return rc ? err_set(e, "cannot write the table to standard output") : 0;
}

static int fabric_print(const struct fabric *f, struct err *e)
{
	struct buf odd = {0};
	int rc = 0;

	if (print_planes(f, e) || putchar('\n') == EOF || print_levels(f, e) || putchar('\n') == EOF ||
	    print_switches(f, e))
		return -1;
	fabric_list_anomalies(f, &odd);
	if (odd.failed)
		rc = err_set(e, "out of memory");
	else if (odd.len && (putchar('\n') == EOF || fputs(odd.data, stdout) == EOF))
		rc = err_set(e, "stdout: %s", strerror(errno));
	buf_free(&odd);
	return rc;
}

/* --- as files --- */

#define FABRIC_FORMATS "slurm, slurm-yaml, paper, scotch, dot or json"

enum format { SLURM, SLURM_YAML, PAPER, SCOTCH, DOT, JSON, NONE };

static enum format format_find(const char *name)
{
	static const char *const names[] = {
		[SLURM] = "slurm", [SLURM_YAML] = "slurm-yaml", [PAPER] = "paper", [SCOTCH] = "scotch", [DOT] = "dot",
		[JSON] = "json",
	};
	enum format i = SLURM;

	while (i < NONE && strcmp(name, names[i]))
		i++;
	return i;
}

static int write_json(const struct fabric *f, struct buf *out, struct err *e)
{
	json_t *j = fabric_json(f);
	char *text = j ? json_dumps(j, JSON_INDENT(2)) : NULL;

	if (text)
		buf_printf(out, "%s\n", text);
	free(text);
	json_decref(j);
	return text ? 0 : err_set(e, "out of memory");
}

/* --- of the registry --- */

#define PATH "/v1/fabric"
#define CLAIM "fabric"	/* the subject of the signature instead of a node: registry/http/handlers.h */

static int print_import(const json_t *answer)
{
	static const char *const counts[][2] = {
		{ "planes", "plane" }, { "switches", "switch" }, { "hosts", "host" }, { "links", "link" },
	};

	printf("version %" JSON_INTEGER_FORMAT "%s", cmd_number(answer, "version"),
	       json_is_true(json_object_get(answer, "changed")) ? "" : ", unchanged");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		json_int_t n = cmd_number(answer, counts[i][0]);

		printf("%s %" JSON_INTEGER_FORMAT " %s", i ? "," : ":", n, counts[i][n == 1]);
	}
	putchar('\n');
	return 0;
}

static void history_row(struct table *t, const json_t *version)
{
	const char *end = json_string_value(json_object_get(version, "until"));
	char since[WHEN_MAX], until[WHEN_MAX];

	table_cell(t, "%lld|%s|%s|%lld|%lld|%lld", cmd_number(version, "version"),
		   when_local(cmd_text(version, "since"), since), end ? when_local(end, until) : "now",
		   cmd_number(version, "came"), cmd_number(version, "went"), cmd_number(version, "signer"));
}

/* --- the command --- */

struct args {
	struct cmd_words words;		/* the verb, two hosts of route, then files or times of the registry's */
	const struct verb *verb;
	const char *const *hosts;
	const char *const *files;
	size_t nfiles;
	struct buf exports;		/* const char *[]: XML files of nodes */
	const char *nodes, *format, *output;
	unsigned job, plane, limit;
	bool import;
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

/*
 * Map GUIDs to nodes from an exported XML file: the node's HostName and the GUIDs of its adapters and their ports
 * ("NodeGUID", "Port1GID0"). 0 or -1.
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
		for (size_t k = 0; k < t->objects[i].ninfos && rc == 0; k++) {
			const struct tree_pair *info = &t->objects[i].infos[k];
			bool gid = !strncmp(info->name, "Port", 4) &&
				!strcmp(info->name + 4 + strspn(info->name + 4, "0123456789"), "GID0");
			uint64_t guid = gid || !strcmp(info->name, "NodeGUID") ? guid_of(info->value) : 0;

			if (guid && (rc = fabric_names_add(names, guid, host, e)))
				err_within(e, "%s", path);
		}
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

/* The registry's; when: "" for now; stored: with the names as they were imported, not those of the nodes it knows. */
static struct fabric *registry_load(const struct cmd *c, const char *when, bool stored, struct err *e)
{
	struct buf path = {0};
	struct fabric *f;
	json_t *j;

	buf_puts(&path, PATH);
	cmd_query(&path, "at", *when ? when : NULL);
	j = cmd_get_json(c, &path, e);
	if (stored)
		json_object_del(j, "names");
	f = j ? fabric_of_json(j, "the registry's fabric", e) : NULL;
	json_decref(j);
	return f;
}

static bool has_files(const struct args *a)
{
	return a->nfiles > 1 || (a->nfiles && *a->files[0] != '@');
}

/* Files, or "@WHEN" (the registry's at that time), or none (the registry's now). */
static struct fabric *fabric_load(const struct cmd *c, const struct args *a, struct err *e)
{
	char when[WHEN_MAX] = "";

	if (has_files(a))
		return read_files(a, e);
	return a->nfiles && when_parse(a->files[0] + 1, when, e) ? NULL : registry_load(c, when, false, e);
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

/* Written restricted to the chosen hosts, if there are any. */
static int run_write(struct cmd *c, const struct args *a, struct err *e)
{
	struct hostset *hosts = NULL;
	struct fabric *f = NULL;
	struct buf out = {0};
	int rc = 0;

	if (a->nodes)
		rc = (hosts = hostset_parse(a->nodes, e)) ? 0 : -1;
	else if (a->job)
		rc = cores_job(a->job, read_hosts, &hosts, e);
	const struct fabric_hosts *chosen = hosts ? &(struct fabric_hosts){ hosts_has, hosts } : NULL;

	if (rc == 0)
		rc = (f = fabric_load(c, a, e)) ? 0 : -1;
	if (rc == 0 && a->format) {
		const struct hierarchy *plane = a->plane < f->nplanes ? f->planes[a->plane].levels : NULL;
		enum format format = format_find(a->format);

		if ((format == PAPER || format == SCOTCH) && !plane)
			rc = err_set(e, "plane %u: no such plane with hosts", a->plane);
		else if (format == PAPER)
			rc = hierarchy_write(plane, &out, e);
		else if (format == SCOTCH)
			rc = fabric_write_scotch(plane, &out, e);
		else if (format == DOT)
			rc = fabric_write_dot(f, chosen, &out, e);
		else if (format == JSON)
			rc = write_json(f, &out, e);
		else
			rc = (format == SLURM ? fabric_write_slurm : fabric_write_slurm_yaml)(f, chosen, &out, e);
		rc = rc ? err_within(e, "%s", a->format) : 0;
	} else if (rc == 0) {
		rc = c->json ? write_json(f, &out, e) : fabric_print(f, e);
	}
	if (rc == 0 && out.len)
		rc = cmd_write(a->output, &out, e);
	buf_free(&out);
	fabric_free(f);
	hostset_free(hosts);
	return rc;
}

static int run_route(struct cmd *c, const struct args *a, struct err *e)
{
	struct fabric *f = fabric_load(c, a, e);
	json_t *costs = json_array(), *route;
	unsigned host[2] = {0};
	int rc = f ? 0 : -1;

	for (unsigned i = 0; i < 2 && !rc; i++)
		if ((host[i] = fabric_node(f, a->hosts[i], false)) == f->nnodes)
			rc = err_set(e, "%s: this host is not in the network", a->hosts[i]);
	if (!rc && host[0] == host[1])
		rc = err_set(e, "%s: a route is between two hosts", a->hosts[0]);
	for (unsigned i = 0; !rc && i < f->nplanes; i++) {
		const struct hierarchy *h = f->planes[i].levels;
		const struct hierarchy_host *from = h ? hierarchy_find(h, a->hosts[0]) : NULL;
		const struct hierarchy_host *to = h ? hierarchy_find(h, a->hosts[1]) : NULL;

		if (from && to)
			json_array_append_new(costs, json_pack("{s:i, s:i}", "plane", (int) i, "cost",
							       (int) hierarchy_distance(h, from, to)));
	}
	/* A file that states levels has no cables. */
	route = rc ? NULL : json_pack("{s:o, s:O}", "routes", f->given ? json_array() :
				      cables_routes(f, host[0], host[1]), "costs", costs);
	if (!rc && !route)
		rc = err_set(e, "out of memory");
	else if (!rc && !json_array_size(costs) && !json_array_size(json_object_get(route, "routes")))
		rc = err_set(e, "%s and %s: no plane of the network has both", a->hosts[0], a->hosts[1]);
	else if (!rc)
		rc = c->json ? cmd_print_json(route, e) : cables_print_route(route, a->hosts[0], a->hosts[1], e);
	json_decref(route);
	json_decref(costs);
	fabric_free(f);
	return rc;
}

/* drift: NULL, or part of the answer as JSON. */
static int import_fabric(struct cmd *c, const struct fabric *f, json_t *drift, struct err *e)
{
	json_t *j = f ? fabric_json_parts(f) : NULL, *answer = NULL;
	char *document = j ? json_dumps(j, JSON_COMPACT) : NULL;
	struct buf path = {0};
	int rc = -1;

	buf_puts(&path, PATH);
	if (f && !document)
		err_set(e, "out of memory");
	if (document && (answer = cmd_put(c, &path, CLAIM_FABRIC, CLAIM, document, strlen(document), e))) {
		json_object_set(answer, "drift", drift);
		rc = c->json ? cmd_print_json(answer, e) : print_import(answer);
	}
	json_decref(answer);
	free(document);
	json_decref(j);
	return rc;
}

static int run_import(struct cmd *c, const struct args *a, struct err *e)
{
	struct fabric *f = read_files(a, e);
	int rc = f ? import_fabric(c, f, NULL, e) : -1;

	fabric_free(f);
	return rc;
}

/*
 * An adapter whose description does not name its host keeps the name that it has in the registry's fabric, which --xml
 * may have given it. before: NULL for none.
 */
static struct fabric *read_found(const struct fabric_text *found, const struct fabric *before, struct err *e)
{
	struct fabric_names *stored = fabric_names_new(), *kept = fabric_names_new();
	struct fabric *raw = fabric_parse(found, 1, NULL, e), *f = NULL;
	int rc = !raw ? -1 : stored && kept ? 0 : err_set(e, "out of memory");

	for (unsigned i = 0; !rc && before && i < 2 * before->nadapters; i++) {
		const struct fabric_adapter *a = &before->adapters[i / 2];
		uint64_t guid = i % 2 ? a->port : a->guid;

		if (guid && before->nodes[a->host].named && !names_find(stored, guid))
			rc = fabric_names_add(stored, guid, before->nodes[a->host].name, e);
	}
	for (unsigned i = 0; !rc && i < raw->nadapters; i++) {
		const struct fabric_adapter *a = &raw->adapters[i];
		uint64_t guid = names_find(stored, a->guid) ? a->guid : a->port;
		const char *name = names_find(stored, guid);

		if (name && !raw->nodes[a->host].named)
			rc = fabric_names_add(kept, guid, name, e);
	}
	if (!rc)
		f = fabric_parse(found, 1, kept, e);
	fabric_free(raw);
	fabric_names_free(stored);
	fabric_names_free(kept);
	return f;
}

static bool registry_is_empty(const struct cmd *c)
{
	struct buf path = {0};
	json_t *j;
	bool empty;

	buf_puts(&path, PATH "/history");
	j = cmd_get_json(c, &path, NULL);
	empty = j && !json_array_size(json_object_get(j, "history"));
	json_decref(j);
	return empty;
}

static int run_discover(struct cmd *c, const struct args *a, struct err *e)
{
	struct fabric *now = NULL, *before = NULL;
	struct buf text = {0};
	const struct cables_tool *tool = cables_discover(&text, e);
	json_t *drift = NULL;
	int rc = -1;

	if (tool && a->output)
		rc = cmd_write(a->output, &text, e);
	else if (tool && tool->alone)
		err_set(e, "%s knows the links of this host alone: collect them of all hosts by topiary fabric "
			"discover -o FILE on each, then topiary fabric import FILE...", tool->name);
	else if (tool && ((before = registry_load(c, "", true, e)) || (a->import && registry_is_empty(c))))
		now = read_found(&(struct fabric_text){ text.data, tool->name, text.len }, before, e);
	if (now && before && !(drift = cables_drift(before, now)))
		err_set(e, "out of memory");
	else if (now && (!before || (c->json && a->import)))
		rc = 0;
	else if (now)
		rc = c->json ? cmd_print_json(drift, e) : cables_print_drift(drift, e);
	if (!rc && a->import)
		rc = import_fabric(c, now, drift, e);
	json_decref(drift);
	fabric_free(before);
	fabric_free(now);
	buf_free(&text);
	return rc;
}

static int run_history(struct cmd *c, const struct args *a, struct err *e)
{
	struct buf path = {0};

	buf_puts(&path, PATH "/history");
	cmd_query_number(&path, "limit", a->limit);
	return cmd_print_list(c, &path, "history", a->limit ? NULL : "use --limit to get more",
			      ">VERSION|SINCE|UNTIL|>CAME|>WENT|>BY UID", history_row, e);
}

#define ANY ((size_t) -1)
#define VERBS "show, route, discover, export, import or history"

static const struct verb {
	const char *name;
	int (*run)(struct cmd *c, const struct args *a, struct err *e);
	size_t hosts, least, most;	/* hosts before the files; files, or times of the registry's */
	const char *wanted;
} verbs[] = {
	{ "show", run_write, 0, 0, ANY, "" },
	{ "route", run_route, 2, 0, ANY, "route: two hosts are required" },
	{ "discover", run_discover, 0, 0, 0, "discover takes no file: it runs a tool" },
	{ "export", run_write, 0, 0, ANY, "" },
	{ "import", run_import, 0, 1, ANY, "import: at least one FILE is required" },
	{ "history", run_history, 0, 0, 0, "history takes no file: it lists the versions in the registry" },
};

static void add_export(void *args, const char *path, struct argp_state *)
{
	buf_add(&((struct args *) args)->exports, &path, sizeof(path));
}

static void check_together(void *args, struct argp_state *state)
{
	struct args *a = args;
	const struct verb *v;

	if (!a->words.n)
		argp_error(state, "%s is required", VERBS);
	for (size_t i = 0; !a->verb && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(a->words.list[0], verbs[i].name))
			a->verb = &verbs[i];
	if (!(v = a->verb))
		argp_error(state, "'%s': invalid command, expected one of: " VERBS, a->words.list[0]);
	a->hosts = (const char *const *) a->words.list + 1;
	if ((size_t) a->words.n <= v->hosts)
		argp_error(state, "%s", v->wanted);
	a->files = a->hosts + v->hosts;
	a->nfiles = a->words.n - 1 - v->hosts;
	if (a->nfiles < v->least || a->nfiles > v->most)
		argp_error(state, "%s", v->wanted);
	if (a->import && (strcmp(v->name, "discover") || a->output))
		argp_error(state, "--import applies to discover only, and excludes --output");
	if (a->exports.len && !has_files(a))
		argp_error(state, "--xml applies to files only");
	if (a->nodes && a->job)
		argp_error(state, "--nodes and --job exclude each other");
	if (!strcmp(v->name, "export") != !!a->format)
		argp_error(state, a->format ? "--format applies to export only" : "export requires --format");
	if (a->format && format_find(a->format) == NONE)
		argp_error(state, "unknown format '%s': expected " FABRIC_FORMATS, a->format);
}

static const struct cmd_option options[] = {
	{ "nodes", 0, "HOSTLIST", CMD_TEXT(nodes), "export: colour these (dot), write only these (Slurm formats)" },
	{ "job", 0, "ID", CMD_NUMBER(job, 1, UINT32_MAX),
	  "export: colour the nodes of this job (dot), write only these (Slurm formats)" },
	{ "xml", 0, "FILE.xml", CMD_SET(add_export),
	  "A node's exported XML, which has the names of its adapters' GUIDs; may be repeated" },
	{ "format", 0, "NAME", CMD_WORD(format),
	  "export: slurm (topology.conf), slurm-yaml (topology.yaml), paper (levels as text), "
	  "scotch (architecture), dot (Graphviz) or json" },
	{ "plane", 0, "N", CMD_NUMBER(plane, 0, UINT32_MAX),
	  "export: the plane to write, from 0, in formats with a single plane (default: 0, the plane with the most "
	  "hosts)" },
	{ "import", 0, NULL, CMD_FLAG(import), "discover: store what was found in the registry" },
	{ "limit", 0, "N", CMD_NUMBER(limit, 1, UINT32_MAX), "history: only the last N versions" },
	{ "output", 'o', "FILE", CMD_OUTPUT(output), "Write to FILE, atomically" },
	{0},
};

static const struct cmd_syntax syntax = {
	options,
	"show [FILE...|@WHEN]\nroute HOST HOST [FILE...|@WHEN]\nexport --format=NAME [FILE...|@WHEN]\n"
	"import FILE...\ndiscover\nhistory",
	"Show, convert or import a network fabric, or the path between two of its hosts. It is read from the output of "
	"ibnetdiscover, opareport or lldpcli, Slurm's topology.conf or topology.yaml, or a tree or torus in text; "
	"without a file, from the registry.",
	CMD_WORDS(words), NULL, check_together,
};

int cmd_fabric(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	int rc = cmd_parse(c, &syntax, &a, argc, argv, e);

	if (rc == 0)
		rc = a.verb->run(c, &a, e);
	buf_free(&a.exports);
	return rc;
}
