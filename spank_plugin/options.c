/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "options.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fit/request.h"
#include "plain.h"
#include "submit.h"

struct options options;

static int request_check(const char *name, const char *value, struct err *e)
{
	struct request r = {0};

	return request_set(&r, name, value, e);
}

static int bind_take(const char *name, const char *value, struct err *e)
{
	return bind_request_set(&options.bind, name, value, e);
}

/* slurmctld has read it by then. */
static int leave(const char *name, const char *value, struct err *e)
{
	(void) name, (void) value, (void) e;
	return 0;
}

static int matrix_submit(const char *name, const char *value, struct err *e)
{
	(void) name;
	return submit_matrix(value, options.matrix, sizeof(options.matrix), e);
}

static int capture_submit(const char *name, const char *value, struct err *e)
{
	(void) name;
	return submit_capture(value, options.capture, sizeof(options.capture), e);
}

/* The node has no say in whether the file is there: it is read later, by the user's own process. */
static int path_take(const char *name, const char *value, char *out, size_t size, struct err *e)
{
	if (strlen(value) >= size)
		return err_set(e, "--%s: longer than %zu bytes", name, size - 1);
	snprintf(out, size, "%s", value);
	return 0;
}

static int matrix_take(const char *name, const char *value, struct err *e)
{
	return path_take(name, value, options.matrix, sizeof(options.matrix), e);
}

static int capture_take(const char *name, const char *value, struct err *e)
{
	return path_take(name, value, options.capture, sizeof(options.capture), e);
}

typedef int take_fn(const char *name, const char *value, struct err *e);

static int option_set(int which, const char *value, int remote);

/* What an option is, but for its number and its callback, and who takes its value on either side. */
static const struct {
	const char *name, *argument, *help;
	int has_argument;	/* as getopt_long(3) has it */
	take_fn *submit, *remote;
} rows[] = {
	{ "topo-fit", "FIT", "how the job's cores should lie in the hardware: off, prefer, require or spread", 1, request_check,
		leave },
	{ "topo-level", "LEVEL", "hardware boundary that the job should stay within: package, die, numa, l3, l2 or node", 1,
		request_check, leave },
	{ "topo-request", "PATH", "the hardware wanted on each node, as in /package=1/l3=2/core=4", 1, request_check, leave },
	{ "topo-matrix", "FILE", "communication matrix of the job's ranks: mpirun and srun place them by it", 1, matrix_submit,
		matrix_take },
	{ "topo-capture", "FILE", "write what the job's ranks exchange, for --topo-matrix of a later job", 1, capture_submit,
		capture_take },
	{ "topo-place", "PLACE", "a task's cores: off, compact[:LEVEL], scatter[:LEVEL] or mem", 1, bind_take, bind_take },
	{ "topo-membind", "POLICY", "a task's memory: off, local, bind or interleave[:job|task]", 1, bind_take, bind_take },
	{ "topo-omp", "FORM", "OpenMP's threads and places within a task's cores: off, auto, gomp or kmp", 1, bind_take, bind_take },
	{ "topo-hugepages", "KIND", "large pages for what malloc gives: off, thp or hugetlb", 1, bind_take, bind_take },
	{ "topo-nic", "RAILS", "network devices near a task: off, auto, one, local or all; with ,strict also as a filter", 1, bind_take,
		bind_take },
	{ "topo-report", "[=json]", "tell where each task is and what it has, as the kernel sees it", 2, bind_take, bind_take },
};

#define OPTIONS (sizeof(rows) / sizeof(*rows))

/* So Slurm carries an option without a value from sbatch to the srun in its script. */
static const char *value_of(const char *value)
{
	return value && strcmp(value, "(null)") ? value : "";
}

/* A job that is already placed is never refused: on the node a bad value is as if it had not been given. */
static int option_set(int which, const char *value, int remote)
{
	take_fn *take = remote || submit_handed_on(rows[which].name, value) ? rows[which].remote : rows[which].submit;
	static bool said[OPTIONS];
	struct err e;

	if (!take(rows[which].name, value_of(value), &e))
		return 0;
	/* An option of srun comes to a node twice: with the step, and in its environment. */
	if (!said[which])
		slurm_error("topiary: %s%s", plain(e.text), remote ? "; ignored" : "");
	said[which] = true;
	return remote ? 0 : -1;
}

int options_register(spank_t sp, int argc, char **argv)
{
	(void) argc, (void) argv;
	for (size_t i = 0; i < OPTIONS; i++) {
		struct spank_option o = { (char *) rows[i].name, (char *) rows[i].argument, (char *) rows[i].help,
			rows[i].has_argument, (int) i, option_set };

		if (spank_option_register(sp, &o) != ESPANK_SUCCESS)
			slurm_error("topiary: --%s cannot be offered", rows[i].name);
	}
	return 0;
}
