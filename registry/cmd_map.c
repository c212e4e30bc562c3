/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cmd.h"
#include "cmd_explain.h"
#include "cmd_place.h"
#include "map/matrix.h"
#include "map/rankfile.h"
#include "map/solve.h"

struct args {
	const char *matrix, *nodes, *snapshot, *output, *format, *per_node;
	unsigned job, ranks, seed;
	bool explain, explain_json;
};

enum { OPT_MATRIX = 0x200, OPT_JOB, OPT_NODES, OPT_SNAPSHOT, OPT_FORMAT, OPT_RANKS, OPT_PER_NODE, OPT_SEED, OPT_EXPLAIN };

static const struct argp_option options[] = {
	{ "matrix", OPT_MATRIX, "FILE", 0, "What each pair of ranks exchanges: dense text, Matrix Market or Scotch graph", 0 },
	{ "job", OPT_JOB, "ID", 0, "Map onto the cores that this running job has (default: $SLURM_JOB_ID)", 0 },
	{ "nodes", OPT_NODES, "HOSTS[=CORES];...", 0, "Map onto these instead, without Slurm; no CORES: all of a node", 0 },
	{ "snapshot", OPT_SNAPSHOT, "FILE", 0, "The nodes' hardware, instead of SnapshotFile or the registry", 0 },
	{ "format", OPT_FORMAT, "NAME", 0, "The form of the rank file: plain (default) or openmpi", 0 },
	{ "ranks", OPT_RANKS, "N", 0, "Map N ranks (default: the job's tasks, else all of the matrix)", 0 },
	{ "tasks-per-node", OPT_PER_NODE, "LIST", 0, "So many ranks at most on each node in turn, as \"6(x2),5\" (default: "
	  "$SLURM_TASKS_PER_NODE inside the job)", 0 },
	{ "seed", OPT_SEED, "N", 0, "The same seed gives the same mapping (default: 1)", 0 },
	{ "explain", OPT_EXPLAIN, "json", OPTION_ARG_OPTIONAL, "Say what the mapping costs beside others; on standard error "
	  "when the rank file goes to standard output", 0 },
	{ "output", 'o', "FILE", 0, "Write the rank file there, whole or not at all", 0 },
	{0},
};

static unsigned number(struct argp_state *state, const char *what, const char *text, unsigned min)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || n < min || n > UINT32_MAX)
		argp_error(state, "%s: '%s' is no such number", what, text);
	return n;
}

static error_t explain(struct args *a, const char *arg, struct argp_state *state)
{
	if (arg && strcmp(arg, "json"))
		argp_error(state, "--explain is a table, --explain=json is JSON; '%s' is neither", arg);
	a->explain = true;
	a->explain_json = arg;
	return 0;
}

static error_t at_end(struct args *a, struct argp_state *state)
{
	const char *job = getenv("SLURM_JOB_ID");

	if (!a->matrix)
		argp_error(state, "--matrix is needed");
	if (a->job && a->nodes)
		argp_error(state, "--job or --nodes, not both");
	if (!a->job && !a->nodes && !job)
		argp_error(state, "--job or --nodes is needed outside a job");
	if (!a->nodes && !a->per_node && job && (!a->job || a->job == strtoul(job, NULL, 10)))
		a->per_node = getenv("SLURM_TASKS_PER_NODE");
	if (!a->job && !a->nodes)
		a->job = number(state, "SLURM_JOB_ID", job, 1);
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case OPT_MATRIX:
		return a->matrix = arg, 0;
	case OPT_JOB:
		return a->job = number(state, "--job", arg, 1), 0;
	case OPT_NODES:
		return a->nodes = arg, 0;
	case OPT_SNAPSHOT:
		return a->snapshot = arg, 0;
	case OPT_FORMAT:
		return a->format = arg, 0;
	case OPT_RANKS:
		return a->ranks = number(state, "--ranks", arg, 1), 0;
	case OPT_PER_NODE:
		return a->per_node = arg, 0;
	case OPT_SEED:
		return a->seed = number(state, "--seed", arg, 0), 0;
	case OPT_EXPLAIN:
		return explain(a, arg, state);
	case 'o':
		return a->output = arg, 0;
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

static int load_job(const struct cmd *c, const struct args *a, struct job *job, struct err *e)
{
	struct snapshot *s = load_snapshot(c, a, e);
	int rc;

	if (!s)
		return -1;
	rc = a->nodes ? job_from_words(a->nodes, s, job, e) : job_load(a->job, s, job, e);
	snapshot_free(s);
	return rc;
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
static int make_room(struct places *p, const char *per_node, unsigned ranks, struct err *e)
{
	unsigned *tasks = malloc(p->nhosts * sizeof(*tasks));
	int rc = 0;

	if (!tasks)
		return err_set(e, "out of memory");
	memset(tasks, 0xff, p->nhosts * sizeof(*tasks));
	if (per_node && read_tasks(per_node, tasks, p->nhosts))
		rc = err_set(e, "tasks per node '%s': not what a job of %u node(s) has", per_node, p->nhosts);
	else if (per_node || ranks > p->nplaces)
		rc = places_fit(p, tasks, e);
	free(tasks);
	return rc;
}

static int write_mapping(const struct args *a, const struct job *job, const struct mapping *m, struct err *e)
{
	struct buf out = {0};
	int rc = rankfile_write(a->format, job->places, m, &out, e);

	if (rc == 0)
		rc = cmd_write(a->output, &out, e);
	buf_free(&out);
	if (rc == 0 && a->explain)
		rc = explain_mapping(m, job->places, a->explain_json, a->output ? stdout : stderr, e);
	return rc;
}

int cmd_map(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .format = "plain", .seed = 1 };
	struct job job = {0};
	struct matrix *m = NULL;
	struct mapping mapping;
	int rc = -1;

	if (cmd_parse(c, &argp, &a, argc, argv, e))
		return -1;
	a.explain |= c->json;
	a.explain_json |= c->json;
	if (load_job(c, &a, &job, e) || !(m = load_matrix(a.matrix, a.ranks ? a.ranks : job.tasks, e)))
		goto error;
	if (make_room(job.places, a.per_node, m->ranks, e))
		goto error;
	if (mapping_solve(m, job.places, a.seed, &mapping, e) == 0) {
		rc = write_mapping(&a, &job, &mapping, e);
		mapping_free(&mapping);
	}
error:
	matrix_free(m);
	places_free(job.places);
	return rc;
}
