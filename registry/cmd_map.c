/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "cmd.h"
#include "cmd_explain.h"
#include "cmd_network.h"
#include "cmd_place.h"
#include "cmd_rankfile.h"
#include "fabric/fabric.h"
#include "map/blocks.h"
#include "map/matrix.h"
#include "map/solve.h"

struct args {
	const char *matrix, *nodes, *arch, *distances, *snapshot, *per_node, *costs;
	struct rankfile_output output;
	unsigned job, ranks, seed, cpus, plane;
	int effort, fill;
	bool explain, explain_json, block;
};

enum { ANY_PLANE = ~0u };

enum {
	OPT_MATRIX = 0x200, OPT_JOB, OPT_NODES, OPT_ARCH, OPT_DISTANCES, OPT_SNAPSHOT, OPT_FORMAT, OPT_RANKS, OPT_PER_NODE, OPT_CPUS,
	OPT_FILL, OPT_COSTS, OPT_EFFORT, OPT_SEED, OPT_EXPLAIN,
	OPT_ENV, OPT_TOPOLOGY, OPT_BLOCK, OPT_PLANE,
};

static const struct argp_option options[] = {
	{ "matrix", OPT_MATRIX, "FILE", 0, "What each pair of ranks exchanges: see topiary matrix", 0 },
	{ "job", OPT_JOB, "ID", 0, "Map onto the cores that this running job has (default: $SLURM_JOB_ID)", 0 },
	{ "nodes", OPT_NODES, "HOSTS[=CORES];...", 0, "Map onto these instead, without Slurm; no CORES: all of a node", 0 },
	{ "arch", OPT_ARCH, "FILE", 0, "The network above the nodes (default: FabricFile, or the registry's); alone also the nodes and "
	  "their insides, which the hierarchical format tells", 0 },
	{ "plane", OPT_PLANE, "N", 0, "Of a network of several planes this one, from 0 (default: that of most hosts)", 0 },
	{ "distances", OPT_DISTANCES, "FILE", 0, "The cost between any two places, a matrix, instead of that of levels", 0 },
	{ "snapshot", OPT_SNAPSHOT, "FILE", 0, "The nodes' hardware, instead of SnapshotFile or the registry", 0 },
	{ "format", OPT_FORMAT, "NAME", 0, "The form of the rank file: plain (default), openmpi, openmpi5, mpich, intelmpi, "
	  "mvapich2, cray or srun; or several, a,b: then -o FILE makes FILE.a and FILE.b", 0 },
	{ "env", OPT_ENV, "FILE", 0, "Write there what the launcher is to find in its environment, NAME=value lines", 0 },
	{ "topology", OPT_TOPOLOGY, "HOSTS=FILE;...", 0, "The nodes' exported topologies, for formats that name CPUs by the system's "
	  "numbers (default: the registry's)", 0 },
	{ "block", OPT_BLOCK, NULL, 0, "Leave each rank on the node where block has it, and choose its place there only, for launchers "
	  "that number ranks node after node", 0 },
	{ "ranks", OPT_RANKS, "N", 0, "Map N ranks (default: the job's tasks, else all of the matrix)", 0 },
	{ "tasks-per-node", OPT_PER_NODE, "LIST", 0, "So many ranks at most on each node in turn, as \"6(x2),5\" (default: "
	  "$SLURM_TASKS_PER_NODE inside the job)", 0 },
	{ "cpus-per-task", OPT_CPUS, "N", 0, "So many CPUs together are a place (default: as the job has it, else 1)", 0 },
	{ "fill", OPT_FILL, "HOW", 0, "With more places than ranks use the first (compact), some evenly over the nodes (spread), or "
	  "what costs least (auto, default)", 0 },
	{ "costs", OPT_COSTS, "LEVEL=N,...", 0, "What a unit costs across a level (default: node=100,package=20,die=14,numa=12,l3=8,"
	  "l2=4,core=2)", 0 },
	{ "effort", OPT_EFFORT, "HOW", 0, "How long to search: fast, normal (default) or high", 0 },
	{ "seed", OPT_SEED, "N", 0, "The same seed gives the same mapping (default: 1)", 0 },
	{ "explain", OPT_EXPLAIN, "json", OPTION_ARG_OPTIONAL, "Say what the mapping costs beside others; on standard error "
	  "when the rank file goes to standard output", 0 },
	{ "output", 'o', "FILE", 0, "Write the rank file there, whole or not at all", 0 },
	{0},
};

