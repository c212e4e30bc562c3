/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "cmd_fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_table.h"

struct args {
	const char *verb;
	const char **files, **exports;	/* exports: XML files of nodes */
	size_t nfiles, nexports;
	const char *nodes, *format, *output;
	unsigned job, plane;
	bool svg;
};

/* What a verb works with. */
struct work {
	const struct cmd *cmd;
	const struct args *args;
	const struct fabric *fabric;
	const struct chosen *chosen;	/* NULL: neither --nodes nor --job */
};

enum { OPT_SVG = 0x200, OPT_NODES, OPT_JOB, OPT_XML, OPT_FORMAT, OPT_PLANE };

static const struct argp_option options[] = {
	{ "svg", OPT_SVG, NULL, 0, "show: draw it", 0 },
	{ "nodes", OPT_NODES, "HOSTLIST", 0, "show --svg: colour these; export for Slurm: write no others", 0 },
	{ "job", OPT_JOB, "ID", 0, "The same, for the nodes of this job", 0 },
	{ "xml", OPT_XML, "FILE.xml", 0, "A node's export (several may be given): tells which GUIDs are that node's", 0 },
	{ "format", OPT_FORMAT, "NAME", 0, "export: slurm (topology.conf), slurm-yaml (topology.yaml), paper (levels as text), "
	  "scotch (architecture) or json", 0 },
	{ "plane", OPT_PLANE, "N", 0, "export: this plane, from 0, where the format has but one (default: 0, that of most hosts)", 0 },
	{ "output", 'o', "FILE", 0, "Write there, whole or not at all", 0 },
	{0},
};

static error_t at_end(const struct args *a, struct argp_state *state)
{
	if (!a->verb)
		argp_error(state, "show, import or export?");
	if (!a->nfiles)
		argp_error(state, "which FILE?");
	if (a->nodes && a->job)
		argp_error(state, "--nodes or --job, not both");
	if (!strcmp(a->verb, "export") != !!a->format)
		argp_error(state, a->format ? "--format is of export" : "export: --format is needed");
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
	options, parse, "show FILE...\nimport FILE...\nexport --format=NAME FILE...",
	"What a fabric is, from ibnetdiscover's output, Slurm's topology.conf or a tree or torus as text: shown as a table or drawn, "
	"or written for others.", NULL, NULL, NULL,
};

/* "4 x 4 x 4" of a torus, "5" of a tree: at most. */
static void put_size(struct buf *b, const struct hierarchy_level *l)
{
	for (unsigned d = 0; d < l->dims; d++)
		buf_printf(b, "%s%u", d ? " x " : "", l->dim[d]);
}

static int print_planes(const struct fabric *f, struct err *e)
{
	static const struct table_column columns[] = {
		{ "PLANE", TABLE_RIGHT }, { "KIND", TABLE_LEFT }, { "SWITCHES", TABLE_RIGHT }, { "HOSTS", TABLE_RIGHT },
		{ "LINKS", TABLE_RIGHT }, { "CABLES", TABLE_RIGHT }, { NULL, TABLE_LEFT },
	};
	struct table *t = table_new(columns);
	int rc;

	for (unsigned i = 0; t && i < f->nplanes; i++) {
		const struct fabric_plane *p = &f->planes[i];

		table_cell(t, "%u", i);
		table_cell(t, "%s", fabric_kind_name(p->kind));
		table_cell(t, "%u", p->switches);
		table_cell(t, "%u", p->hosts);
		table_cell(t, "%u", p->links);
		table_cell(t, "%u", p->cables);
	}
	rc = t ? table_print(t, stdout) : -1;
	table_free(t);
	return rc ? err_set(e, "stdout: cannot write the table") : 0;
}

/* What an element of a level is: on a tree's, of so many tiers. */
static const char *element_name(const struct hierarchy *h, unsigned l)
{
	if (l + 1 == h->nlevels)
		return "host";
	return l + 2 == h->nlevels ? "leaf switch" : "group";
}

