/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "rank_file.h"

#include <errno.h>
#include <fcntl.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "options.h"
#include "plain.h"
#include "step.h"
#include "user.h"

enum { MAX_WORDS = 4096, MAX_HOW = 3 };

/* What is asked of `topiary map`, and what is added to the names of the files. Few jobs need the second, but all wait for it. */
static const struct way {
	const char *suffix, *how[MAX_HOW];
} whole = { "", { "--explain=json" } }, blocks = { ".block", { "--block", "--effort=fast" } };

struct map {
	const struct way *way;
	char job[16], tasks[4096], base[PATH_MAX + 24];	/* base: what the names of the files begin with */
	char rankfile[PATH_MAX + 40], env[PATH_MAX + 40], explain[PATH_MAX + 40];
};

static void keep_env(const char *name, char *space, size_t size, const char **env, unsigned *n)
{
	const char *value = getenv(name);

	if (value && snprintf(space, size, "%s=%s", name, value) < (int) size)
		env[(*n)++] = space;
}

/* The environment is slurmstepd's own, not the job's; what is in it is still only handed on by name. */
static void exec_map(const struct map *m)
{
	char slurm_conf[PATH_MAX + 16], topiary_conf[PATH_MAX + 16], job[32], tasks[sizeof(m->tasks) + 32];
	const char *env[8] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", job, tasks };
	const char *args[12 + MAX_HOW] = { step.settings.topiary_command, "map", "--job", m->job, "--matrix", options.matrix,
					   "--format", "openmpi,srun", "-o", m->base, "--env", m->env };
	unsigned n = 4;

	memcpy(args + 12, m->way->how, sizeof(m->way->how));
	snprintf(job, sizeof(job), "SLURM_JOB_ID=%s", m->job);
	snprintf(tasks, sizeof(tasks), "SLURM_TASKS_PER_NODE=%s", m->tasks);
	keep_env("SLURM_CONF", slurm_conf, sizeof(slurm_conf), env, &n);
	if (step.config)
		setenv("TOPIARY_CONF", step.config, 1);
	keep_env("TOPIARY_CONF", topiary_conf, sizeof(topiary_conf), env, &n);
	execve(step.settings.topiary_command, (char *const *) args, (char *const *) env);
	dprintf(STDERR_FILENO, "%s: %s\n", step.settings.topiary_command, strerror(errno));
}

static int map_child(int fd, void *arg)
{
	const struct map *m = arg;
	struct err e;
	int in, out;

	/* Slurm has made this process the user's by now; if it has not, this does. */
	if (user_become(&step.user, &e)) {
		dprintf(fd, "%s\n", e.text);
		return 127;
	}
	in = open("/dev/null", O_RDONLY);
	out = open(m->explain, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	if (in < 0 || out < 0 || dup2(fd, STDERR_FILENO) < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0) {
		dprintf(fd, "%s: %s\n", m->explain, strerror(errno));
		return 127;
	}
	close_range(STDERR_FILENO + 1, ~0U, 0);
	exec_map(m);
	return 127;
}

static int run_map(struct map *m, struct err *e)
{
	struct buf words = {0};
	int rc;

	if (*options.matrix != '/')
		return err_set(e, "--topo-matrix=%.200s: not an absolute path", options.matrix);
	rc = child_run(map_child, m, step.settings.map_timeout, MAX_WORDS, &words, e);
	if (rc < 0)
		return err_within(e, "%s", step.settings.topiary_command);
	if (rc > 0)
		err_set(e, "%.*s", words.len ? (int) strcspn(words.data, "\n") : 0, words.len ? words.data : "");
	buf_free(&words);
	if (rc > 0)
		return *e->text ? -1 : err_set(e, "%s: exit status %d", step.settings.topiary_command, rc);
	return access(m->rankfile, R_OK) ? err_set(e, "%s: %s", m->rankfile, strerror(errno)) : 0;
}

static void name_files(struct map *m, const struct way *way)
{
	m->way = way;
	snprintf(m->job, sizeof(m->job), "%u", step.job);
	snprintf(m->base, sizeof(m->base), "%s/" STEP_USER_DIR "/rankfile%s", step.path, way->suffix);
	snprintf(m->rankfile, sizeof(m->rankfile), "%s.openmpi", m->base);
	snprintf(m->env, sizeof(m->env), "%s.env", m->base);
	snprintf(m->explain, sizeof(m->explain), "%s.json", m->base);
}

/* Of one node the map of the whole job is that, too. */
static void make_blocks(spank_t sp, struct map *m)
{
	struct err e;

	if (!rank_file_is_of_one(sp)) {
		name_files(m, &blocks);
		if (run_map(m, &e)) {
			slurm_spank_log("topiary: job %u has no rank file for mpiexec: %s", step.job, plain(e.text));
			return;
		}
	}
	if (rank_file_tell_blocks(sp, m->env, &e))
		slurm_spank_log("topiary: job %u: %s", step.job, plain(e.text));
	spank_setenv(sp, "TOPIARY_BLOCK_RANKFILE", m->rankfile, 1);
}

int rank_file_make(spank_t sp, int argc, char **argv)
{
	struct map m;
	struct err e;

	(void) argc, (void) argv;
	if (step.id != SLURM_BATCH_SCRIPT || !*options.matrix || step.dir < 0)
		return 0;
	/* mpirun will start so many on each node, and no rank file may ask for more. */
	if (spank_getenv(sp, "SLURM_TASKS_PER_NODE", m.tasks, sizeof(m.tasks))) {
		slurm_spank_log("topiary: job %u has no rank file: Slurm does not say how many tasks a node has", step.job);
		return 0;
	}
	name_files(&m, &whole);
	if (run_map(&m, &e)) {
		slurm_spank_log("topiary: job %u has no rank file: %s", step.job, plain(e.text));
		return 0;
	}
	if (rank_file_tell_env(sp, m.env, &e))
		slurm_spank_log("topiary: job %u: %s", step.job, plain(e.text));
	spank_setenv(sp, "TOPIARY_RANKFILE", m.rankfile, 1);
	rank_file_tell_cost(sp, m.explain);
	make_blocks(sp, &m);
	return 0;
}