static error_t explain(struct args *a, const char *arg, struct argp_state *state)
{
	if (arg && strcmp(arg, "json"))
		argp_error(state, "--explain is a table, --explain=json is JSON; '%s' is neither", arg);
	a->explain = true;
	a->explain_json = arg;
	return 0;
}

static error_t choice(struct argp_state *state, const char *what, const char *arg, int (*parse_one)(const char *name), int *out)
{
	if ((*out = parse_one(arg)) < 0)
		argp_error(state, "%s=%s: no such choice", what, arg);
	return 0;
}

static error_t at_end(struct args *a, struct argp_state *state)
{
	const char *job = getenv("SLURM_JOB_ID");
	struct err e;

	if (!a->matrix)
		argp_error(state, "--matrix is needed");
	if (a->plane != ANY_PLANE && !a->arch)
		argp_error(state, "--plane is one of --arch's");
	if (a->job && a->nodes)
		argp_error(state, "--job or --nodes, not both");
	if (!a->job && !a->nodes && !a->arch && !a->distances) {
		if (!job)
			argp_error(state, "--job, --nodes, --arch or --distances is needed outside a job");
		a->job = cmd_arg_number(state, "SLURM_JOB_ID", job, 1);
	}
	if (!a->job && !a->nodes && !a->arch && strcmp(a->output.formats, "plain"))
		argp_error(state, "--distances alone names no hosts: only --format=plain can be written");
	if (a->block && a->explain)
		argp_error(state, "--block compares nothing that --explain could tell");
	if (rankfile_output_check(&a->output, &e))
		argp_error(state, "%s", e.text);
	if (a->job && !a->per_node && job && a->job == strtoul(job, NULL, 10))
		a->per_node = getenv("SLURM_TASKS_PER_NODE");
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case OPT_MATRIX:
		return a->matrix = arg, 0;
	case OPT_JOB:
		return a->job = cmd_arg_number(state, "--job", arg, 1), 0;
	case OPT_NODES:
		return a->nodes = arg, 0;
	case OPT_ARCH:
		return a->arch = arg, 0;
	case OPT_PLANE:
		return a->plane = cmd_arg_number(state, "--plane", arg, 0), 0;
	case OPT_DISTANCES:
		return a->distances = arg, 0;
	case OPT_CPUS:
		return a->cpus = cmd_arg_number(state, "--cpus-per-task", arg, 1), 0;
	case OPT_FILL:
		return choice(state, "--fill", arg, places_fill_parse, &a->fill);
	case OPT_COSTS:
		return a->costs = arg, 0;
	case OPT_EFFORT:
		return choice(state, "--effort", arg, mapping_effort_parse, &a->effort);
	case OPT_SNAPSHOT:
		return a->snapshot = arg, 0;
	case OPT_FORMAT:
		return a->output.formats = arg, 0;
	case OPT_ENV:
		return a->output.env = arg, 0;
	case OPT_TOPOLOGY:
		return a->output.topology = arg, 0;
	case OPT_BLOCK:
		return a->block = true, 0;
	case OPT_RANKS:
		return a->ranks = cmd_arg_number(state, "--ranks", arg, 1), 0;
	case OPT_PER_NODE:
		return a->per_node = arg, 0;
	case OPT_SEED:
		return a->seed = cmd_arg_number(state, "--seed", arg, 0), 0;
	case OPT_EXPLAIN:
		return explain(a, arg, state);
	case 'o':
		return a->output.file = arg, 0;
	case ARGP_KEY_END:
		return at_end(a, state);
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	options, parse, "", "Map the ranks of a job to its cores and write a rank file.", NULL, NULL, NULL,
};

/* The snapshot file where there is one (on the front end, or shared), else the registry's. */
static struct snapshot *load_snapshot(const struct cmd *c, const struct args *a, struct err *e)
{
	const char *path = a->snapshot ? a->snapshot : c->settings.snapshot_file;
	struct buf text = {0};
	struct snapshot *s;
	struct err file, http;

