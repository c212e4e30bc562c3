/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <dirent.h>

#include "base/array.h"
#include "base/file.h"
#include "base/log.h"
#include "base/order.h"
#include "bind/memory.h"
#include "client/claim.h"
#include "child.h"
#include "cmd.h"
#include "place/cores.h"

enum { PROC_MAX = 4 << 20, JOB_MAX = 10 };

struct args {
	const char *job, *to;	/* JOB or JOB.STEP */
	unsigned pid;
	bool is_here;
};

static bool is_job(const char *text)
{
	size_t job = strspn(text, "0123456789"), step = text[job] == '.' ? strspn(text + job + 1, "0123456789") : 0;

	return job && job <= JOB_MAX && step <= JOB_MAX && (text[job] ? step && !text[job + 1 + step] : true);
}

static void check(void *args, struct argp_state *state)
{
	const struct args *a = args;

	if (!a->job == !a->pid)
		argp_error(state, "expected JOB[.STEP], or --pid");
	if (a->job && !is_job(a->job))
		argp_error(state, "%s: expected JOB or JOB.STEP, numbers", a->job);
}

static void check_move(void *args, struct argp_state *state)
{
	const struct args *a = args;
	hwloc_bitmap_t nodes = hwloc_bitmap_alloc();

	check(args, state);
	if (!a->to)
		argp_error(state, "expected --to=NUMA, or --to=local");
	if (strcmp(a->to, "local") && (!nodes || hwloc_bitmap_list_sscanf(nodes, a->to) || hwloc_bitmap_iszero(nodes) ||
				       hwloc_bitmap_last(nodes) < 0 || hwloc_bitmap_last(nodes) >= (int) PAGES_NODES))
		argp_error(state, "--to=%s: expected local, or numbers of NUMA nodes as in 0,2-3", a->to);
	hwloc_bitmap_free(nodes);
}

#define COMMON \
	{ "pid", 'p', "PID", CMD_NUMBER(pid, 1, INT32_MAX), "This process alone" }, \
	{ "here", 0, NULL, CMD_FLAG(is_here), "The processes of the job on this node alone, without srun" }

static const struct cmd_option options[] = { COMMON, {0} };
static const struct cmd_option move_options[] = {
	{ "to", 0, "NUMA", CMD_WORD(to), "The NUMA nodes, by the operating system's numbers; local: those of the CPUs "
	  "that each process may use" },
	COMMON,
	{0},
};

static const struct cmd_syntax syntax = {
	options, "JOB[.STEP]\n--pid=PID",
	"Show on which NUMA nodes the memory of each rank of your job is, and how much is far from its CPUs.",
	CMD_TEXT(job), NULL, check,
};
static const struct cmd_syntax move_syntax = {
	move_options, "JOB[.STEP] --to=NUMA|local\n--pid=PID --to=NUMA|local",
	"Move the memory of a running job of yours, or of one of your processes, to other NUMA nodes.\vPages that are "
	"touched later are placed by the task's memory policy.",
	CMD_TEXT(job), NULL, check_move,
};

/* --- processes of a job on this node --- */

struct process {
	pid_t pid;
	char step[2 * JOB_MAX + 2];	/* "1234.0", or "" for --pid */
	char node[HOST_NAME_MAX + 1];
	unsigned rank;
	bool is_held;	/* its cgroup is the job's */
};

static void set_node(struct process *p, const char *name)
{
	if (claim_node_valid(name))
		snprintf(p->node, sizeof(p->node), "%s", name);
	else
		gethostname(p->node, sizeof(p->node) - 1);
}

/* The job whose cgroup slurmstepd has moved the process to (".../job_7/step_0/..."), "": none. */
static void read_cgroup_job(pid_t pid, char job[static JOB_MAX + 1])
{
	struct buf b = {0};
	char path[64];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int) pid);
	at = file_read(path, PROC_MAX, &b, NULL) || !b.data ? NULL : strstr(b.data, "/job_");
	snprintf(job, JOB_MAX + 1, "%.*s", at ? (int) strspn(at + 5, "0123456789") : 0, at ? at + 5 : "");
	buf_free(&b);
}

