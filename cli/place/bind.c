/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <hwloc.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "bind/gpu.h"
#include "bind/memory.h"
#include "bind/nic.h"
#include "bind/place.h"
#include "bind/request.h"
#include "bind/vars.h"
#include "child.h"
#include "cmd.h"
#include "hwview/image.h"
#include "hwview/machine.h"
#include "hwview/restrict.h"

/*
 * topiary bind: what --topo-tasks=auto does for a task of srun, for a process that another launcher has started. Each
 * process computes the places of all ranks of its node from the same topology and takes its own, as the tasks of srun
 * do (spank_plugin/task). Whatever fails, the program runs as it would without us, and one line says why.
 */

enum { MAX_RANKS = 4096, MAX_XML = 64 << 20 };

struct args {
	struct bind_request request;
	struct cmd_words command;
	unsigned cpus;
	bool report, job;
};

/* --- which rank this is --- */

/*
 * Where launchers leave a rank's number on its node and how many there are; of launchers within each other the
 * innermost comes first. What binds ranks by default is replaced by what we choose.
 */
static const struct launcher {
	const char *local, *count;
	bool binds;
	bool unbound_in_job;			/* but not with --job (spank_plugin/launch/launchers.c) */
	bool passes;				/* the environment of its own node to ranks on all nodes */
	const char *const *user;		/* variables by which the user binds, or NULL */
} launchers[] = {
	{ "LOCAL_RANK", "LOCAL_WORLD_SIZE", .binds = false },	/* torchrun, accelerate */
	{ "LOCAL_RANK", "LOCAL_SIZE", .binds = false },		/* DeepSpeed */
	{ "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", .binds = true, .unbound_in_job = true },
	{ "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", .binds = true, .passes = true },
	/* Hydra: MPICH, Intel MPI */
	{ "MPI_LOCALRANKID", "MPI_LOCALNRANKS", .binds = true, .passes = true, .user = vars_intel_pin },
	{ "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", .binds = true, .passes = true },
	{ "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", .binds = true },
};

struct rank {
	const struct launcher *launcher;	/* NULL: none */
	unsigned local, n;			/* 0 of 1 where there is none */
};

/* "4(x2),3": the number of the node with this index; a plain number is that of every node. 0: bad text. */
static unsigned tasks_of_node(const char *text, unsigned node)
{
	unsigned tasks, nodes;

	for (;; text++) {
		if (number_read(&text, MAX_RANKS, &tasks))
			return 0;
		nodes = 1;
		if (!strncmp(text, "(x", 2)) {
			text += 2;
			if (number_read(&text, UINT_MAX, &nodes) || *text++ != ')')
				return 0;
		}
		if (node < nodes)
			return tasks;
		node -= nodes;
		if (*text != ',')
			return *text ? 0 : tasks;
	}
}

static int rank_find(struct rank *r, struct err *e)
{
	const char *index = getenv("SLURM_NODEID"), *local, *count;
	const size_t all = sizeof(launchers) / sizeof(*launchers);

	*r = (struct rank){ .n = 1 };
	for (const struct launcher *l = launchers; l < launchers + all && !r->launcher; l++)
		if ((local = getenv(l->local)) && (count = getenv(l->count))) {
			r->launcher = l;
			r->n = tasks_of_node(count, l->binds && index ? atoi(index) : 0);
			if (number_read(&local, MAX_RANKS, &r->local) || *local || r->local >= r->n)
				return err_set(e, "%s=%.20s with %s=%.20s: not a rank and a number of ranks", l->local,
					       getenv(l->local), l->count, count);
		}
	return 0;
}

/* --- where it may run --- */

struct binding {
	const struct args *args;
	struct rank rank;
	struct buf daemon;		/* environment of what started this node's ranks, where it passes another */
	hwloc_topology_t node, own;	/* all of the node; the cores that the ranks share */
	char gpus[GPU_LIST_SIZE];	/* that the ranks share, by the node's numbers; "": none */
	unsigned ngpus;
	uint64_t mine;			/* of gpus, this process's */
	unsigned nplaces, place;	/* places for ranks, or for GPUs; and which is ours, or the first of ours */
	hwloc_bitmap_t *places;
	uint64_t *which;		/* the GPUs of each place; NULL: not placed by GPU */
	hwloc_bitmap_t pus;		/* of this process in the end */
	bool unbound;			/* only for us its launcher has not bound it */
	struct buf nics;
};