	if (file_read(path, SNAPSHOT_MAX_BYTES, &text, &file)) {
		path = "/v1/snapshot";
		if (a->snapshot) {
			err_set(e, "%s", file.text);
			return NULL;
		}
		if (cmd_get(c, path, &text, &http)) {
			err_set(e, "neither a snapshot file (%.200s) nor a registry (%.200s)", file.text, http.text);
			return NULL;
		}
	}
	s = snapshot_parse(text.data, text.len, path, e);
	buf_free(&text);
	return s;
}

/* The nodes by Slurm or by name, their shapes by the snapshot. */
static int load_nodes(const struct cmd *c, const struct args *a, struct site *site, struct job *job, struct err *e)
{
	struct snapshot *s = load_snapshot(c, a, e);
	int rc;

	if (!s)
		return -1;
	site->snapshot = s;
	rc = a->nodes ? job_from_words(a->nodes, site, job, e) : job_load(a->job, site, job, e);
	snapshot_free(s);
	return rc;
}

static int load_distances(const struct args *a, struct job *job, struct err *e)
{
	struct matrix *m = matrix_read(a->distances, e);
	int rc;

	if (!m)
		return -1;
	rc = job->places ? places_distances(job->places, m, e) : job_from_distances(m, job, e);
	matrix_free(m);
	return rc ? err_within(e, "%s", a->distances) : 0;
}

static int load_job(const struct cmd *c, const struct args *a, struct site *site, struct job *job, struct err *e)
{
	if (a->job || a->nodes) {
		if (load_nodes(c, a, site, job, e))
			return -1;
	} else if (site->network && job_from_network(site, job, e)) {
		return err_within(e, "%s", a->arch);
	}
	return a->distances ? load_distances(a, job, e) : 0;
}

/* With what the registry published of the network, where that knows all of the nodes; with none otherwise. */
static int load_published(const struct cmd *c, const struct args *a, struct site *site, struct job *job, struct err *e)
{
	struct err why = {""};

	site->without = &why;
	if (load_job(c, a, site, job, e))
		return -1;
	if (why.text[0])
		log_warning("%s; mapped without the network", why.text);
	return 0;
}

/* As many ranks as the job has tasks; a longer matrix is cut. */
static struct matrix *load_matrix(const char *path, unsigned ranks, struct err *e)
{
	struct matrix *whole = matrix_read(path, e), *head = NULL;

	if (!whole || !ranks || ranks == whole->ranks)
		return whole;
	if (ranks > whole->ranks)
		err_set(e, "%s: a matrix of %u ranks for %u tasks", path, whole->ranks, ranks);
	else if (!(head = matrix_head(whole, ranks)))
		err_set(e, "%s: out of memory", path);
	matrix_free(whole);
	return head;
}

/* "6(x2)" or "5": a count and how many hosts in turn have it; what follows, or NULL. */
static const char *read_count(const char *at, unsigned *count, unsigned *times)
{
	int used = 0, more = 0;

	*times = 1;
	if (sscanf(at, "%9u%n", count, &used) != 1 || !*count)
		return NULL;
	at += used;
	if (*at == '(' && (sscanf(at, "(x%9u)%n", times, &more) != 1 || !more || !*times))
		return NULL;
	return at + more;
}

/* "6(x2),5": the tasks of each host, as SLURM_TASKS_PER_NODE has it. 0, or -1 when it is not that or for another number of hosts. */
static int read_tasks(const char *at, unsigned *tasks, unsigned hosts)
{
	unsigned n = 0, count, times;

	while ((at = read_count(at, &count, &times)) && times <= hosts - n) {
		while (times--)
			tasks[n++] = count;
		if (!*at)
			return n == hosts ? 0 : -1;
		if (*at++ != ',')
			return -1;
	}
	return -1;
}

/* Slurm gives a task a CPU, which on cores of several PUs is part of a core, and each node its share of the tasks. */
static int fit_tasks(struct places *p, const struct args *a, struct err *e)
{
	unsigned *tasks = malloc(p->nhosts * sizeof(*tasks));
	int rc = 0;

	if (!tasks)
		return err_set(e, "out of memory");
	memset(tasks, 0xff, p->nhosts * sizeof(*tasks));
	if (a->per_node && read_tasks(a->per_node, tasks, p->nhosts))
		rc = err_set(e, "tasks per node '%s': not what a job of %u node(s) has", a->per_node, p->nhosts);
	else
		rc = places_fit(p, tasks, a->fill, e);
	free(tasks);
	return rc;
}

