/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "step.h"

#include <jansson.h>
#include <link.h>
#include <slurm/slurm.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/printable.h"
#include "monitor/ask.h"
#include "monitor/events.h"
#include "options.h"
#include "run_dir.h"

struct gres {
	bool gpu, shares;	/* its plugins in this process */
};

static bool is_plugin(const char *path, const char *name)
{
	const char *base = strrchr(path, '/');

	return base && !strcmp(base + 1, name);
}

static int plugin_see(struct dl_phdr_info *info, size_t size, void *user)
{
	struct gres *g = user;

	(void) size;
	g->gpu |= is_plugin(info->dlpi_name, "gres_gpu.so");
	g->shares |= is_plugin(info->dlpi_name, "gres_shard.so") || is_plugin(info->dlpi_name, "gres_mps.so");
	return 0;
}

/*
 * In slurmstepd, as root, before the tasks: the GPUs that Slurm has granted the step on this node, by its numbers
 * ("0,2"), "" if there are none or it is not certain whose they are. The environment is the user's, but Slurm has
 * replaced or removed its own variables in it before plugins are called (gres_g_step_set_env, Slurm,
 * src/slurmd/slurmstepd/slurmstepd.c), if its plugin gres/gpu is loaded; what a user wrote there is not believed
 * otherwise. The variable of a job is for its script and for salloc's shell. A GPU that is shared may be of other
 * users, too.
 */
