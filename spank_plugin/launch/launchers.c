/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "launch.h"

#include "base/buf.h"
#include "base/number.h"
#include "base/printable.h"
#include "bind/vars.h"
#include "hwview/image.h"
#include "options.h"
#include "step/step.h"
#include "task/map_places.h"
#include "task/task.h"

enum { MAX_RANKS = 65536, MAX_CPUS = 65536 /* of topiary bind -c */ };

#define BLOCKS "TOPIARY_BLOCK_PLACES"

typedef void format_fn(const struct task *ranks, struct buf *out);
static format_fn format_hydra, format_intel;

static const char *const hydra_binding[] = { "HYDRA_BINDING", NULL };

static const struct launcher {
	const char *program;
	const char *prefix, *after;	/* the variable of a command before each rank, and what follows that in it */
	const char *policy;		/* with "none" in this it binds only what its user asks for; or NULL */
	format_fn *format;		/* NAME=value of the binding; NULL: the launcher reads a rank file */
	const char *option, *value;	/* its arguments where only Slurm sets the ranks per node; or NULL */
	const char *const *user;	/* with format: variables by which the user chooses a binding */
	bool front;			/* what the user starts: no daemon */
} launchers[] = {
	{ "hydra_pmi_proxy", .format = format_hydra, .option = "--rmk", .value = "slurm", .user = hydra_binding },
	/* Where a node has another number of ranks than in our list, it applies its own rules. */
	{ "hydra_bstrap_proxy", "I_MPI_GTOOL", ":all", .format = format_intel, .user = vars_intel_pin },
	/* Of Intel MPI up to 2018. */
	{ .program = "pmi_proxy" },
	{ .program = "orted", .prefix = "OMPI_MCA_orte_fork_agent", .after = "",
	  .policy = "OMPI_MCA_hwloc_base_binding_policy" },
	{ .program = "prted", .prefix = "PRTE_MCA_odls_base_exec_agent", .after = "",
	  .policy = "PRTE_MCA_hwloc_default_binding_policy" },
	{ .program = "mpirun", .front = true }, { .program = "mpiexec", .front = true },
	{ .program = "mpiexec.hydra", .front = true }, { .program = "orterun", .front = true },
	{ .program = "prterun", .front = true },
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct launcher *current;
static bool proxy_follows_map;

static const struct launcher *find_launcher(const char *path)
{
	const char *program = strrchr(path, '/');

	program = program ? program + 1 : path;
	for (size_t i = 0; i < COUNT(launchers); i++)
		if (!strcmp(program, launchers[i].program))
			return &launchers[i];
	return NULL;
}

static bool user_binds(spank_t sp, int argc, char **argv)
{
	bool binds = current->option;

	for (int i = 1; i + 1 < argc && binds; i++)
		binds = strcmp(argv[i], current->option) || strcmp(argv[i + 1], current->value);
	for (const char *const *name = current->user; *name; name++)
		binds |= task_env_has(sp, *name);
	return binds;
}

/* An salloc(1) in a batch script inherits the map of the surrounding job. */
static bool map_is_of_this_job(spank_t sp)
{
	char file[PATH_MAX], folder[64];

	snprintf(folder, sizeof(folder), "/%u.batch/", step.job);
	return task_env_has(sp, BLOCKS) && !spank_getenv(sp, "TOPIARY_BLOCK_RANKFILE", file, sizeof(file)) &&
	       strstr(file, folder);
}

/* Did srun get the map's hosts (srun_follow_map)? */
static bool srun_follows_map(spank_t sp)
{
	char given[PATH_MAX], map[PATH_MAX];

	if (spank_getenv(sp, "SLURM_HOSTFILE", given, sizeof(given)) ||
	    spank_getenv(sp, "TOPIARY_HOSTFILE", map, sizeof(map)) ||
	    strcmp(given, map))
		return false;
	spank_unsetenv(sp, "SLURM_HOSTFILE");
	spank_unsetenv(sp, "SLURM_DISTRIBUTION");
	return true;
}

int launchers_detect(spank_t sp, int argc, char **argv)
{
	if (step.id >= SLURM_MAX_NORMAL_STEP_ID)
		return 0;
	if (!spank_get_item(sp, S_JOB_ARGV, &argc, &argv) && argc > 0)
		current = find_launcher(argv[0]);
	step.launcher = current;
	step.daemons = current && !current->front;
	proxy_follows_map = current && current->format && map_is_of_this_job(sp) && !user_binds(sp, argc, argv);
	/* An order has no binding. */
	step.follows_map = proxy_follows_map || (srun_follows_map(sp) && !*options.order);
	return 0;
}

bool launchers_known(const char *path)
{
	return find_launcher(path);
}

const char *launchers_daemon(const char *path)
{
	const struct launcher *l = find_launcher(path);

	return l && !l->front ? l->program : NULL;
}

/* --- topiary bind before each rank --- */

/*
 * Launchers split a command at blanks, and a job must run where it does not exist, as in a container: a shell looks for
 * it. Neither may it have what is special in one of the variables.
 */
#define BIND_JOB "${IFS}bind${IFS}--job"
#define PROGRAM "${IFS}\"$0\"${IFS}\"$@\""
#define SPECIAL " \t\"'`$\\:;,&|<>()*?[#~"

bool launchers_place(const char *daemon)
{
	const char *name = find_launcher(daemon)->prefix, *prefix = name ? getenv(name) : NULL;

	/* Open MPI 5 passes the prefix on in an argument. */
	return name && getenv(BIND_JOB_OPTIONS) && (!prefix || strstr(prefix, BIND_JOB));
}

int launchers_prefix_ranks(spank_t sp, int, char **)
{
	struct bind_request r = options.bind;
	struct buf words = {0};
	char command[2 * PATH_MAX + 160], given[16], cpus[32] = "";
	const char *topiary = step.settings.topiary_command, *at = given;
	unsigned n;

	if (step.id < SLURM_MAX_NORMAL_STEP_ID ? !step.launcher : step.id == SLURM_EXTERN_CONT)
		return 0;
	/* Ranks that follow a map are bound by it. */
	if (!options_place_ranks() || step.dir < 0 || !topiary || strpbrk(topiary, SPECIAL) || access(topiary, X_OK) ||
	    task_env_has(sp, "TOPIARY_PLACES"))
		return 0;
	if (step.settings.nic_planes > 1)
		r.nic = NIC_OFF;
	/* Users of Open MPI 5 unset it for mpirun. */
	if (!spank_getenv(sp, "SLURM_CPUS_PER_TASK", given, sizeof(given)) && !number_read(&at, MAX_CPUS, &n) &&
	    !*at && n)
		snprintf(cpus, sizeof(cpus), "${IFS}-c%u", n);
	bind_request_print(&r, &words);
	if (!words.failed)
		task_env_set(sp, BIND_JOB_OPTIONS, words.data);
	buf_free(&words);
	for (const struct launcher *l = launchers; l < launchers + COUNT(launchers); l++) {
		/* Ranks behind a command of the user's are bound as ever. */
		if (!l->prefix || task_env_has(sp, l->prefix))
			continue;
		snprintf(command, sizeof(command), "/bin/sh -c test${IFS}-x${IFS}%s||exec" PROGRAM "&&exec${IFS}%s"
			 BIND_JOB "%s" PROGRAM "%s", topiary, topiary, cpus, l->after);
		task_env_set(sp, l->prefix, command);
		if (l->policy)
			task_env_set(sp, l->policy, "none");
	}
	return 0;
}

/* --- the map of mpiexec --- */

/* "user:0+16,1+17": the CPUs of each rank in turn, by OS index. */
static void format_hydra(const struct task *ranks, struct buf *out)
{
	for (unsigned i = 0; i < ranks->nlocal; i++) {
		const char *mark = i ? "," : "HYDRA_BINDING=user:";
		unsigned cpu;

		hwloc_bitmap_foreach_begin(cpu, ranks->masks[i])
			buf_printf(out, "%s%u", mark, cpu);
			mark = "+";
		hwloc_bitmap_foreach_end();
	}
}

static void format_domains(const struct task *ranks, struct buf *out)
{
	char *mask;

	for (unsigned i = 0; i < ranks->nlocal; i++) {
		if (hwloc_bitmap_taskset_asprintf(&mask, ranks->masks[i]) < 0) {
			out->failed = true;
			return;
		}
		buf_printf(out, "%s%s", i ? "," : "I_MPI_PIN_DOMAIN=[", mask);
		free(mask);
	}
	buf_puts(out, "]");
}

/*
 * A processor list has one CPU a rank. Where it does not fit the ranks, Intel MPI ignores it silently, unlike a list
 * of domains.
 */
static void format_intel(const struct task *ranks, struct buf *out)
{
	for (unsigned i = 0; i < ranks->nlocal; i++)
		if (hwloc_bitmap_weight(ranks->masks[i]) != 1) {
			format_domains(ranks, out);
			return;
		}
	for (unsigned i = 0; i < ranks->nlocal; i++)
		buf_printf(out, "%s%d", i ? "," : "I_MPI_PIN_PROCESSOR_LIST=", hwloc_bitmap_first(ranks->masks[i]));
}

static int check_rank(void *, unsigned rank, unsigned, unsigned, struct err *e)
{
	return rank < MAX_RANKS ? 0 : err_set(e, BLOCKS " has more than %u ranks on this node", MAX_RANKS);
}

/* This node's ranks are placed as if they were the step's tasks. */
static int export_map(struct task *ranks, struct err *e)
{
	char *places = malloc(MAP_PLACES_MAX), *value;
	struct buf variable = {0};
	int rc = -1, n;

	if (!places)
		err_set(e, "out of memory");
	else if (!step.is_local)
		err_set(e, "TopologyFile describes another machine");
	else if (!image_adopt_alone(step.path, &ranks->topology, e))
		rc = spank_getenv(ranks->sp, BLOCKS, places, MAP_PLACES_MAX) ? 0 : 1;
	if (rc > 0 && (rc = n = map_places_parse(places, step.node, check_rank, NULL, e)) > 0) {
		ranks->nlocal = n;
		rc = task_alloc_masks(ranks, e) ? -1 : task_masks_from_places(ranks, places, e);
	}
	if (rc > 0) {
		current->format(ranks, &variable);
		if (variable.failed || !variable.len) {
			rc = err_set(e, "out of memory");
		} else {
			value = strchr(variable.data, '=');
			*value++ = '\0';
			task_env_set(ranks->sp, variable.data, value);
		}
	}
	buf_free(&variable);
	free(places);
	return rc < 0 ? -1 : 0;
}

int launchers_prepare(spank_t sp, int, char **)
{
	struct task ranks = { .sp = sp };
	struct err e;

	if (!proxy_follows_map || step.user_binds || step.dir < 0)
		return 0;
	if (export_map(&ranks, &e))
		slurm_spank_log("topiary: step %s: mpiexec does not follow the job's rank map: %s", step.name,
			printable(e.text));
	task_free(&ranks);
	return 0;
}
