/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "launch.h"

#include <jansson.h>

#include "base/child.h"
#include "base/file.h"
#include "base/printable.h"
#include "options.h"
#include "step/step.h"
#include "task/map_places.h"

/*
 * --- the batch script's environment ---
 *
 * Later steps inherit these variables and need them, so task_env_set does not apply.
 */

enum { MAX_ENV = 1 << 20 };

/*
 * Open MPI 4 follows the map by its sequential mapper. It would apply a rank file to spawned ranks, too, which have no
 * line in it, and MPI_Comm_spawn would fail.
 */
#define OPENMPI_POLICY "OMPI_MCA_rmaps_base_mapping_policy"
#define OPENMPI_HOSTS "OMPI_MCA_orte_default_hostfile"
#define OUR_HOSTS "TOPIARY_OPENMPI_HOSTFILE"
#define PLACES "TOPIARY_PLACES"
#define BLOCKS "TOPIARY_BLOCK_PLACES"

/* The variables of `topiary map --env` that are exported, and under which name. */
static const struct exported {
	const char *name, *as;
	bool openmpi;		/* only where the user has not chosen a mapping of Open MPI's */
} exported[] = {
	{ PLACES, PLACES, false },
	{ OPENMPI_POLICY, OPENMPI_POLICY, true },
	{ OPENMPI_HOSTS, OPENMPI_HOSTS, true },
	{ OPENMPI_HOSTS, OUR_HOSTS, false },
	{ "TOPIARY_HOSTFILE", "TOPIARY_HOSTFILE", false },
	{ NULL },
}, *const exported_order = exported + 1, exported_blocks[] = {
	{ PLACES, BLOCKS, false },
	{ NULL },
};

/* With one of these the user chose a mapping of Open MPI's. */
static const char *const openmpi_users[] = {
	OPENMPI_POLICY, OPENMPI_HOSTS, "OMPI_MCA_rmaps_base_schedule_policy", "OMPI_MCA_rmaps_rank_file_path",
		"OMPI_MCA_orte_rankfile",
};

static const struct { const char *key, *name; } costs[] = {
	{ "cost", "TOPIARY_RANKFILE_COST" },
	{ "block", "TOPIARY_RANKFILE_COST_BLOCK" },
	{ "cyclic", "TOPIARY_RANKFILE_COST_CYCLIC" },
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/*
 * Those of the variables that `topiary map --env` wrote to a file which are in a list. map: the one with the ranks'
 * places, or NULL; without: what happens where these were too long for a variable.
 */
static void export_file(spank_t sp, const char *file, const struct exported *list, const char *map, const char *without)
{
	bool user_maps = false;
	struct buf text = {0};
	char *save = NULL, *value;
	struct err e;

	for (size_t i = 0; i < COUNT(openmpi_users); i++)
		user_maps |= task_env_has(sp, openmpi_users[i]);
	if (file_read(file, MAX_ENV, &text, &e)) {
		slurm_spank_log("topiary: job %u: %s", step.job, printable(e.text));
		return;
	}
	for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!(value = strchr(line, '=')))
			continue;
		*value++ = '\0';
		for (const struct exported *x = list; x->name; x++)
			if (!strcmp(x->name, line) && !(user_maps && x->openmpi))
				spank_setenv(sp, x->as, value, 1);
	}
	buf_free(&text);
	if (map && !task_env_has(sp, map))
		slurm_spank_log("topiary: job %u: the rank map does not fit into %s: %s", step.job, map, without);
}

int rank_file_unset_env(spank_t sp, int, char **)
{
	char now[PATH_MAX], ours[PATH_MAX];

	if (step.id != SLURM_BATCH_SCRIPT)
		return 0;
	if (!spank_getenv(sp, OPENMPI_HOSTS, now, sizeof(now)) && !spank_getenv(sp, OUR_HOSTS, ours, sizeof(ours)) &&
	    !strcmp(now, ours)) {
		spank_unsetenv(sp, OPENMPI_HOSTS);
		spank_unsetenv(sp, OPENMPI_POLICY);
	}
	spank_unsetenv(sp, OUR_HOSTS);
	spank_unsetenv(sp, "TOPIARY_LEARN");
	spank_unsetenv(sp, "TOPIARY_LEARN_TAG");
	spank_unsetenv(sp, "TOPIARY_RANKFILE");
	spank_unsetenv(sp, "TOPIARY_HOSTFILE");
	spank_unsetenv(sp, PLACES);
	spank_unsetenv(sp, "TOPIARY_BLOCK_RANKFILE");
	spank_unsetenv(sp, BLOCKS);
	for (size_t i = 0; i < COUNT(costs); i++)
		spank_unsetenv(sp, costs[i].name);
	return 0;
}

