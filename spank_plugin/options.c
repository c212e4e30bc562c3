/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "options.h"

#include "base/printable.h"
#include "score/request.h"

struct options options;

typedef int value_fn(const char *name, const char *value, struct err *e);

static int check_request(const char *name, const char *value, struct err *e)
{
	struct request r = {0};

	return request_set(&r, name, value, e);
}

static int set_bind(const char *name, const char *value, struct err *e)
{
	return bind_request_set(&options.bind, name, value, e);
}

/* Said once, by what the user started. */
static int set_mems(const char *name, const char *value, struct err *e)
{
	static const char *const now[] = {
		[MEMS_OFF] = "off", [MEMS_PREFER] = "prefer,job", [MEMS_STRICT] = "bind,job",
	};

	if (set_bind(name, value, e))
		return -1;
	if (!getenv("SLURM_JOB_ID"))
		slurm_error("topiary: --topo-mems=%s is now --topo-membind=%s; the former name ends with the next "
			    "release", value, now[options.bind.mems]);
	return 0;
}

static int set_monitor(const char *name, const char *value, struct err *e)
{
	char option[32];

	snprintf(option, sizeof(option), "--%s", name);
	return monitor_request_parse(option, value, &options.monitor, e);
}

/* slurmctld has acted on it by then. */
static int ignore(const char *, const char *, struct err *)
{
	return 0;
}

int options_copy_path(const char *name, const char *value, char *out, size_t size, struct err *e)
{
	if (strlen(value) >= size)
		return err_set(e, "--%s: longer than %zu bytes", name, size - 1);
	snprintf(out, size, "%s", value);
	return 0;
}

#define BIND set_bind, set_bind, NULL, 0
#define REQUEST check_request, ignore, NULL, 0
#define PATH_OF(field) NULL, NULL, options.field, sizeof(options.field)

static const struct {
	const char *name, *argument, *help;
	int has_argument;	/* as for getopt_long(3) */
	value_fn *submit, *remote;
	char *path;		/* where the text of an option of batch jobs is stored, its path resolved; else NULL */
	size_t size;
} rows[] = {
	{ "topo-fit", "FIT", "placement of the job's cores: off, prefer, require or spread", 1, REQUEST },
	{ "topo-level", "LEVEL", "domain of the job's cores: package, die, numa, l3, l2 or node", 1, REQUEST },
	{ "topo-request", "PATH", "shape required on each node, for example /package=1/l3=2/core=4", 1, REQUEST },
	{ "topo-mem", "FIT", "memory in the NUMA nodes of the job's cores: off, prefer or require", 1, REQUEST },
	{ "topo-matrix", "FILE", "communication matrix, by which srun and mpirun map the job's ranks; auto[:TAG]: "
		"that of the program's former runs", 1,
		PATH_OF(matrix) },
	{ "topo-order", "ORDER", "without a matrix: order of the ranks' nodes for rings and trees: off or fabric", 1,
		PATH_OF(order) },
	{ "topo-capture", "FILE", "record the job's communication matrix, for --topo-matrix", 1, PATH_OF(capture) },
	{ "topo-tasks", "SWITCH", "each task's cores, GPUs, memory and NIC near each other: off or auto", 1, BIND },
	{ "topo-place", "PLACE", "CPU binding of tasks: off, compact[:LEVEL], scatter[:LEVEL], mem or gpu", 1, BIND },
	{ "topo-membind", "POLICY", "memory of tasks: off, local, bind, interleave, hbm, dram, capacity, bandwidth, "
		"latency; of all that the job runs: prefer,job or bind,job", 1, BIND },
	{ "topo-mems", "FIT", "former name of --topo-membind=prefer,job and bind,job", 1, set_mems, set_bind, NULL, 0 },
	{ "topo-omp", "FORM", "OpenMP thread count and places of each task: off, auto, gomp or kmp", 1, BIND },
	{ "topo-hugepages", "KIND", "huge pages for malloc(3): off, thp, hugetlb or 1G", 1, BIND },
	{ "topo-nic", "RAILS", "network devices near each task: off, auto, one, local or all[,strict]", 1, BIND },
	{ "topo-reorder", "[=report]", "ranks of MPI's grids and graphs that may be reordered, near their neighbours: "
		"on, report or off", 2, BIND },
	{ "topo-hwloc", "SWITCH", "let hwloc in the job's programs load the step's topology: on or off", 1, BIND },
	{ "topo-monitor", "WHAT", "record what the job does: off, sw or on[,hz=N][,set=NAME][,advise]", 1,
		set_monitor, set_monitor, NULL, 0 },
	{ "topo-report", "[=json]", "print each task's CPUs, memory policy, NIC, GPU and threads", 2, BIND },
};