static void granted_gpus(spank_t sp, char *out, size_t size)
{
	bool is_job = step.id == SLURM_BATCH_SCRIPT || step.id == SLURM_INTERACTIVE_STEP;
	struct gres loaded = {0};

	dl_iterate_phdr(plugin_see, &loaded);
	*out = '\0';
	if (!loaded.gpu || loaded.shares ||
	    spank_getenv(sp, is_job ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS", out, size) ||
	    strspn(out, "0123456789,") != strlen(out))
		*out = '\0';
}

/* --- where the tasks were --- */

enum { MAX_TASKS = 65536, LINE = 2048 };

static struct {
	char (*text)[LINE];	/* zero until its task writes it */
	unsigned n;
} lines;

bool task_lines_are_open(void)
{
	return lines.text;
}

void task_lines_set(unsigned local, const char *line)
{
	if (local < lines.n && strlen(line) < LINE)
		strcpy(lines.text[local], line);
}

/* --- advice after a recorded step --- */

#define CHILD_SECONDS 10	/* of a command, or a copy: Slurm drains a node whose steps do not end */
#define MAX_ADVICE 4096

/* A site's default is not worth a line in each job's output. */
static void report_error(struct err *e)
{
	if (options_set_by_user("topo-monitor"))
		slurm_spank_log("topiary: %s", printable(e->text));
	else
		slurm_debug("topiary: %s", printable(e->text));
}

struct advice {
	const char *folder;
	bool is_root;		/* become step.user first */
};

static int advice_child(int fd, void *arg)
{
	const struct advice *a = arg;
	const char *argv[7] = { "topiary", "advise", "--brief", a->folder };
	char slurm[PATH_MAX + 16], topiary[PATH_MAX + 16];
	char *env[5] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8" };
	int null = open("/dev/null", O_RDWR), vars = 2;

	if (a->is_root && (user_become(&step.user) || user_confine(&step.user, NULL))) {
		dprintf(fd, "dropping root's rights: %s", strerror(errno));
		return 1;
	}
	if (step.config) {
		argv[4] = "--config";
		argv[5] = step.config;
	}
	if (getenv("SLURM_CONF") && snprintf(slurm, sizeof(slurm), "SLURM_CONF=%s", getenv("SLURM_CONF")) > 0)
		env[vars++] = slurm;
	if (getenv("TOPIARY_CONF") && snprintf(topiary, sizeof(topiary), "TOPIARY_CONF=%s", getenv("TOPIARY_CONF")) > 0)
		env[vars++] = topiary;
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		return 1;
	close_range(STDERR_FILENO + 1, ~0U, 0);
	execve(step.settings.topiary_command, (char **) argv, env);
	dprintf(STDOUT_FILENO, "%s: %s", step.settings.topiary_command, strerror(errno));
	return 1;
}

/* name: of the step; folder: its own, where its files have been written. */
static void advise(const char *name, const char *folder, const struct monitor_request *r, bool is_root)
{
	struct advice a = { folder, is_root };
	struct buf out = {0};
	struct err e;
	int rc;

	if (!r->advise)
		return;
	rc = child_run(advice_child, &a, CHILD_SECONDS, MAX_ADVICE, &out, &e);
	while (out.len && out.data[out.len - 1] == '\n')
		out.data[--out.len] = '\0';
	if (rc > 0)
		err_set(&e, "%s", out.len ? out.data : "topiary failed without a message");
	if (rc) {
		err_within(&e, "step %s: no advice", name);
		report_error(&e);
	} else if (out.len) {
		slurm_spank_log("topiary: %s", printable(out.data));
	}
	buf_free(&out);
}

enum { MAX_COMPONENTS = 128 };	/* MAX_HET_JOB_COMPS of Slurm */

static uint32_t srun_job, srun_id = NO_VAL;

/* Of a step with several components, the job of any one: srun calls this once. */
int step_end_note(spank_t sp, int argc, char **argv)
{
	(void) argc, (void) argv;
	if (spank_get_item(sp, S_JOB_ID, &srun_job) || spank_get_item(sp, S_JOB_STEPID, &srun_id))
		srun_id = NO_VAL;
	return 0;
}

static void component_end(unsigned long job, const struct monitor_request *r)
{
	char name[32], folder[PATH_MAX];

	snprintf(name, sizeof(name), "%lu.%u", job, srun_id);
	snprintf(folder, sizeof(folder), "%s/topiary-%s", getenv("SLURM_SUBMIT_DIR"), name);
	/* Where nothing was recorded, the nodes have said why; or the component has no part in the step. */
	if (!access(folder, F_OK))
		advise(name, folder, r, false);
}

/*
 * Each component of a heterogeneous job is a job with a folder of its own; no two of its steps have one number. Slurm
 * names them by HET_GROUP, too, but not where srun itself made the allocation.
 */
int step_end_srun(spank_t sp, int argc, char **argv)
{
	struct monitor_request r = options.monitor;
	char variable[48];

	(void) sp;
	if (srun_id == NO_VAL || !getenv("SLURM_SUBMIT_DIR") || step_configure(argc, argv, NULL))
		return 0;
	if (!options_set_by_user("topo-monitor") &&
	    monitor_request_parse("TopoMonitor", step.settings.topo_monitor, &r, NULL))
		return 0;
	if (!r.hz)
		return 0;
	component_end(srun_job, &r);
	for (unsigned i = 0; i < MAX_COMPONENTS; i++) {
		const char *job;

		snprintf(variable, sizeof(variable), "SLURM_JOB_ID_PACK_GROUP_%u", i);
		if (!(job = getenv(variable)))
			break;
		if (strtoul(job, NULL, 10) != srun_job)
			component_end(strtoul(job, NULL, 10), &r);
	}
	return 0;
}

/* --- before the tasks --- */

#define DONE_SECONDS 1.0	/* for topiary-monitor to complete the trace */
#define FIRST_NS 100000		/* the pauses meanwhile double, as it mostly answers at once */
#define LAST_NS 2000000
#define MAX_OUTPUT 512

static struct {
	bool is_asked;			/* ASK_FILE is there, and asks for a trace */
	uint32_t tasks, ended;		/* of the step on this node */
	uint32_t nodes;			/* of the step */
	char cores[4096];		/* of the step on this node, as Slurm lists them */
	char folder[PATH_MAX];		/* where the trace goes: the user's word */
} monitor;

static int ask_link(spank_t sp, struct err *e)
{
	struct monitor_ask ask = { .uid = step.user.uid, .request = options.monitor };
	struct buf text = {0};
	int fd = run_dir_file(step.dir, e), rc = -1;

	if (fd < 0)
		return -1;
	if (monitor_set_has(ask.request.set, "gpu"))
		granted_gpus(sp, ask.gpus, sizeof(ask.gpus));
	monitor_ask_write(&ask, &text);
	if (text.failed || file_write(fd, text.data, text.len))
		err_set(e, ASK_FILE ": %s", strerror(errno));
	else
		rc = run_dir_link(fd, step.dir, ASK_FILE, e);
	buf_free(&text);
	close(fd);
	return rc;
}

/* topiary-JOB.STEP in the directory the job was submitted from. False if Slurm does not tell it. */
static bool folder_name(spank_t sp)
{
	char from[PATH_MAX - 64];

	if (spank_getenv(sp, "SLURM_SUBMIT_DIR", from, sizeof(from)) || *from != '/')
		return false;
	snprintf(monitor.folder, sizeof(monitor.folder), "%s/topiary-%s", from, step.name);
	return true;
}

static void report_unrecorded(const char *why)
{
	struct err e;

	err_set(&e, "step %s is not recorded on %s: %s", step.name, step.node, why);
	report_error(&e);
}

/* Only tasks that srun starts itself are known. Without memory they leave no lines. */
static void tasks_open(spank_t sp)
{
	const char *cores = step_cores(sp);
	uint32_t n;

	if (step.id >= SLURM_MAX_NORMAL_STEP_ID || step.launcher)
		return;
	if (cores)
		snprintf(monitor.cores, sizeof(monitor.cores), "%s", cores);
	if (spank_get_item(sp, S_JOB_NNODES, &monitor.nodes))
		monitor.nodes = 1;
	if ((lines.text = step_share(sp, 0, LINE, MAX_TASKS, &n)))
		lines.n = n;
}

/* Every step leaves whose it is: of a PU that two users have, topiary-monitor records nothing. */
int monitor_open(spank_t sp, int argc, char **argv)
{
	char path[PATH_MAX + sizeof(step.node) + 16];
	struct err e;

	(void) argc, (void) argv;
	if (step.dir < 0 || (!step.is_local && !options.monitor.hz))
		return 0;
	spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &monitor.tasks);
	if (!step.is_local) {
		report_unrecorded("its topology describes other hardware than this machine's");
	} else if (options.monitor.hz && !folder_name(sp)) {
		report_unrecorded("Slurm does not tell the directory that the job was submitted from");
	} else if (ask_link(sp, &e)) {
		report_unrecorded(e.text);
	} else if ((monitor.is_asked = options.monitor.hz)) {
		/* Beside the trace to come. A program with libtopiary_phase creates folder and file, as the user. */
		snprintf(path, sizeof(path), "%s/%s.phases", monitor.folder, step.node);
		task_env_set(sp, "TOPIARY_PHASES", path);
		tasks_open(sp);
	}
	return 0;
}