static int make_room(const struct job *job, const struct args *a, unsigned ranks, struct err *e)
{
	struct places *p = job->places;

	if ((a->per_node || ranks > p->nplaces) && fit_tasks(p, a, e))
		return -1;
	if (ranks > p->nplaces && job->cpus < 2)
		return err_set(e, "%u ranks, but only %u places", ranks, p->nplaces);
	if (ranks > p->nplaces)
		return err_set(e, "%u ranks of %u CPUs, but the job's cores make only %u such places", ranks, job->cpus, p->nplaces);
	return places_fill(p, ranks, a->fill, e);
}

static int write_mapping(const struct cmd *c, const struct args *a, const struct job *job, const struct mapping *m, struct err *e)
{
	if (rankfile_output_write(c, &a->output, job->places, m, e))
		return -1;
	return a->explain ? explain_mapping(m, job->places, a->explain_json, a->output.file ? stdout : stderr, e) : 0;
}

static unsigned hosts_connected(const struct fabric *f)
{
	unsigned n = 0;

	for (unsigned i = f->nswitches; i < f->nnodes; i++)
		n += f->nodes[i].plane != FABRIC_NO_PLANE;
	return n;
}

/* Where the network also names the nodes, none is left out unless a plane was asked for. */
static const struct hierarchy *network_of(const struct fabric *f, const struct args *a, struct err *e)
{
	unsigned plane = a->plane == ANY_PLANE ? 0 : a->plane;
	const struct hierarchy *h = plane < f->nplanes ? f->planes[plane].levels : NULL;

	if (!h && a->plane == ANY_PLANE)
		err_set(e, "%s: no hosts in it", a->arch);
	else if (!h)
		err_set(e, "%s: plane %u: there is none with hosts", a->arch, plane);
	else if (a->plane == ANY_PLANE && !a->job && !a->nodes && h->nhosts < hosts_connected(f))
		err_set(e, "%s: only %u of its %u hosts are in one plane: --plane=N says which to map onto", a->arch, h->nhosts,
			hosts_connected(f));
	else
		return h;
	return NULL;
}

static int map_job(const struct cmd *c, const struct args *a, struct job *job, struct err *e)
{
	struct matrix *m = load_matrix(a->matrix, a->ranks ? a->ranks : job->tasks, e);
	int (*solve)(const struct matrix *, const struct places *, enum mapping_effort, unsigned, struct mapping *, struct err *) =
		a->block ? mapping_blocks : mapping_solve;
	struct mapping mapping;
	int rc = -1;

	if (m && make_room(job, a, m->ranks, e) == 0 && solve(m, job->places, a->effort, a->seed, &mapping, e) == 0) {
		if (!a->explain || !isnan(mapping.scotch) || mapping_compare(m, job->places, a->seed, &mapping, e) == 0)
			rc = write_mapping(c, a, job, &mapping, e);
		mapping_free(&mapping);
	}
	matrix_free(m);
	return rc;
}

int cmd_map(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .output.formats = "plain", .seed = 1, .effort = EFFORT_NORMAL, .fill = FILL_AUTO, .plane = ANY_PLANE };
	struct site site = {0};
	struct hierarchy *published = NULL;
	struct fabric *fabric = NULL;
	struct job job = {0};
	int rc = -1;

	if (cmd_parse(c, &argp, &a, argc, argv, e))
		return -1;
	a.explain |= c->json && !a.block;
	a.explain_json |= c->json;
	if (a.arch && (!(fabric = fabric_read(&a.arch, 1, NULL, e)) || !(site.network = network_of(fabric, &a, e))))
		goto out;
	if (!a.arch && !a.distances && !a.snapshot)
		site.network = published = network_published(c);
	site.planes = fabric;
	site.costs = a.costs;
	site.cpus = a.cpus;
	if ((published ? load_published : load_job)(c, &a, &site, &job, e) == 0)
		rc = map_job(c, &a, &job, e);
out:
	places_free(job.places);
	hierarchy_free(published);
	fabric_free(fabric);
	return rc;
}