/*
 * What slurmstepd gives each task, and each process inherits. Of others' processes nothing can be read. Several nodes
 * may share a kernel.
 */
static bool process_read(pid_t pid, const char *job, struct process *out)
{
	const char *here = getenv("SLURMD_NODENAME");
	struct buf b = {0};
	char held[JOB_MAX + 1];
	size_t n = strlen(job);
	bool is_task;

	if (pid == getpid() || cmd_process_environ(pid, &b))
		return false;
	*out = (struct process){ .pid = pid, .rank = strtoul(cmd_environ_get(&b, "SLURM_PROCID"), NULL, 10) };
	snprintf(out->step, sizeof(out->step), "%.*s.%.*s", JOB_MAX, cmd_environ_get(&b, "SLURM_JOB_ID"), JOB_MAX,
		 cmd_environ_get(&b, "SLURM_STEP_ID"));
	set_node(out, cmd_environ_get(&b, "SLURMD_NODENAME"));
	is_task = is_job(out->step) && !strncmp(out->step, job, n) && (!out->step[n] || out->step[n] == '.') &&
		  *cmd_environ_get(&b, "SLURM_PROCID") &&
		  (!here || !strcmp(here, out->node));
	buf_free(&b);
	if (!is_task)
		return false;
	read_cgroup_job(pid, held);
	out->is_held = *held;
	return !*held || (!strncmp(held, job, strlen(held)) && strcspn(job, ".") == strlen(held));
}

/* The step that srun started for this very command has no memory of its own to show. */
static bool is_own_step(const struct process *p)
{
	const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
	size_t n = job ? strlen(job) : 0;

	return job && step && !strncmp(p->step, job, n) && p->step[n] == '.' && !strcmp(p->step + n + 1, step);
}

ORDER(by_rank, struct process, strcmp(x->step, y->step) ?: COMPARE(x->rank, y->rank) ?: COMPARE(x->pid, y->pid))

/* Everybody can claim to be of a job. Where Slurm holds jobs in cgroups, only those in the job's are. */
static int find_processes(const char *job, struct process **out, size_t *n, struct err *e)
{
	DIR *proc = opendir("/proc");
	char own[JOB_MAX + 1];
	size_t found = 0;
	bool by_cgroup;
	struct dirent *d;
	int rc = proc ? 0 : err_set(e, "/proc: %s", strerror(errno));

	read_cgroup_job(getpid(), own);
	by_cgroup = *own;
	while (rc == 0 && (d = readdir(proc))) {
		struct process p;

		if (!process_read(atoi(d->d_name), job, &p) || is_own_step(&p))
			continue;
		by_cgroup |= p.is_held;
		if (array_reserve(*out, found, 1))
			rc = err_set(e, "out of memory");
		else
			(*out)[found++] = p;
	}
	if (proc)
		closedir(proc);
	for (size_t i = 0; i < found; i++)
		if ((*out)[i].is_held || !by_cgroup)
			(*out)[(*n)++] = (*out)[i];
	if (*n)
		qsort(*out, *n, sizeof(**out), by_rank);
	return rc;
}

/* --- memory of a rank --- */

struct rank_memory {
	const struct process *first;
	hwloc_bitmap_t near, used;	/* NUMA nodes: of its CPUs, and with memory of it */
	struct pages pages;
	uint64_t local, far;		/* KiB; each process by its own CPUs */
	uint64_t at_target;
};