/* --- after the last task --- */

static int open_file(const char *name)
{
	return openat(step.dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

/* The trace, complete if topiary-monitor answers in time. -1: none was begun. */
static int trace_open_ended(void)
{
	double until = clock_now() + DONE_SECONDS;
	long pause = FIRST_NS;
	int fd = -1;

	unlinkat(step.dir, ASK_FILE, 0);
	while ((fd = open_file(ASK_DONE)) < 0 && !faccessat(step.dir, ASK_TRACE, F_OK, AT_SYMLINK_NOFOLLOW) &&
	       clock_now() < until) {
		nanosleep(&(struct timespec){ 0, pause }, NULL);
		pause = pause < LAST_NS / 2 ? 2 * pause : LAST_NS;
	}
	/* topiary-monitor may rename it just now: in this order one of them is found. */
	if (fd < 0 && (fd = open_file(ASK_TRACE)) < 0)
		fd = open_file(ASK_DONE);
	return fd;
}

static int fail(int fd, const char *what)
{
	dprintf(fd, "%s: %s", what, strerror(errno));
	return 1;
}

/* NODE and what it ends in: no link is followed, and no pipe waited for. */
static int file_create(int folder, const char *end, char *name, size_t size)
{
	snprintf(name, size, "%s%s", step.node, end);
	return openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
}

/* What fits on a full disk stays, but no empty file. */
static int fail_file(int fd, int folder, const char *name, int to)
{
	fail(fd, name);
	if (to >= 0 && lseek(to, 0, SEEK_CUR) == 0)
		unlinkat(folder, name, 0);
	return 1;
}

static int trace_write(int fd, int folder, int from)
{
	char name[sizeof(step.node) + 8];
	int to = file_create(folder, ".trace", name, sizeof(name));
	ssize_t n = to < 0 ? -1 : 1;

	while (n > 0)
		n = sendfile(to, from, NULL, 1 << 20);
	return n < 0 || close(to) ? fail_file(fd, folder, name, to) : 0;
}

static int tasks_write(int fd, int folder)
{
	json_t *head = json_pack("{s:i, s:s, s:s, s:I, s:s, s:s*}", "tasks", 1, "step", step.name, "node", step.node,
				 "nodes", (json_int_t) monitor.nodes, "cores", monitor.cores, "capture",
				 *options.capture ? options.capture : NULL);
	char *first = head ? json_dumps(head, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	char name[sizeof(step.node) + 8];
	struct buf text = {0};
	int to, rc = 0;

	if (first)
		buf_printf(&text, "%s\n", first);
	for (unsigned i = 0; first && i < lines.n; i++)
		if (*lines.text[i])
			buf_printf(&text, "%.*s\n", LINE - 1, lines.text[i]);
	free(first);
	json_decref(head);
	if (text.len && !text.failed)
		rc = (to = file_create(folder, ".tasks", name, sizeof(name))) < 0 ||
			file_write(to, text.data, text.len) || close(to) ? fail_file(fd, folder, name, to) : 0;
	buf_free(&text);
	return rc;
}

/* As the user, who may have made the path lead anywhere. */
static int copy_child(int fd, void *arg)
{
	int from = *(int *) arg, folder;
	struct err e;

	if (user_become(&step.user) || user_confine(&step.user, NULL))
		return fail(fd, "dropping root's rights");
	child_keep((int[]){ fd, from, -1 });
	if (mkdir(monitor.folder, 0755) && errno != EEXIST)
		return fail(fd, monitor.folder);
	if ((folder = user_open_directory(&step.user, monitor.folder, &e)) < 0) {
		dprintf(fd, "%s", e.text);
		return 1;
	}
	if (from >= 0 && trace_write(fd, folder, from))
		return 1;
	return task_lines_are_open() ? tasks_write(fd, folder) : 0;
}

int monitor_close(spank_t sp, int argc, char **argv)
{
	int fd;

	(void) sp, (void) argc, (void) argv;
	if (!monitor.is_asked || step.owner != getpid())
		return 0;
	monitor.is_asked = false;
	if ((fd = trace_open_ended()) < 0)
		report_unrecorded("topiary-monitor did not begin a trace; does it run there?");
	/* Where nobody asked, and nothing was recorded, a folder would be a surprise. */
	if (fd >= 0 || options_set_by_user("topo-monitor")) {
		struct buf said = {0};
		struct err e;
		int rc = child_run(copy_child, &fd, CHILD_SECONDS, MAX_OUTPUT, &said, &e);

		if (rc > 0)
			err_set(&e, "%s", said.len ? said.data : "the copying process failed without a message");
		if (rc)
			slurm_spank_log("topiary: step %s: the trace of %s was not written to %s: %s", step.name,
					step.node, printable(monitor.folder), printable(e.text));
		buf_free(&said);
	}
	/* A script that ran steps by srun: they had theirs, and its own trace is of the same cores. */
	if (fd >= 0 && step.id == SLURM_BATCH_SCRIPT &&
	    faccessat(step.dir, STEP_SRUN_MARK, F_OK, AT_SYMLINK_NOFOLLOW))
		advise(step.name, monitor.folder, &options.monitor, true);
	if (fd >= 0)
		close(fd);
	return 0;
}

int monitor_task_exit(spank_t sp, int argc, char **argv)
{
	return ++monitor.ended == monitor.tasks ? monitor_close(sp, argc, argv) : 0;
}
