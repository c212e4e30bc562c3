/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "options.h"

#include <stdio.h>
#include <string.h>

#include "fit/request.h"
#include "submit.h"

struct options options;

static int request_check(const char *name, const char *value, struct err *e)
{
	struct request r = {0};

	return request_set(&r, name, value, e);
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

enum { FIT, LEVEL, REQUEST, MATRIX, CAPTURE, OPTIONS };

static const struct {
	take_fn *submit, *remote;
} takes[OPTIONS] = {
	[FIT] = { request_check, leave },
	[LEVEL] = { request_check, leave },
	[REQUEST] = { request_check, leave },
	[MATRIX] = { matrix_submit, matrix_take },
	[CAPTURE] = { capture_submit, capture_take },
};

static int option_set(int which, const char *value, int remote);

static struct spank_option table[OPTIONS] = {
	[FIT] = { "topo-fit", "FIT", "how the job's cores should lie in the hardware: off, prefer, require or spread", 1, FIT,
		option_set },
	[LEVEL] = { "topo-level", "LEVEL", "hardware boundary that the job should stay within: package, die, numa, l3, l2 or node",
		1, LEVEL, option_set },
	[REQUEST] = { "topo-request", "PATH", "the hardware wanted on each node, as in /package=1/l3=2/core=4", 1, REQUEST,
		option_set },
	[MATRIX] = { "topo-matrix", "FILE", "communication matrix of the job's ranks: mpirun places them by it", 1, MATRIX,
		option_set },
	[CAPTURE] = { "topo-capture", "FILE", "write what the job's ranks exchange, for --topo-matrix of a later job", 1, CAPTURE,
		option_set },
};

/* A job that is already placed is never refused: on the node a bad value is as if it had not been given. */
static int option_set(int which, const char *value, int remote)
{
	take_fn *take = remote ? takes[which].remote : takes[which].submit;
	struct err e;

	if (!take(table[which].name, value ? value : "", &e))
		return 0;
	slurm_error("topiary: %s%s", e.text, remote ? "; ignored" : "");
	return remote ? 0 : -1;
}

int options_register(spank_t sp, int argc, char **argv)
{
	(void) argc, (void) argv;
	for (int i = 0; i < OPTIONS; i++)
		if (spank_option_register(sp, &table[i]) != ESPANK_SUCCESS)
			slurm_error("topiary: --%s cannot be offered", table[i].name);
	return 0;
}