#define OPTIONS (sizeof(rows) / sizeof(*rows))

const struct option *options_names(void)
{
	static struct option names[OPTIONS + 1];

	for (size_t i = 0; i < OPTIONS; i++)
		names[i] = (struct option){ .name = rows[i].name, .has_arg = rows[i].has_argument };
	return names;
}

static bool set_by_user[OPTIONS];
static options_path_fn *resolve_path = options_copy_path;

static size_t option_find(const char *name)
{
	size_t i = 0;

	while (i < OPTIONS && strcmp(rows[i].name, name))
		i++;
	return i;
}

bool options_set_by_user(const char *name)
{
	size_t i = option_find(name);

	return i < OPTIONS && set_by_user[i];
}

void options_list_given(struct buf *out)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (set_by_user[i] && rows[i].remote != ignore)
			buf_printf(out, "%s--%s", out->len ? ", " : "", rows[i].name);
}

/* The fields are enums whose 0 is off. */
static const struct {
	const char *option;
	size_t field;
} per_task[] = {
	{ "topo-tasks", offsetof(struct bind_request, tasks) },
	{ "topo-place", offsetof(struct bind_request, place) },
	{ "topo-membind", offsetof(struct bind_request, memory) },
	{ "topo-omp", offsetof(struct bind_request, omp) },
	{ "topo-hugepages", offsetof(struct bind_request, huge) },
	{ "topo-nic", offsetof(struct bind_request, nic) },
	{ "topo-report", offsetof(struct bind_request, report) },
};

void options_list_per_task(struct buf *out)
{
	int value;

	for (size_t i = 0; i < sizeof(per_task) / sizeof(*per_task); i++) {
		memcpy(&value, (const char *) &options.bind + per_task[i].field, sizeof(value));
		if (value && options_set_by_user(per_task[i].option))
			buf_printf(out, "%s--%s", out->len ? ", " : "", per_task[i].option);
	}
}

bool options_place_ranks(void)
{
	return options.bind.place && (options_set_by_user("topo-place") || options_set_by_user("topo-tasks"));
}

/* Slurm passes an option without a value from sbatch to the srun in its script as "(null)". */
static const char *value_of(const char *value)
{
	return value && strcmp(value, "(null)") ? value : "";
}

/* --- components of a heterogeneous job, on the submit side --- */

/*
 * sbatch, salloc and srun read the options of one component after another. Slurm keeps a plugin's options from one to
 * the next; sbatch and salloc even set them again from the environment, after those in the script.
 */
static struct {
	char *of_user;		/* what the environment had from the beginning, for all components; or NULL */
	bool repeated;		/* that of the component before has been set again */
	char *value, *before;	/* of this component, or NULL; the last one of those before, or NULL */
	char source[32];	/* "SBATCH_TOPO_FIT: ", or "" */
} given[OPTIONS];
static unsigned component;

#define ENVIRONMENT "SLURM_SPANK_"
#define VARIABLE_SIZE 96

/* As Slurm names it (src/common/plugstack.c, _opt_env_name); in the job's control environment without ENVIRONMENT. */
static const char *variable_of(size_t which, char name[static VARIABLE_SIZE])
{
	int at = snprintf(name, VARIABLE_SIZE, ENVIRONMENT "_SLURM_SPANK_OPTION_topiary_%s", rows[which].name);

	while (at--)
		name[at] = name[at] == '-' ? '_' : name[at];
	return name;
}

static const char *default_prefix(void)
{
	return spank_context() == S_CTX_LOCAL ? "SLURM" :
	       strcmp(program_invocation_short_name, "salloc") ? "SBATCH" : "SALLOC";
}

static void default_name(size_t which, char name[static VARIABLE_SIZE])
{
	snprintf(name, VARIABLE_SIZE, "%s_%s", default_prefix(), rows[which].name);
	for (char *c = name; *c; c++)
		*c = *c == '-' ? '_' : toupper(*c);
}

/*
 * A user's default in the environment, as Slurm's own options have: SBATCH_TOPO_FIT, SALLOC_TOPO_FIT, SLURM_TOPO_FIT
 * for srun. Slurm reads it as one of the job around, which comes first.
 */
