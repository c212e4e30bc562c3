/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "options.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "submit.h"
#include "topo/level.h"

struct options options;

static int level_check(const char *value, char *out, size_t size, struct err *e)
{
	if (strlen(value) >= size || (level_parse(value) < 0 && strcasecmp(value, "off")))
		return err_set(e, "--topo-level=%.64s: not one of package, die, numa, l3, l2, core, node, off", value);
	snprintf(out, size, "%s", value);
	return 0;
}

/* The node has no say in whether the file is there: it is read later, by the user's own process. */
static int matrix_check_remote(const char *value, char *out, size_t size, struct err *e)
{
	if (strlen(value) >= size)
		return err_set(e, "--topo-matrix: longer than %zu bytes", size - 1);
	snprintf(out, size, "%s", value);
	return 0;
}

typedef int check_fn(const char *value, char *out, size_t size, struct err *e);

enum { LEVEL, MATRIX, OPTIONS };

static const struct {
	check_fn *submit, *remote;
	char *out;
	size_t size;
} checks[OPTIONS] = {
	[LEVEL] = { level_check, level_check, options.level, sizeof(options.level) },
	[MATRIX] = { submit_matrix, matrix_check_remote, options.matrix, sizeof(options.matrix) },
};

/* A job that is already placed is never refused: on the node a bad value is as if it had not been given. */
static int option_set(int which, const char *value, int remote)
{
	check_fn *check = remote ? checks[which].remote : checks[which].submit;
	struct err e;

	if (!check(value ? value : "", checks[which].out, checks[which].size, &e))
		return 0;
	slurm_error("topiary: %s%s", e.text, remote ? "; ignored" : "");
	return remote ? 0 : -1;
}

static struct spank_option table[OPTIONS] = {
	[LEVEL] = { "topo-level", "LEVEL", "hardware boundary that the job should stay within: package, die, numa, l3, "
		"l2, core, node or off", 1, LEVEL, option_set },
	[MATRIX] = { "topo-matrix", "FILE", "communication matrix of the job's ranks: mpirun places them by it",
		1, MATRIX, option_set },
};

int options_register(spank_t sp, int argc, char **argv)
{
	(void) argc, (void) argv;
	for (int i = 0; i < OPTIONS; i++)
		if (spank_option_register(sp, &table[i]) != ESPANK_SUCCESS)
			slurm_error("topiary: --%s cannot be offered", table[i].name);
	return 0;
}