/* The nearest process above the rank that is none, such as Hydra's proxy: Slurm, or ssh, started it on this node. */
static void daemon_find(struct binding *b)
{
	const struct launcher *l = b->rank.launcher;
	pid_t pid = getppid();

	if (l && l->passes)
		while (pid > 0 && !cmd_process_environ(pid, &b->daemon) && *cmd_environ_get(&b->daemon, l->local)) {
			buf_free(&b->daemon);
			pid = cmd_process_parent(pid);
		}
}

/* A variable that differs from node to node, as it is on this one; NULL: it is not set, or empty. */
static const char *node_env(const struct binding *b, const char *name)
{
	const char *value = b->daemon.len ? cmd_environ_get(&b->daemon, name) : getenv(name);

	return value && *value ? value : NULL;
}

/* Plugins of hwloc that would start GPUs; what they add is not needed here. */
static const char *const slow_components[] = { "cuda", "nvml", "opencl", "rsmi", "levelzero", "gl" };

static int discover(hwloc_topology_t *out, struct err *e)
{
	if (hwloc_topology_init(out))
		return err_set(e, "out of memory");
	for (size_t i = 0; i < sizeof(slow_components) / sizeof(*slow_components); i++)
		hwloc_topology_set_components(*out, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, slow_components[i]);
	if (!hwloc_topology_set_io_types_filter(*out, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) &&
	    !hwloc_topology_set_flags(*out, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) && !hwloc_topology_load(*out))
		return 0;
	hwloc_topology_destroy(*out);
	*out = NULL;
	return err_set(e, "hwloc cannot discover this node: %s", strerror(errno));
}

/*
 * The topologies of the Slurm step, where Topiary's SPANK plugin wrote them for this machine; else by hwloc. The step's
 * own is read from its XML: an image cannot be restricted.
 */
static int topologies_find(struct binding *b, struct err *e)
{
	const char *step = node_env(b, "TOPIARY_STEP_DIR");
	char node[PATH_MAX], own[PATH_MAX];
	struct buf xml = {0};
	struct err unused;

	if (step && snprintf(node, sizeof(node), "%s/node", step) < (int) sizeof(node) &&
	    snprintf(own, sizeof(own), "%s/" IMAGE_XML, step) < (int) sizeof(own) &&
	    !image_adopt_alone(node, &b->node, &unused) && hwloc_topology_is_thissystem(b->node) &&
	    !file_read(own, MAX_XML, &xml, &unused))
		b->own = machine_load(xml.data, xml.len, &unused);
	buf_free(&xml);
	if (b->own)
		return 0;
	if (discover(&b->node, e))
		return -1;
	if (hwloc_topology_dup(&b->own, b->node))
		return err_set(e, "out of memory");
	return restrict_to_cpus(b->own, hwloc_topology_get_allowed_cpuset(b->own), e);
}

/*
 * In a job that says where ranks run, what the user's own command says of these comes first. Where the user names none,
 * Intel MPI itself sets domains of SLURM_CPUS_PER_TASK, of cells of one CPU.
 */
static bool launcher_follows_user(const struct binding *b)
{
	const char *own[][2] = { { "I_MPI_PIN_DOMAIN", getenv("SLURM_CPUS_PER_TASK") }, { "I_MPI_PIN_CELL", "unit" } };
	bool follows = b->rank.launcher->unbound_in_job;

	for (const char *const *name = b->rank.launcher->user; name && *name; name++) {
		const char *value = getenv(*name);

		for (int i = 0; value && i < 2; i++)
			if (!strcmp(*name, own[i][0]) && own[i][1] && !strcmp(value, own[i][1]))
				value = NULL;
		follows |= value != NULL;
	}
	return b->args->job && follows;
}

/*
 * The CPUs that the ranks share. A launcher that does not bind leaves them its own; one process alone that differs from
 * its parent there has been bound by somebody for a reason, and stays: 1.
 */
