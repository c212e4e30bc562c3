/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_PLACE_MAP_H
#define TOPIARY_CLI_PLACE_MAP_H

#include <stdbool.h>
#include <stdio.h>

#include "cmd.h"
#include "costs.h"
#include "map/engine/solve.h"
#include "map/places/places.h"

/* The outputs of a mapping: rankfile.c. */
struct rankfile_output {
	const char *formats;	/* "plain", or several: "openmpi,srun" */
	const char *file;	/* NULL: standard output; with several formats the prefix: FILE.openmpi, FILE.srun */
	const char *env;	/* a file for the launchers' environment, or NULL */
	const char *topology;	/* the nodes' XML for OS numbers: "HOSTS=FILE[;HOSTS=FILE]...", or NULL */
};

/* Check the outputs: 0, or -1 with an error (unknown format, no file name). */
int rankfile_output_check(const struct rankfile_output *o, struct err *e);

/* Write them, each whole or not at all. 0 or -1. */
int rankfile_output_write(const struct cmd *c, const struct rankfile_output *o, struct places *p,
			  const struct mapping *m, struct err *e);

/*
 * explain.c: print on out the cost of a mapping beside block, cyclic and Scotch alone, and whose costs these are, as a
 * table or one line of JSON. 0 or -1.
 */
int explain_mapping(const struct mapping *m, const struct places *p, const struct costs *c, bool json, FILE *out,
		    struct err *e);

#endif