/* A process may end meanwhile. */
static int memory_add(hwloc_topology_t t, const struct process *p, const char *to, struct rank_memory *m, struct err *e)
{
	hwloc_bitmap_t near = hwloc_bitmap_alloc(), target = hwloc_bitmap_alloc();
	struct pages *pages = calloc(1, sizeof(*pages));
	int rc = near && target && pages ? 0 : err_set(e, "out of memory");

	if (rc == 0) {
		/* Memory without CPUs of its own has those that hwloc says are nearest to it. */
		hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
		hwloc_obj_t node = NULL;

		hwloc_bitmap_zero(near);
		if (cpus && !hwloc_get_proc_cpubind(t, p->pid, cpus, 0))
			while ((node = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, node)))
				if (hwloc_bitmap_intersects(node->cpuset, cpus))
					hwloc_bitmap_set(near, node->os_index);
		hwloc_bitmap_free(cpus);
		if (!to || !strcmp(to, "local"))
			hwloc_bitmap_copy(target, near);
		else
			hwloc_bitmap_list_sscanf(target, to);
		if (to)
			rc = pages_move(p->pid, hwloc_topology_get_complete_nodeset(t), target, e);
	}
	if (rc == 0)
		rc = pages_read(p->pid, pages, e);
	for (unsigned i = 0; rc == 0 && i < PAGES_NODES; i++) {
		*(hwloc_bitmap_isset(near, i) ? &m->local : &m->far) += pages->kib[i];
		m->at_target += hwloc_bitmap_isset(target, i) ? pages->kib[i] : 0;
		m->pages.kib[i] += pages->kib[i];
		if (pages->kib[i])
			hwloc_bitmap_set(m->used, i);
	}
	if (rc == 0)
		hwloc_bitmap_or(m->near, m->near, near);
	free(pages);
	hwloc_bitmap_free(near);
	hwloc_bitmap_free(target);
	return rc;
}

static unsigned long mib(uint64_t kib)
{
	return (kib + 1023) / 1024;
}

static void print_name(const struct rank_memory *m)
{
	if (*m->first->step)
		printf("%s rank %u  node %s", m->first->step, m->first->rank, m->first->node);
	else
		printf("process %d", (int) m->first->pid);
}

static void print_memory(const struct rank_memory *m)
{
	char near[256];
	unsigned i;

	hwloc_bitmap_list_snprintf(near, sizeof(near), m->near);
	print_name(m);
	printf("  NUMA %s  local %lu MiB  far %lu MiB", near, mib(m->local), mib(m->far));
	hwloc_bitmap_foreach_begin(i, m->used)
		printf("%s%u%s: %lu MiB", i == (unsigned) hwloc_bitmap_first(m->used) ? "  by NUMA node " : ", ", i,
		       hwloc_bitmap_isset(m->near, i) ? "" : " (far)", mib(m->pages.kib[i]));
	hwloc_bitmap_foreach_end();
	putchar('\n');
}

static void print_moved(const struct rank_memory *m, const char *to)
{
	char near[256];

	hwloc_bitmap_list_snprintf(near, sizeof(near), m->near);
	print_name(m);
	printf("  %lu MiB on NUMA %s  %lu MiB elsewhere\n", mib(m->at_target), strcmp(to, "local") ? to : near,
	       mib(m->local + m->far - m->at_target));
}

static int print_json(const struct rank_memory *m, struct err *e)
{
	json_t *j = json_object(), *nodes = json_object();
	char near[256], key[16];
	unsigned i;
	int rc;

	hwloc_bitmap_list_snprintf(near, sizeof(near), m->near);
	hwloc_bitmap_foreach_begin(i, m->used)
		snprintf(key, sizeof(key), "%u", i);
		json_object_set_new(nodes, key, json_integer(m->pages.kib[i]));
	hwloc_bitmap_foreach_end();
	if (*m->first->step) {
		json_object_set_new(j, "step", json_string(m->first->step));
		json_object_set_new(j, "rank", json_integer(m->first->rank));
	}
	json_object_set_new(j, "pid", json_integer(m->first->pid));
	json_object_set_new(j, "node", json_string(m->first->node));
	json_object_set_new(j, "near", json_string(near));
	json_object_set_new(j, "local_kib", json_integer(m->local));
	json_object_set_new(j, "far_kib", json_integer(m->far));
	json_object_set_new(j, "numa_kib", nodes);
	rc = j && !json_dumpf(j, stdout, JSON_COMPACT) && putchar('\n') != EOF ? 0 : err_set(e, "cannot write");
	json_decref(j);
	return rc;
}

