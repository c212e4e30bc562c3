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
	const char *matrix, *nodes, *snapshot, *output, *format;
	unsigned job, ranks, seed;
	bool explain, explain_json;
};

enum { OPT_MATRIX = 0x200, OPT_JOB, OPT_NODES, OPT_SNAPSHOT, OPT_FORMAT, OPT_RANKS, OPT_SEED, OPT_EXPLAIN };

static const struct argp_option options[] = {
	{ "matrix", OPT_MATRIX, "FILE", 0, "What each pair of ranks exchanges: dense text, Matrix Market or Scotch graph", 0 },
	{ "job", OPT_JOB, "ID", 0, "Map onto the cores that this running job has (default: $SLURM_JOB_ID)", 0 },
	{ "nodes", OPT_NODES, "HOSTS[=CORES];...", 0, "Map onto these instead, without Slurm; no CORES: all of a node", 0 },
	{ "snapshot", OPT_SNAPSHOT, "FILE", 0, "The nodes' hardware, instead of SnapshotFile or the registry", 0 },
	{ "format", OPT_FORMAT, "NAME", 0, "The form of the rank file: plain (default) or openmpi", 0 },
	{ "ranks", OPT_RANKS, "N", 0, "Map N ranks (default: the job's tasks, else all of the matrix)", 0 },
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

/* Slurm gives a task a CPU, which on cores of several PUs may be half a core. */
static int make_room(struct places *p, unsigned ranks, struct err *e)
{
	return ranks > p->nplaces ? places_share_cores(p, e) : 0;
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
	if (make_room(job.places, m->ranks, e))
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