static int print_levels(const struct fabric *f, struct err *e)
{
	static const struct table_column columns[] = {
		{ "PLANE", TABLE_RIGHT }, { "LEVEL", TABLE_RIGHT }, { "OF", TABLE_LEFT }, { "AT MOST", TABLE_RIGHT },
		{ "COST", TABLE_RIGHT }, { "PRUNED", TABLE_RIGHT }, { NULL, TABLE_LEFT },
	};
	struct table *t = table_new(columns);
	int rc;

	for (unsigned i = 0; t && i < f->nplanes; i++)
		for (unsigned l = 0; f->planes[i].levels && l < f->planes[i].levels->nlevels; l++) {
			const struct hierarchy_level *level = &f->planes[i].levels->level[l];
			struct buf size = {0};

			put_size(&size, level);
			table_cell(t, "%u", i);
			table_cell(t, "%u", l);
			table_cell(t, "%s", element_name(f->planes[i].levels, l));
			table_cell(t, "%s", size.failed ? "?" : size.data);
			table_cell(t, "%u", level->cost[0]);
			if (level->pruned > 100)
				table_cell(t, "%u.%02u:1", level->pruned / 100, level->pruned % 100);
			else
				table_cell(t, "-");
			buf_free(&size);
		}
	rc = t ? table_print(t, stdout) : -1;
	table_free(t);
	return rc ? err_set(e, "stdout: cannot write the table") : 0;
}

/* Switches with their hosts and trunks. */
static int print_switches(const struct fabric *f, struct err *e)
{
	static const struct table_column columns[] = {
		{ "SWITCH", TABLE_LEFT }, { "PLANE", TABLE_RIGHT }, { "RANK", TABLE_RIGHT }, { "HOSTS", TABLE_RIGHT },
		{ "NEIGHBOURS", TABLE_RIGHT }, { "CABLES", TABLE_RIGHT }, { NULL, TABLE_LEFT },
	};
	struct {
		unsigned hosts, neighbours, cables;
	} *sums = calloc(f->nswitches + 1, sizeof(*sums));
	struct table *t = table_new(columns);
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
	for (unsigned i = 0; sums && t && i < f->nswitches; i++) {
		table_cell(t, "%s", f->nodes[i].name);
		table_cell(t, "%u", f->nodes[i].plane);
		table_cell(t, "%u", f->nodes[i].rank);
		table_cell(t, "%u", sums[i].hosts);
		table_cell(t, "%u", sums[i].neighbours);
		table_cell(t, "%u", sums[i].cables);
	}
	if (sums && t)
		rc = table_print(t, stdout);
	free(sums);
	table_free(t);
	return rc ? err_set(e, "stdout: cannot write the table") : 0;
}

static int print_odd(const struct fabric *f, struct err *e)
{
	struct buf odd = {0};
	int rc = 0;

	fabric_tell_odd(f, &odd);
	if (odd.failed)
		rc = err_set(e, "out of memory");
	else if (odd.len && (putchar('\n') == EOF || fputs(odd.data, stdout) == EOF))
		rc = err_set(e, "stdout: %s", strerror(errno));
	buf_free(&odd);
	return rc;
}

static int show_table(const struct fabric *f, struct err *e)
{
	if (print_planes(f, e) || putchar('\n') == EOF || print_levels(f, e) || putchar('\n') == EOF || print_switches(f, e))
		return -1;
	return print_odd(f, e);
}

static int write_json(const struct work *w, struct buf *out, struct err *e)
{
	json_t *j = fabric_json(w->fabric);
	char *text = j ? json_dumps(j, JSON_INDENT(2)) : NULL;

	if (text)
		buf_printf(out, "%s\n", text);
	free(text);
	json_decref(j);
	return text ? 0 : err_set(e, "out of memory");
}

static int write_slurm(const struct work *w, struct buf *out, struct err *e)
{
	return fabric_write_slurm(w->fabric, w->chosen, out, e);
}