static void take_default(size_t which)
{
	char name[VARIABLE_SIZE], variable[VARIABLE_SIZE];
	const char *value;

	default_name(which, name);
	if (spank_context() == S_CTX_REMOTE || !(value = getenv(name)) || !*value ||
	    setenv(variable_of(which, variable), value, 0))
		return;
	snprintf(given[which].source, sizeof(given[which].source), "%.28s: ", name);
}

/* Variables of that form that are no option's. SLURM_TOPO_LEN is scontrol's. */
static void warn_unknown_defaults(void)
{
	char prefix[16], name[VARIABLE_SIZE];

	snprintf(prefix, sizeof(prefix), "%s_TOPO_", default_prefix());
	for (char **v = environ; *v; v++) {
		size_t i = 0;

		if (strncmp(*v, prefix, strlen(prefix)) || !strncmp(*v, "SLURM_TOPO_LEN=", 15))
			continue;
		for (; i < OPTIONS; i++) {
			default_name(i, name);
			if (!strncmp(*v, name, strlen(name)) && (*v)[strlen(name)] == '=')
				break;
		}
		snprintf(name, sizeof(name), "%.*s", (int) strcspn(*v, "="), *v);
		if (i == OPTIONS)
			slurm_error("topiary: %s in the environment names no option of Topiary and is ignored",
				    printable(name));
	}
}

static bool applies_to_tasks(size_t which)
{
	return rows[which].remote == set_bind || rows[which].remote == set_monitor;
}

/*
 * srun passes one value of each option to the tasks of all components: the last. Those of sbatch and salloc are for
 * what these run, on the nodes of the first component.
 */
static void warn_task_option(size_t which)
{
	const char *value = given[which].value, *before = given[which].before;
	const char *name = rows[which].name, *sign = *value_of(value) ? "=" : "";

	if (!component || !value || !applies_to_tasks(which) || (before && !strcmp(value, before)))
		return;
	if (spank_context() == S_CTX_LOCAL)
		slurm_error("topiary: --%s%s%s applies to all components of this step: use an srun for each"
			    " --het-group", name, sign, value_of(value));
	else
		slurm_error("topiary: --%s%s%s has no effect on component %u of a heterogeneous job: give it to srun"
			    " --het-group=%u", name, sign, value_of(value), component, component);
}

/* Whether the user gave it here, and not the environment. */
static bool is_given(size_t which)
{
	const char *value = given[which].value, *before = given[which].of_user;

	return value && (!before || strcmp(value, before));
}

/* What was given and has no effect: what slurmctld acts on, of a step; and beside another option. */
static void warn_idle(void)
{
	static const struct { const char *option, *beside, *value; } idle[] = {
		{ "topo-fit", "topo-request", NULL }, { "topo-level", "topo-request", NULL },
		{ "topo-level", "topo-fit", "off" },
	};
	bool is_step = spank_context() == S_CTX_LOCAL && getenv("SLURM_JOB_ID");

	for (size_t i = 0; i < OPTIONS; i++)
		if (is_step && rows[i].remote == ignore && is_given(i))
			slurm_error("topiary: --%s has no effect on a step, because the job's cores are chosen already:"
				    " give it to sbatch or salloc", rows[i].name);
	for (size_t i = 0; !is_step && i < sizeof(idle) / sizeof(*idle); i++) {
		size_t option = option_find(idle[i].option), beside = option_find(idle[i].beside);

		if (is_given(option) && is_given(beside) && strcasecmp(given[option].value, "require") &&
		    (!idle[i].value || !strcasecmp(given[beside].value, idle[i].value)))
			slurm_error("topiary: --%s=%s has no effect beside --%s=%s", idle[i].option,
				    given[option].value, idle[i].beside, given[beside].value);
	}
}

unsigned options_end_component(spank_t sp)
{
	warn_idle();
	if (!component)
		warn_unknown_defaults();
	for (size_t i = 0; i < OPTIONS; i++) {
		warn_task_option(i);
		char name[VARIABLE_SIZE];
		const char *variable = variable_of(i, name) + strlen(ENVIRONMENT);

		/* What applies to tasks is the first component's. */
		if (component && spank_context() == S_CTX_ALLOCATOR && applies_to_tasks(i)) {
			const char *first = given[i].before;

			free(given[i].value);
			given[i].value = first ? strdup(first) : NULL;
			if (first)
				setenv(variable, first, 1);
			else
				unsetenv(variable);
		}
		if (component && given[i].value)
			spank_job_control_setenv(sp, variable, given[i].value, 1);
		else if (component && !given[i].of_user)
			spank_job_control_unsetenv(sp, variable);
		if (given[i].value) {
			free(given[i].before);
			given[i].before = given[i].value;
		}
		given[i].value = NULL;
		given[i].repeated = false;
	}
	return component++;
}

