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

static int check_target(const char *path, const char *folder)
{
	struct stat st;

	if (access(folder, W_OK | X_OK))
		return -1;
	if (stat(path, &st))
		return errno == ENOENT ? 0 : -1;
	errno = EISDIR;
	return S_ISREG(st.st_mode) ? 0 : -1;
}

int submit_capture(const char *value, char *out, size_t size, struct err *e)
{
	char given[PATH_MAX], folder[PATH_MAX], path[2 * PATH_MAX];
	const char *last = strrchr(value, '/');

	last = last ? last + 1 : value;
	if (!*last || !strcmp(last, ".") || !strcmp(last, ".."))
		return err_set(e, "--topo-capture=%.200s: not a file's name", value);
	if (snprintf(given, sizeof(given), "%.*s.", (int) (last - value), value) >= (int) sizeof(given))
		return err_set(e, "--topo-capture=%.200s: %s", value, strerror(ENAMETOOLONG));
	if (!realpath(given, folder))
		return err_set(e, "--topo-capture=%.200s: %s", value, strerror(errno));
	snprintf(path, sizeof(path), "%s/%s", strcmp(folder, "/") ? folder : "", last);
	if (check_target(path, folder))
		return err_set(e, "--topo-capture=%.200s: %s", value, strerror(errno));
	if (strlen(path) >= size)
		return err_set(e, "--topo-capture=%.200s: %s", value, strerror(ENAMETOOLONG));
	memcpy(out, path, strlen(path) + 1);
	return 0;
}

/*
 * A batch job carries its options as environment variables of these names (Slurm, src/common/plugstack.c, _opt_env_name), with the
 * words that the user typed; a relative path would mean another file where the job runs.
 */
static const struct { const char *env, *option, *value; } carried[] = {
	{ "_SLURM_SPANK_OPTION_topiary_topo_matrix", "topo-matrix", options.matrix },
	{ "_SLURM_SPANK_OPTION_topiary_topo_capture", "topo-capture", options.capture },
};

bool submit_handed_on(const char *option, const char *value)
{
	char name[sizeof("SLURM_SPANK_") + 64];
	const char *handed;

	if (spank_context() != S_CTX_LOCAL || !getenv("SLURM_JOB_ID"))
		return false;
	for (size_t i = 0; i < sizeof(carried) / sizeof(*carried); i++) {
		snprintf(name, sizeof(name), "SLURM_SPANK_%s", carried[i].env);
		handed = getenv(name);
		if (!strcmp(option, carried[i].option) && handed && !strcmp(handed, value))
			return true;
	}
	return false;
}

int submit_options(spank_t sp, int argc, char **argv)
{
	(void) argc, (void) argv;
	for (size_t i = 0; i < sizeof(carried) / sizeof(*carried); i++)
		if (*carried[i].value && (setenv(carried[i].env, carried[i].value, 1) ||
					  spank_job_control_setenv(sp, carried[i].env, carried[i].value, 1) != ESPANK_SUCCESS))
			slurm_error("topiary: --%s=%s cannot be passed on with the job", carried[i].option, carried[i].value);
	return 0;
}