static int write_yaml(const struct work *w, struct buf *out, struct err *e)
{
	return fabric_write_slurm_yaml(w->fabric, w->chosen, out, e);
}

static const struct hierarchy *plane_of(const struct work *w, struct err *e)
{
	if (w->args->plane < w->fabric->nplanes && w->fabric->planes[w->args->plane].levels)
		return w->fabric->planes[w->args->plane].levels;
	err_set(e, "plane %u: there is none with hosts", w->args->plane);
	return NULL;
}

static int write_paper(const struct work *w, struct buf *out, struct err *e)
{
	const struct hierarchy *h = plane_of(w, e);

	return h ? hierarchy_write(h, out, e) : -1;
}

static int write_scotch(const struct work *w, struct buf *out, struct err *e)
{
	const struct hierarchy *h = plane_of(w, e);

	return h ? fabric_write_scotch(h, out, e) : -1;
}

static int run_export(const struct work *w, struct buf *out, struct err *e)
{
	static const struct {
		const char *name;
		int (*write)(const struct work *w, struct buf *out, struct err *e);
	} formats[] = {
		{ "slurm", write_slurm }, { "slurm-yaml", write_yaml }, { "paper", write_paper }, { "scotch", write_scotch },
		{ "json", write_json },
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(w->args->format, formats[i].name))
			return formats[i].write(w, out, e) ? err_within(e, "%s", formats[i].name) : 0;
	return err_set(e, "format '%s': slurm, slurm-yaml, paper, scotch or json", w->args->format);
}

/* Off line, what is imported is what is shown. */
static int run_show(const struct work *w, struct buf *out, struct err *e)
{
	if (w->args->svg)
		return fabric_draw(w->fabric, w->chosen, out, e);
	if (w->cmd->json)
		return write_json(w, out, e);
	return show_table(w->fabric, e);
}

static int run(struct work *w, struct err *e)
{
	static const struct {
		const char *verb;
		int (*run)(const struct work *w, struct buf *out, struct err *e);
	} verbs[] = { { "show", run_show }, { "import", run_show }, { "export", run_export } };
	struct buf out = {0};
	int rc = err_set(e, "'%s': show, import or export?", w->args->verb);

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(w->args->verb, verbs[i].verb))
			rc = verbs[i].run(w, &out, e);
	if (rc == 0 && out.len)
		rc = cmd_write(w->args->output, &out, e);
	buf_free(&out);
	return rc;
}

static int run_chosen(struct work *w, struct err *e)
{
	const struct args *a = w->args;
	struct chosen chosen = { .has = hosts_has };
	struct hosts *hosts;
	int rc;

	if (!a->nodes && !a->job)
		return run(w, e);
	if (!(hosts = a->nodes ? hosts_of_list(a->nodes, e) : hosts_of_job(a->job, e)))
		return -1;
	chosen.user = hosts;
	w->chosen = &chosen;
	rc = run(w, e);
	hosts_free(hosts);
	return rc;
}

static struct fabric *load(const struct args *a, struct err *e)
{
	struct fabric_names *names = fabric_names_new();
	struct fabric *f = NULL;
	int rc = names ? 0 : err_set(e, "out of memory");

	for (size_t i = 0; i < a->nexports && rc == 0; i++)
		rc = fabric_names_learn(names, a->exports[i], e);
	if (rc == 0)
		f = fabric_read(a->files, a->nfiles, names, e);
	fabric_names_free(names);
	return f;
}

int cmd_fabric(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .files = calloc(argc + 1, sizeof(*a.files)), .exports = calloc(argc + 1, sizeof(*a.exports)) };
	struct fabric *f = NULL;
	int rc = a.files && a.exports ? 0 : err_set(e, "out of memory");

	if (rc == 0)
		rc = cmd_parse(c, &argp, &a, argc, argv, e);
	if (rc == 0)
		rc = (f = load(&a, e)) ? run_chosen(&(struct work){ .cmd = c, .args = &a, .fabric = f }, e) : -1;
	fabric_free(f);
	free(a.files);
	free(a.exports);
	return rc;
}
