/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "srun_side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { MAX_LINE = 4 << 20, MAX_HOSTS = 16 << 20 };

/* Where one of these is set, the step is not the job's own whole, or the user has said where its tasks go. */
static const char *const others[] = { "SLURM_HOSTFILE", "SLURM_DISTRIBUTION", "SLURM_STEP_ID", "SLURM_HET_SIZE" };

/* Where these are set, srun takes the number of tasks from them. */
static const char *const counts[] = { "SLURM_NTASKS", "SLURM_NPROCS" };

/* Where these are set, they are --export. */
static const char *const exports[] = { "SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV" };

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* The map is of this very job: salloc(1) in a batch script hands on what it finds. */
static const char *map_of_job(void)
{
	const char *hosts = getenv("TOPIARY_HOSTFILE"), *job = getenv("SLURM_JOB_ID");
	char folder[64];

	if (!hosts || !job)
		return NULL;
	snprintf(folder, sizeof(folder), "/%s.batch/", job);
	return strstr(hosts, folder) ? hosts : NULL;
}

static unsigned long lines_of(const char *file)
{
	struct buf text = {0};
	unsigned long n = 0;

	if (!file_read(file, MAX_HOSTS, &text, NULL))
		for (size_t i = 0; i < text.len; i++)
			n += text.data[i] == '\n';
	buf_free(&text);
	return n;
}

static bool environment_is_plain(const char *hosts)
{
	unsigned long ranks = lines_of(hosts);
	bool counted = false;

	for (size_t i = 0; i < COUNT(others); i++)
		if (getenv(others[i]))
			return false;
	for (size_t i = 0; i < COUNT(exports); i++)
		if (getenv(exports[i]) && !srun_exports_all(getenv(exports[i])))
			return false;
	for (size_t i = 0; i < COUNT(counts); i++) {
		const char *value = getenv(counts[i]);

		if (value && strtoul(value, NULL, 10) != ranks)
			return false;
		counted |= value != NULL;
	}
	return counted && ranks;
}

static bool line_is_plain(void)
{
	struct buf line = {0};
	char **argv = NULL;
	bool plain = false;
	int argc = 0;

	if (!file_read("/proc/self/cmdline", MAX_LINE, &line, NULL) && (argv = calloc(line.len + 2, sizeof(*argv)))) {
		for (size_t at = 0; at < line.len; at += strlen(line.data + at) + 1)
			argv[argc++] = line.data + at;
		plain = argc && srun_is_plain(argc, argv);
	}
	free(argv);
	buf_free(&line);
	return plain;
}

int srun_follow_map(spank_t sp, int argc, char **argv)
{
	const char *hosts = map_of_job();

	(void) sp, (void) argc, (void) argv;
	if (hosts && environment_is_plain(hosts) && line_is_plain())
		setenv("SLURM_HOSTFILE", hosts, 1);
	return 0;
}