/* A job that has been allocated is never refused: on the node a bad value is logged and ignored. */
static int option_set(int which, const char *value, int remote)
{
	static bool warned[OPTIONS];
	const char *set, *name = rows[which].name;
	char variable[VARIABLE_SIZE];
	struct err e;
	int rc;

	if (!remote) {
		set = getenv(variable_of(which, variable));
		if (component && !given[which].repeated && set && value && !strcmp(set, value)) {
			given[which].repeated = true;
			if (!(value = given[which].of_user) || rows[which].path)
				return 0;
		}
		free(given[which].value);
		given[which].value = strdup(value ? value : "(null)");
	}
	if (rows[which].path)
		rc = resolve_path(name, value_of(value), rows[which].path, rows[which].size, &e);
	else
		rc = (remote ? rows[which].remote : rows[which].submit)(name, value_of(value), &e);
	if (!rc) {
		set_by_user[which] = true;
		return 0;
	}
	/* An option of srun reaches a node twice: with the step, and in its environment. */
	if (!warned[which])
		slurm_error("topiary: %s%s%s", given[which].source, printable(e.text), remote ? "; ignored" : "");
	warned[which] = true;
	return remote ? 0 : -1;
}

int options_register(spank_t sp, options_path_fn *resolve)
{
	char name[VARIABLE_SIZE];
	const char *set;

	resolve_path = resolve;
	for (size_t i = 0; i < OPTIONS; i++) {
		struct spank_option o = { (char *) rows[i].name, (char *) rows[i].argument, (char *) rows[i].help,
			rows[i].has_argument, (int) i, option_set };

		if (spank_option_register(sp, &o) != ESPANK_SUCCESS)
			slurm_error("topiary: --%s: not registered; another plugin may define it", rows[i].name);
		take_default(i);
		set = getenv(variable_of(i, name));
		given[i].of_user = set ? strdup(set) : NULL;
	}
	return 0;
}

const char *options_learned_tag(const char *value)
{
	return strncasecmp(value, "auto", 4) || (value[4] && value[4] != ':') ? NULL : value[4] ? value + 5 : "";
}

int options_resolve(spank_t, int, char **)
{
	if (*options.order && strcmp(options.order, "fabric") && strcmp(options.order, "off"))
		slurm_error("topiary: --topo-order=%s: expected off or fabric; ignored", printable(options.order));
	if (strcmp(options.order, "fabric"))
		*options.order = '\0';
	/* The user's order comes before the site's TopoMatrix; both of the user's were refused at submission. */
	if (!strcmp(options.matrix, "off") || *options.order)
		*options.matrix = '\0';
	if (options.bind.tasks)
		bind_request_auto(&options.bind, options_set_by_user);
	return 0;
}

void options_apply_site(const struct settings *s)
{
	const struct { const char *key, *value; } defaults[] = {
		{ "TopoTasks", s->topo_tasks },
		{ "TopoPlace", s->topo_place },
		{ "TopoMembind", s->topo_membind },
		{ "TopoMems", s->topo_mems },
		{ "TopoOmp", s->topo_omp },
		{ "TopoNic", s->topo_nic },
		{ "TopoHwloc", s->topo_hwloc },
	};
	struct err e;

	/* TopoMems is the former name of a part of TopoMembind, which comes before it. */
	for (size_t i = 0; i < sizeof(defaults) / sizeof(*defaults); i++)
		if ((strcmp(defaults[i].key, "TopoMems") || strcasecmp(defaults[i].value, "off")) &&
		    bind_request_set(&options.bind, defaults[i].key, defaults[i].value, &e))
			slurm_error("topiary: topiary.conf: %s; ignored", e.text);
	snprintf(options.matrix, sizeof(options.matrix), "%s", s->topo_matrix);
	if (monitor_request_parse("TopoMonitor", s->topo_monitor, &options.monitor, &e))
		slurm_error("topiary: topiary.conf: %s; ignored", e.text);
}