/* The processes of a rank, from the first on. Returns how many these are. */
static size_t rank_run(const struct cmd *c, hwloc_topology_t t, const struct args *a, const struct process *p, size_t n,
		       int *rc, struct err *e)
{
	struct rank_memory m = { .first = p, .near = hwloc_bitmap_alloc(), .used = hwloc_bitmap_alloc() };
	size_t count = 0, done = 0;

	for (; m.near && m.used && count < n && p[count].rank == p->rank && !strcmp(p[count].step, p->step); count++)
		done += !memory_add(t, &p[count], a->to, &m, e);
	if (!done)
		*rc = count ? -1 : err_set(e, "out of memory");
	else if (c->json)
		*rc = print_json(&m, e);
	else if (a->to)
		print_moved(&m, a->to);
	else
		print_memory(&m);
	hwloc_bitmap_free(m.near);
	hwloc_bitmap_free(m.used);
	return count ? count : n;
}

static int run_here(const struct cmd *c, const struct args *a, struct err *e)
{
	struct process *p = NULL, one = { .pid = a->pid };
	hwloc_topology_t t = NULL;
	size_t n = 0;
	int rc = a->pid ? 0 : find_processes(a->job, &p, &n, e);

	if (rc == 0 && (hwloc_topology_init(&t) || hwloc_topology_load(t)))
		rc = err_set(e, "hwloc cannot discover this machine");
	set_node(&one, "");
	if (rc == 0 && !a->pid && !n)
		log_warning("no process of yours of %s is on this node", a->job);
	if (rc == 0 && a->pid)
		rank_run(c, t, a, &one, 1, &rc, e);
	for (size_t i = 0; rc == 0 && i < n;)
		i += rank_run(c, t, a, p + i, n - i, &rc, e);
	if (t)
		hwloc_topology_destroy(t);
	free(p);
	return fflush(stdout) && rc == 0 ? err_set(e, "cannot write: %s", strerror(errno)) : rc;
}

/* --- on all nodes of the job --- */

static int count_nodes(void *data, const job_info_t *job, struct err *e)
{
	if ((job->job_state & JOB_STATE_BASE) != JOB_RUNNING)
		return err_set(e, "it is not running");
	*(uint32_t *) data = job->num_nodes;
	return 0;
}

/* A step beside the job's own, one task a node, which waits for nothing. */
static int run_by_srun(const struct cmd *c, const char *name, const struct args *a, struct err *e)
{
	static const char *const counts[] = {
		"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_CPUS_PER_TASK", "SLURM_DISTRIBUTION",
		"SLURM_NNODES", "SLURM_STEP_ID", "SLURM_STEPID",
	};
	char self[PATH_MAX] = "", job[64], nodes[32], tasks[32], to[64];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	uint32_t n = 0;
	const char *const words[] = { "srun", "-Q", "--overlap", "--ntasks-per-node=1", "-c1", "--cpu-bind=none", job,
				      nodes, tasks, self, name, "--here", a->job, NULL };
	const char *argv[sizeof(words) / sizeof(words[0]) + 2], **at = argv;

	if (len < 0)
		return err_set(e, "/proc/self/exe: %s", strerror(errno));
	if (cores_job(strtoul(a->job, NULL, 10), count_nodes, &n, e))
		return -1;
	snprintf(job, sizeof(job), "--jobid=%.*s", (int) strcspn(a->job, "."), a->job);
	snprintf(nodes, sizeof(nodes), "-N%u", n);
	snprintf(tasks, sizeof(tasks), "-n%u", n);
	snprintf(to, sizeof(to), "--to=%s", a->to ? a->to : "");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		unsetenv(counts[i]);
	for (const char *const *word = words; *word; word++)
		*at++ = *word;
	if (a->to)
		*at++ = to;
	if (c->json)
		*at++ = "--json";
	*at = NULL;
	execvp("srun", (char *const *) argv);
	return err_set(e, "srun: %s", strerror(errno));
}

static int run(struct cmd *c, const char *name, const struct cmd_syntax *s, int argc, char **argv, struct err *e)
{
	struct args a = {0};

	if (cmd_parse(c, s, &a, argc, argv, e))
		return -1;
	return a.pid || a.is_here ? run_here(c, &a, e) : run_by_srun(c, name, &a, e);
}

int cmd_memory(struct cmd *c, int argc, char **argv, struct err *e)
{
	return run(c, "memory", &syntax, argc, argv, e);
}

int cmd_move(struct cmd *c, int argc, char **argv, struct err *e)
{
	return run(c, "move", &move_syntax, argc, argv, e);
}
