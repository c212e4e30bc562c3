/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "submit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options.h"

int submit_matrix(const char *value, char *out, size_t size, struct err *e)
{
	char path[PATH_MAX];
	struct stat st;

	if (!realpath(value, path) || stat(path, &st))
		return err_set(e, "--topo-matrix=%s: %s", value, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, "--topo-matrix=%s: not a regular file", value);
	if (access(path, R_OK))
		return err_set(e, "--topo-matrix=%s: %s", value, strerror(errno));
	if (strlen(path) >= size)
		return err_set(e, "--topo-matrix=%s: %s", value, strerror(ENAMETOOLONG));
	memcpy(out, path, strlen(path) + 1);
	return 0;
}

/*
 * A batch job carries its options as environment variables of this name (Slurm, src/common/plugstack.c, _opt_env_name), with the
 * words that the user typed; a relative path would mean another file where the job runs.
 */
#define MATRIX_ENV "_SLURM_SPANK_OPTION_topiary_topo_matrix"

int submit_options(spank_t sp, int argc, char **argv)
{
	(void) argc, (void) argv;
	if (*options.matrix && (setenv(MATRIX_ENV, options.matrix, 1) ||
				spank_job_control_setenv(sp, MATRIX_ENV, options.matrix, 1) != ESPANK_SUCCESS))
		slurm_error("topiary: --topo-matrix=%s cannot be passed on with the job", options.matrix);
	return 0;
}