static int cpus_find(struct binding *b, struct err *e)
{
	hwloc_bitmap_t parent = hwloc_bitmap_alloc();
	int rc = 0;

	if (b->rank.launcher && b->rank.launcher->binds && !launcher_follows_user(b))
		hwloc_bitmap_copy(b->pus, hwloc_topology_get_topology_cpuset(b->own));
	else if (!parent || machine_bound(0, b->pus, e))
		rc = parent ? -1 : err_set(e, "out of memory");
	else if (!machine_bound(getppid(), parent, NULL) && !hwloc_bitmap_isequal(parent, b->pus))
		rc = 1;
	else if (!(rc = restrict_to_cpus(b->own, b->pus, e)))
		b->unbound = b->args->job && b->rank.launcher && b->rank.launcher->unbound_in_job;
	hwloc_bitmap_free(parent);
	return rc;
}

/* --- which GPUs it uses --- */

/* The GPUs that the program is told to use; those that Slurm tells whatever it starts on this node. */
static const char *gpus_named(const struct binding *b, bool by_slurm)
{
	const char *value = NULL;

	for (const char *const *name = gpu_variables; !value && *name; name++)
		value = by_slurm ? node_env(b, *name) : getenv(*name);
	return value;
}

/*
 * Slurm's list of the GPUs of the step, or in the batch script of the job, on this node; NULL: it has none. What
 * mpiexec passes to ranks on other nodes is of its own node, and may name GPUs there that are not the job's; likewise
 * what srun passes to steps of the batch script's variable.
 */
static int gpus_of_slurm(const struct binding *b, const char *visible, const char **out, struct err *e)
{
	const char *passed = getenv("SLURM_STEP_GPUS") ?: getenv("SLURM_JOB_GPUS"), *told = gpus_named(b, true);
	const char *dir = node_env(b, "TOPIARY_STEP_DIR"), *dot = dir ? strrchr(dir, '.') : NULL;
	const char *nodes = getenv("SLURM_JOB_NUM_NODES");

	*out = node_env(b, "SLURM_STEP_GPUS");
	if (!*out && (!dot || !strcmp(dot, ".batch")))
		*out = node_env(b, "SLURM_JOB_GPUS");
	if (!*out && passed)
		*out = "";
	if (!b->rank.launcher || !b->rank.launcher->passes)
		return 0;
	if (passed && (b->daemon.len ? !node_env(b, "SLURM_JOB_ID") : !nodes || atoi(nodes) != 1))
		return err_set(e, "which GPUs the job has on this node is not known: GPU %.60s is of mpiexec's node",
			       passed);
	if (*out && **out && told && (!visible || !gpu_which(visible, told)))
		return err_set(e, "Slurm has given this node GPU %.60s, but mpiexec passes GPU %.60s, of its own node",
			       told, visible ? visible : "-");
	return 0;
}

/*
 * Ranks that see the same GPUs use them by their local rank, as PyTorch does. A process that sees one, or that has no
 * rank (a worker of Ray or Dask), uses what it sees, and its place is that of its GPU among all.
 */
static int gpus_find(struct binding *b, struct err *e)
{
	const char *visible = gpus_named(b, false), *step;
	char all[GPU_LIST_SIZE], seen[GPU_LIST_SIZE];

	if (gpus_of_slurm(b, visible, &step, e))
		return -1;
	/* As for tasks of srun. */
	if (step ? !*step : b->args->job)
		visible = step = "";
	if (step)
		snprintf(all, sizeof(all), "%s", step);
	else if (gpu_all(b->node, all, sizeof(all)))
		return err_set(e, "too many GPUs");
	if (!visible)
		snprintf(seen, sizeof(seen), "%s", all);
	else if (gpu_own(b->node, "", &(struct gpu_lists){ all, visible, step ? all : "", visible }, seen,
			 sizeof(seen), e))
		return -1;
	/* Slurm numbers GPUs from 0 where a cgroup constrains them; a worker's own choice may be by either numbers. */
	if (step && gpu_count(visible) < gpu_count(all) && gpu_which(visible, all) && strcmp(seen, visible)) {
		if (gpu_count(seen) == gpu_count(visible))
			return err_set(e, "cannot tell whether GPU %.40s is number %.40s of the node or the one that "
				       "is %.40s there: the job has %.60s", visible, visible, seen, all);
		snprintf(seen, sizeof(seen), "%s", visible);
	}
	b->ngpus = gpu_count(all);
	b->nplaces = b->rank.n;
	b->place = b->rank.local;
	if (!gpu_count(seen) || !strcmp(seen, "NoDevFiles"))
		b->ngpus = 0;
	else if (gpu_count(seen) < 2 || !b->rank.launcher) {
		if (!(b->mine = gpu_which(seen, all)))
			return err_set(e, "GPU %.40s is not one of %s (%.60s)", seen,
				       step ? "the step's" : "the node's", all);
		b->nplaces = b->ngpus;
		b->place = __builtin_ctzll(b->mine);
	} else {
		snprintf(all, sizeof(all), "%s", seen);
		b->ngpus = gpu_count(all);
		b->mine = UINT64_C(1) << b->rank.local % b->ngpus;
	}
	snprintf(b->gpus, sizeof(b->gpus), "%s", b->ngpus ? all : "");
	return 0;
}

