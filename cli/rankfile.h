/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_RANKFILE_H
#define TOPIARY_CLI_RANKFILE_H

#include "cmd.h"
#include "map/places/places.h"
#include "map/engine/solve.h"

/* The outputs of a mapping. */
struct rankfile_output {
	const char *formats;	/* "plain", or several: "openmpi,srun" */
	const char *file;	/* NULL: standard output; with several formats the prefix: FILE.openmpi, FILE.srun */
	const char *env;	/* a file for the launchers' environment, or NULL */
	const char *topology;	/* as numbers_load has it, or NULL */
};

/* Check the outputs: 0, or -1 with an error (unknown format, no file name). */
int rankfile_output_check(const struct rankfile_output *o, struct err *e);

/* Write them, each whole or not at all. 0 or -1. */
int rankfile_output_write(const struct cmd *c, const struct rankfile_output *o, struct places *p,
			  const struct mapping *m, struct err *e);

#endif