/* --- the maps --- */

enum { MAX_OUTPUT = 4096, MAX_EXTRA = 3 };

/*
 * The two maps by a matrix, and the one by --topo-order: the suffix of their files, and the arguments of `topiary map`.
 * Few jobs need the second, but all wait for it.
 */
static const struct map_kind {
	const char *suffix, *args[MAX_EXTRA];
} whole = { "", { "--explain=json" } }, blocks = { ".block", { "--block", "--effort=fast" } },
	order = { "", { "--costs=default" } };

struct map {
	const struct map_kind *kind;
	char job[16], tasks[4096], base[PATH_MAX + 24];	/* base: the common prefix of the files */
	char rankfile[PATH_MAX + 40], env[PATH_MAX + 40], explain[PATH_MAX + 40];
};

static void keep_env(const char *name, char *space, size_t size, const char **env, unsigned *n)
{
	const char *value = getenv(name);

	if (value && snprintf(space, size, "%s=%s", name, value) < (int) size)
		env[(*n)++] = space;
}

static int map_child(int fd, void *arg)
{
	const struct map *m = arg;
	struct err e;
	int in, out;

	if (user_confine(&step.user, &e)) {
		dprintf(fd, "%s\n", e.text);
		return 127;
	}
	in = open("/dev/null", O_RDONLY);
	out = open(m->explain, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	if (in < 0 || out < 0 || dup2(fd, STDERR_FILENO) < 0 || dup2(in, STDIN_FILENO) < 0 ||
	    dup2(out, STDOUT_FILENO) < 0) {
		dprintf(fd, "%s: %s\n", m->explain, strerror(errno));
		return 127;
	}
	close_range(STDERR_FILENO + 1, ~0U, 0);
	/* This process has slurmstepd's environment, not the job's; only these variables are passed on. */
	char slurm_conf[PATH_MAX + 16], topiary_conf[PATH_MAX + 16], job[32], tasks[sizeof(m->tasks) + 32];
	const char *env[8] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", job, tasks };
	const char *args[12 + MAX_EXTRA] = { step.settings.topiary_command, "map", "--job", m->job,
		m->kind == &order ? "--order" : "--matrix", m->kind == &order ? options.order : options.matrix,
		"--format", "openmpi,openmpi-seq,srun", "-o", m->base, "--env", m->env };
	unsigned n = 4;

	memcpy(args + 12, m->kind->args, sizeof(m->kind->args));
	snprintf(job, sizeof(job), "SLURM_JOB_ID=%s", m->job);
	snprintf(tasks, sizeof(tasks), "SLURM_TASKS_PER_NODE=%s", m->tasks);
	keep_env("SLURM_CONF", slurm_conf, sizeof(slurm_conf), env, &n);
	if (step.config)
		setenv("TOPIARY_CONF", step.config, 1);
	keep_env("TOPIARY_CONF", topiary_conf, sizeof(topiary_conf), env, &n);
	execve(step.settings.topiary_command, (char *const *) args, (char *const *) env);
	dprintf(STDERR_FILENO, "%s: %s\n", step.settings.topiary_command, strerror(errno));
	return 127;
}

static int run_map(struct map *m, struct err *e)
{
	struct buf output = {0};
	int rc;

	if (m->kind != &order && *options.matrix != '/')
		return err_set(e, "--topo-matrix=%.200s: not an absolute path", options.matrix);
	rc = child_run(map_child, m, step.settings.map_timeout, MAX_OUTPUT, &output, e);
	if (rc < 0)
		return err_within(e, "%s", step.settings.topiary_command);
	if (rc > 0)
		err_set(e, "%.*s", output.len ? (int) strcspn(output.data, "\n") : 0, output.len ? output.data : "");
	else if (output.len && m->kind != &blocks) {
		static const char name[] = "topiary: ";
		char *line = output.data + (strncmp(output.data, name, strlen(name)) ? 0 : strlen(name));

		line[strcspn(line, "\n")] = '\0';
		slurm_spank_log("topiary: job %u: %s", step.job, printable(line));
	}
	buf_free(&output);
	if (rc > 0)
		return *e->text ? -1 : err_set(e, "%s: exit status %d", step.settings.topiary_command, rc);
	return access(m->rankfile, R_OK) ? err_set(e, "%s: %s", m->rankfile, strerror(errno)) : 0;
}

static void name_files(struct map *m, const struct map_kind *kind)
{
	m->kind = kind;
	snprintf(m->job, sizeof(m->job), "%u", step.job);
	snprintf(m->base, sizeof(m->base), "%s/" STEP_USER_DIR "/rankfile%s", step.path, kind->suffix);
	snprintf(m->rankfile, sizeof(m->rankfile), "%s.openmpi", m->base);
	snprintf(m->env, sizeof(m->env), "%s.env", m->base);
	snprintf(m->explain, sizeof(m->explain), "%s.json", m->base);
}

int rank_file_make(spank_t sp, int, char **)
{
	char *places;
	bool one_host;
	struct map m;
	json_t *all;
	struct err e;

	const char *tag = options_learned_tag(options.matrix);

	if (step.id != SLURM_BATCH_SCRIPT || (!*options.matrix && !*options.order))
		return 0;
	/* The recorder, and each srun, which knows the program. */
	if (tag) {
		snprintf(m.base, sizeof(m.base), "%s/" STEP_USER_DIR, step.path);
		spank_setenv(sp, "TOPIARY_LEARN", step.dir < 0 ? "" : m.base, 1);
		spank_setenv(sp, "TOPIARY_LEARN_TAG", tag, 1);
		return 0;
	}
	if (step.dir < 0)
		return 0;
	/* mpirun starts this many ranks on each node; a rank file must not have more. */
	if (spank_getenv(sp, "SLURM_TASKS_PER_NODE", m.tasks, sizeof(m.tasks))) {
		slurm_spank_log("topiary: job %u has no rank file: SLURM_TASKS_PER_NODE is not set", step.job);
		return 0;
	}
	name_files(&m, *options.order ? &order : &whole);
	if (run_map(&m, &e)) {
		slurm_spank_log("topiary: job %u%s: %s", step.job, *options.order ? ": ranks stay in Slurm's order" :
				" has no rank file", printable(e.text));
		return 0;
	}
	if (*options.order) {
		export_file(sp, m.env, exported_order, NULL, NULL);
		spank_setenv(sp, "TOPIARY_RANKFILE", m.rankfile, 1);
		return 0;
	}
	export_file(sp, m.env, exported, PLACES, "srun follows it between nodes, Slurm binds tasks");
	spank_setenv(sp, "TOPIARY_RANKFILE", m.rankfile, 1);
	all = json_load_file(m.explain, 0, NULL);
	for (size_t i = 0; i < COUNT(costs); i++) {
		json_t *one = json_object_get(all, costs[i].key);
		char text[32];

		if (!json_is_number(one))
			continue;
		snprintf(text, sizeof(text), "%.15g", json_number_value(one));
		spank_setenv(sp, costs[i].name, text, 1);
	}
	json_decref(all);
	if (task_env_has(sp, "SLURM_HET_SIZE"))
		slurm_spank_log("topiary: job %u: the rank map has only the first component of this heterogeneous job",
				step.job);
	/* On a single node the map of the whole job serves mpiexec, too. */
	places = malloc(MAP_PLACES_MAX);
	one_host = places && !spank_getenv(sp, PLACES, places, MAP_PLACES_MAX) && !strchr(places, '/');
	free(places);
	if (!one_host) {
		name_files(&m, &blocks);
		if (run_map(&m, &e)) {
			slurm_spank_log("topiary: job %u has no rank file for mpiexec: %s", step.job,
				printable(e.text));
			return 0;
		}
	}
	export_file(sp, m.env, exported_blocks, BLOCKS, "mpiexec does not follow it");
	spank_setenv(sp, "TOPIARY_BLOCK_RANKFILE", m.rankfile, 1);
	return 0;
}