/* --- its place --- */

static bool is_mine(const struct binding *b, unsigned place)
{
	return place == b->place || (b->nplaces == b->ngpus && b->mine >> place & 1);
}

static int places_near_gpus(struct binding *b, struct err *e)
{
	uint64_t fixed[GPU_MATCH_GPUS];
	hwloc_bitmap_t near[GPU_MATCH_GPUS];
	struct gpu_places how = { .topology = b->own, .node = b->node, .near = near, .ngpus = b->ngpus,
		.ntasks = b->nplaces, .cpus = b->args->cpus, .fixed = fixed };
	int rc = 0;

	if (b->nplaces > GPU_MATCH_GPUS)
		return err_set(e, "more than %u ranks share the GPUs of this node", GPU_MATCH_GPUS);
	for (unsigned i = 0; i < b->nplaces; i++)
		fixed[i] = UINT64_C(1) << i % b->ngpus;
	for (unsigned i = 0; i < b->ngpus; i++)
		rc |= (near[i] = hwloc_bitmap_alloc()) ? 0 : -1;
	b->which = calloc(b->nplaces, sizeof(*b->which));
	rc = rc || !b->which ? err_set(e, "out of memory") :
	     gpu_localities(b->node, b->gpus, near, e) || gpu_place(&how, b->places, b->which, e) ? -1 : 0;
	for (unsigned i = 0; i < b->ngpus; i++)
		hwloc_bitmap_free(near[i]);
	return rc;
}

