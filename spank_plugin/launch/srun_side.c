/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "launch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/printable.h"
#include "base/std.h"
#include "options.h"

enum { MAX_LINE = 4 << 20, MAX_HOSTS = 16 << 20 };

/* With one of these set, the step is not the whole job, or the user has placed its tasks. */
static const struct { const char *name, *why; } others[] = {
	{ "SLURM_HOSTFILE", "SLURM_HOSTFILE is set" },
	{ "SLURM_DISTRIBUTION", "SLURM_DISTRIBUTION is set, for example by --distribution of the job" },
	{ "SLURM_HET_SIZE", "the job is heterogeneous" },
};

/* srun reads the number of tasks from these. */
static const char *const counts[] = { "SLURM_NTASKS", "SLURM_NPROCS" };

/* Each of these has the effect of --export. */
static const char *const exports[] = { "SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV" };

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Of this job only: an salloc(1) in a batch script inherits the map of the surrounding job. */
static const char *map_of_job(void)
{
	const char *hosts = getenv("TOPIARY_HOSTFILE"), *job = getenv("SLURM_JOB_ID");
	char folder[64];

	if (!hosts || !job)
		return NULL;
	snprintf(folder, sizeof(folder), "/%s.batch/", job);
	return strstr(hosts, folder) ? hosts : NULL;
}

static int check_environment(const char *hosts, struct err *e)
{
	const char *id = getenv("SLURM_STEP_ID");

	/* Since 26.05 the batch script has a step id, too, of SLURM_BATCH_SCRIPT as a signed number. */
	if (id && (uint32_t) strtol(id, NULL, 10) != SLURM_BATCH_SCRIPT)
		return err_set(e, "it runs inside another step");
	for (size_t i = 0; i < COUNT(others); i++)
		if (getenv(others[i].name))
			return err_set(e, "%s", others[i].why);
	for (size_t i = 0; i < COUNT(exports); i++)
		if (getenv(exports[i]) && !srun_exports_all(getenv(exports[i])))
			return err_set(e, "%s=%.60s does not pass the rank map to the tasks", exports[i],
			       getenv(exports[i]));
	struct buf text = {0};
	unsigned long ranks = 0;
	bool counted = false;

	if (file_read(hosts, MAX_HOSTS, &text, e))
		return -1;
	for (size_t i = 0; i < text.len; i++)
		ranks += text.data[i] == '\n';
	buf_free(&text);
	if (!ranks)
		return err_set(e, "%s: no hosts", hosts);
	for (size_t i = 0; i < COUNT(counts); i++) {
		const char *value = getenv(counts[i]);

		if (value && strtoul(value, NULL, 10) != ranks)
			return err_set(e, "%s=%.20s, but the rank map has %lu rank%s", counts[i], value, ranks,
				       ranks == 1 ? "" : "s");
		counted |= value != NULL;
	}
	return counted ? 0 : err_set(e, "SLURM_NTASKS is not set");
}

/* This process's command line in one allocation, which the caller frees. NULL: it cannot be read. */
static char **read_command_line(int *argc)
{
	struct buf line = {0};
	char **argv = NULL;

	*argc = 0;
	if (!file_read("/proc/self/cmdline", MAX_LINE, &line, NULL) &&
	    (argv = malloc((line.len + 2) * sizeof(*argv) + line.len + 1))) {
		char *words = memcpy(argv + line.len + 2, line.data, line.len);

		words[line.len] = '\0';
		for (size_t at = 0; at < line.len; at += strlen(words + at) + 1)
			argv[(*argc)++] = words + at;
		argv[*argc] = NULL;
	}
	buf_free(&line);
	return argv;
}

int srun_follow_map(spank_t sp, int argc, char **argv)
{
	const char *hosts = map_of_job(), *given = getenv("SLURM_HOSTFILE");
	bool launches = false;
	char **line;
	struct err e;
	int n;

	(void) sp, (void) argc, (void) argv;
	if (!hosts || (given && !strcmp(given, hosts)))
		return 0;
	line = read_command_line(&n);
	if (!line || !n)
		err_set(&e, "/proc/self/cmdline cannot be read");
	for (int i = 1; line && i < n; i++)
		launches |= launchers_program(line[i]) != NULL;
	if (line && n && !check_environment(hosts, &e) && !srun_check_options(n, line, options_names(), &e))
		setenv("SLURM_HOSTFILE", hosts, 1);
	else if (!launches)
		slurm_spank_log("topiary: srun does not follow the job's rank map: %s", printable(e.text));
	free(line);
	return 0;
}

/* Open MPI's mpirun starts srun with stderr on /dev/null: open the parent's instead. -1: use this process's. */
static int open_parent_stderr(void)
{
	char path[64];
	struct stat st;

	if (fstat(STDERR_FILENO, &st) || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) getppid(), STDERR_FILENO);
	return open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

int srun_warn_launcher(spank_t sp, int argc, char **argv)
{
	struct buf list = {0}, line = {0};
	char **words = NULL;
	const char *program;
	int n = 0, fd;

	(void) argc, (void) argv;
	if (spank_get_item(sp, S_JOB_ARGV, &n, &words) || n < 1 || !(program = launchers_program(words[0])))
		return 0;
	options_list_per_task(&list);
	if (list.len)
		buf_printf(&line,
			"topiary: not applied to the ranks that %s starts: %s; to apply them use srun\n",
			   program, list.data);
	if (line.len && !line.failed) {
		fd = open_parent_stderr();
		file_write(fd < 0 ? STDERR_FILENO : fd, line.data, line.len);
		if (fd >= 0)
			close(fd);
	}
	buf_free(&list);
	buf_free(&line);
	return 0;
}
