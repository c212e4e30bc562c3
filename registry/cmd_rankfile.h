/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_RANKFILE_H
#define TOPIARY_REGISTRY_CMD_RANKFILE_H

#include "cmd.h"
#include "map/places.h"
#include "map/solve.h"

/* Where a mapping goes. */
struct rankfile_output {
	const char *formats;	/* "plain", or several: "openmpi,srun" */
	const char *file;	/* NULL: standard output; of several formats the names begin with it: FILE.openmpi, FILE.srun */
	const char *env;	/* a file for what the launchers want in their environment, or NULL */
	const char *topology;	/* as numbers_load has it, or NULL */
};

/* Can this be done at all? 0, or -1 with an error: an unknown format, no name for files. */
int rankfile_output_check(const struct rankfile_output *o, struct err *e);

/* Write them, each whole or not at all. 0 or -1. */
int rankfile_output_write(const struct cmd *c, const struct rankfile_output *o, struct places *p, const struct mapping *m,
			  struct err *e);

#endif