static int place_find(struct binding *b, struct err *e)
{
	struct bind_request r = b->args->request;
	const char *cpus = node_env(b, "SLURM_CPUS_ON_NODE");
	bool whole;

	/* As spank_plugin/task/task.c: where slurm.conf gives a core one CPU, that is all of its PUs. */
	whole = b->args->job && cpus &&
		atoi(cpus) == hwloc_get_nbobjs_by_type(b->own, machine_core_type(b->own));
	if (!(b->places = calloc(b->nplaces, sizeof(*b->places))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < b->nplaces; i++)
		if (!(b->places[i] = hwloc_bitmap_alloc()))
			return err_set(e, "out of memory");
	if (r.place == PLACE_GPU && !b->ngpus)
		r.place = PLACE_MEM;
	if (r.place == PLACE_GPU ? places_near_gpus(b, e) :
				   place_tasks(b->own, &r, b->nplaces, b->args->cpus, whole, b->places, e))
		return -1;
	hwloc_bitmap_zero(b->pus);
	for (unsigned i = 0; i < b->nplaces; i++)
		if (is_mine(b, i))
			hwloc_bitmap_or(b->pus, b->pus, b->places[i]);
	return 0;
}

/* --- what follows from its place --- */

static bool env_has(void *, const char *name)
{
	return getenv(name);
}

static void env_set(void *, const char *name, const char *value)
{
	setenv(name, value, 0);
}

static const struct bind_vars environment = { env_has, env_set, NULL };

static int bind_memory(struct binding *b, struct err *e)
{
	char now[256];

	if (!b->args->request.memory)
		return 0;
	if (memory_policy_text(now, sizeof(now), e))
		return -1;
	if (strcmp(now, "default"))
		return err_set(e, "the memory policy stays %s, which the process had already", now);
	return memory_bind(b->own, &b->args->request, b->pus, e);
}

static int set_threads(struct binding *b, struct err *e)
{
	struct omp_task o = { b->pus, b->args->cpus, 0 };

	for (unsigned i = 0; i < b->nplaces; i++)
		o.sharers += i == b->place || (!is_mine(b, i) && hwloc_bitmap_intersects(b->places[i], b->pus));
	return b->args->request.omp ? omp_export(b->own, b->args->request.omp, &o, &environment, e) : 0;
}

static int set_huge(struct binding *b, struct err *e)
{
	char new[4096];

	if (!b->args->request.huge)
		return 0;
	if (huge_tunables(b->args->request.huge, getenv(HUGE_VARIABLE), new, sizeof(new), e))
		return -1;
	setenv(HUGE_VARIABLE, new, 1);
	return 0;
}

static int set_nics(struct binding *b, struct err *e)
{
	struct nics devices;
	struct nic_request r = { .topology = b->node, .nics = &devices, .request = &b->args->request,
		.masks = b->places, .local = b->place, .nlocal = b->nplaces, .bound = true };
	unsigned *beside;
	int rc;

	if (!b->args->request.nic)
		return 0;
	if (nics_find(b->node, &devices, e))
		return -1;
	r.beside = beside = b->which ? nics_beside_gpus(b->node, &devices, b->gpus, b->which, b->nplaces) : NULL;
	rc = nics_export(&r, &environment, &b->nics, e);
	free(beside);
	nics_free(&devices);
	return rc;
}

/* --- the program --- */

static void report(const struct binding *b)
{
	char cpus[512], memory[256] = "?", gpus[512] = "-", mine[GPU_LIST_SIZE];
	struct err unused;

	hwloc_bitmap_list_snprintf(cpus, sizeof(cpus), b->pus);
	memory_policy_text(memory, sizeof(memory), &unused);
	if (b->mine && !gpu_subset(b->gpus, b->mine, mine, sizeof(mine)))
		gpu_describe(b->node, mine, b->pus, gpus, sizeof(gpus));
	log_info("rank %u of %u on this node: CPUs %s, memory %s, GPU %s, NIC %s", b->rank.local, b->rank.n, cpus,
		 memory, gpus, b->nics.len ? b->nics.data : "-");
}

/*
 * Some programs bind themselves after they have started, and undo what was done here. A process of ours that nobody
 * waits for looks three times in the program's first minute, and ends with the program.
 */
static void watch(const struct binding *b)
{
	static const int until[] = { 2000, 10000, 48000 };
	pid_t program = getpid(), child = fork();
	hwloc_bitmap_t now = hwloc_bitmap_alloc();
	struct pollfd end = { .events = POLLIN };
	char is[512], was[512];

	if (child) {
		if (child > 0)
			waitpid(child, NULL, 0);
		hwloc_bitmap_free(now);
		return;
	}
	if (fork())
		_exit(0);
	end.fd = syscall(SYS_pidfd_open, program, 0);
	for (size_t i = 0; end.fd >= 0 && now && i < sizeof(until) / sizeof(*until); i++) {
		if (poll(&end, 1, until[i]) || machine_bound(program, now, NULL))
			break;
		if (hwloc_bitmap_isincluded(now, b->pus))
			continue;
		hwloc_bitmap_list_snprintf(is, sizeof(is), now);
		hwloc_bitmap_list_snprintf(was, sizeof(was), b->pus);
		log_warning("rank %u: %s has bound itself to CPUs %s after topiary bind gave it %s: switch one of the "
			    "two off", b->rank.local, *b->args->command.list, is, was);
		break;
	}
	_exit(0);
}

static int rank_bind(struct binding *b, struct err *e)
{
	static const struct { const char *what; int (*run)(struct binding *b, struct err *e); } actions[] = {
		{ "memory", bind_memory }, { "threads", set_threads }, { "huge pages", set_huge },
		{ "network devices", set_nics },
	};
	int rc;

	if (rank_find(&b->rank, e) || !(b->pus = hwloc_bitmap_alloc()))
		return -1;
	daemon_find(b);
	if (topologies_find(b, e))
		return -1;
	if ((rc = cpus_find(b, e)))
		return rc < 0 ? -1 : err_set(e, "the process was bound already, by its launcher or by numactl or "
						"taskset");
	if (gpus_find(b, e)) {
		if (b->args->request.place == PLACE_GPU && (!b->args->job || !b->rank.local))
			log_warning("rank %u: not placed near a GPU: %s", b->rank.local, e->text);
		*b->gpus = '\0';
		b->ngpus = b->mine = 0;
		b->nplaces = b->rank.n;
		b->place = b->rank.local;
	}
	if (place_find(b, e) || machine_bind(b->pus, e) || machine_bound(0, b->pus, e))
		return -1;
	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
		if (actions[i].run(b, e))
			log_warning("rank %u: %s: %s", b->rank.local, actions[i].what, e->text);
	if (b->args->report)
		report(b);
	watch(b);
	return 0;
}

/* An option as srun has it; what is not set is as with --topo-tasks=auto. */
#define REQUEST(name)												\
	static void set_##name(void *args, const char *text, struct argp_state *state)				\
	{													\
		struct err e;											\
														\
		if (bind_request_set(&((struct args *) args)->request, "topo-" #name, text, &e))		\
			argp_error(state, "%s", e.text);							\
	}
REQUEST(place)
REQUEST(membind)
REQUEST(omp)
REQUEST(nic)
REQUEST(hugepages)

static const struct cmd_option options[] = {
	{ "topo-place", 0, "PLACE", CMD_SET(set_place), "CPUs, as of srun (default: gpu, or mem where there is none)" },
	{ "topo-membind", 0, "POLICY", CMD_SET(set_membind), "Memory policy (default: local)" },
	{ "topo-omp", 0, "FORM", CMD_SET(set_omp), "OpenMP threads (default: auto)" },
	{ "topo-nic", 0, "RAILS", CMD_SET(set_nic), "Network devices (default: auto)" },
	{ "topo-hugepages", 0, "KIND", CMD_SET(set_hugepages), "Huge pages for malloc(3) (default: off)" },
	{ "topo-report", 0, NULL, CMD_FLAG(report), "Print what the process got" },
	{ "job", 0, NULL, CMD_FLAG(job), "Options and GPUs of the Slurm job; ranks that its user bound stay" },
	{ "cpus-per-task", 'c', "N", CMD_NUMBER(cpus, 1, 65536), "CPUs of each rank (default: a share of the cores)" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "PROGRAM [ARGUMENT...]",
	"Run a program on cores, memory and network devices near each other and near its GPU, as --topo-tasks=auto "
	"does for tasks of srun: for ranks that torchrun, accelerate, DeepSpeed, Ray, Dask or mpirun start.",
	CMD_COMMAND(command), "a PROGRAM", NULL,
};

/*
 * What the SPANK plugin has left for the ranks of a job, if these are not to be placed by the user's own topiary bind.
 * The end of a batch job on one node says what was not applied, unless there is this mark.
 */
static bool job_asks(struct args *a)
{
	const char *words = getenv(BIND_JOB_OPTIONS);
	const char *program = strrchr(*a->command.list, '/'), *step = getenv("TOPIARY_STEP_DIR");
	const char *job = getenv("SLURM_JOB_ID");
	char mark[PATH_MAX];
	struct err e;

	program = program ? program + 1 : *a->command.list;
	if (!words || (!strcmp(program, "topiary") && a->command.list[1] && !strcmp(a->command.list[1], "bind")))
		return false;
	if (bind_request_read(&a->request, words, &e)) {
		log_warning(BIND_JOB_OPTIONS ": %s", e.text);
		return false;
	}
	a->report = a->request.report;
	if (step && job && snprintf(mark, sizeof(mark), "%s/../%s.batch/" BIND_MARK, step, job) < (int) sizeof(mark))
		chmod(mark, 0);
	return true;
}

int cmd_bind(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};
	struct binding b = { .args = &a };

	bind_request_auto(&a.request, NULL);
	/* Without topiary.conf: what is wrong there must not keep the program from running. */
	cmd_line_parse(&syntax, &a, NULL, NULL, argc, argv);
	if ((!a.job || job_asks(&a)) && rank_bind(&b, e) && (!a.job || !b.rank.local))
		log_warning("rank %u: %s runs %s: %s", b.rank.local, *a.command.list,
			    b.unbound ? "unbound" : "as it was started", e->text);
	execvp(*a.command.list, a.command.list);
	c->status = errno == ENOENT ? 127 : 126;
	return err_set(e, "%s: %s", *a.command.list, strerror(errno));
}
