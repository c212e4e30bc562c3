/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "step.h"

#include <dlfcn.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/child.h"
#include "base/file.h"
#include "base/printable.h"
#include "options.h"
#include "run_dir.h"

enum {
	MAX_OUTPUT = 4096,
	END_SECONDS = 5,	/* limit for the end of a step: Slurm drains a node whose steps do not end */
};

/* A job submitted from a captured one inherits these, and recognises by them which variables to remove. */
#define PREFIX "TOPIARY_CAPTURE"
#define PRELOADED "TOPIARY_CAPTURE_PRELOAD"
#define MONITORED "OMPI_MCA_pml_monitoring_filename"

static const struct { const char *name, *value; } monitoring[] = {
	{ MONITORED, NULL },				/* the prefix */
	{ "OMPI_MCA_pml_monitoring_enable", "2" },	/* record the library's own messages separately */
	{ "OMPI_MCA_pml_monitoring_enable_output", "3" },	/* any number except 0 to 2: to files */
};

enum { MONITORING = sizeof(monitoring) / sizeof(*monitoring) };

/* Removes from LD_PRELOAD what the variable says that a job around this one, or before it, has preloaded. */
static void unset_preloaded(spank_t sp, const char *variable)
{
	char all[4 * PATH_MAX], ours[2 * PATH_MAX], *at = all;
	size_t n;

	if (!spank_getenv(sp, variable, ours, sizeof(ours)) && (n = strlen(ours)) &&
	    !spank_getenv(sp, "LD_PRELOAD", all, sizeof(all))) {
		while ((at = strstr(at, ours)) && ((at > all && at[-1] != ':') || (at[n] && at[n] != ':')))
			at++;
		if (at && at[n])
			memmove(at, at + n + 1, strlen(at + n + 1) + 1);
		else if (at)
			*(at > all ? at - 1 : at) = '\0';
		if (*all)
			spank_setenv(sp, "LD_PRELOAD", all, 1);
		else
			spank_unsetenv(sp, "LD_PRELOAD");
	}
	spank_unsetenv(sp, variable);
}

static void unset_inherited(spank_t sp)
{
	char prefix[PATH_MAX], file[PATH_MAX];

	if (spank_getenv(sp, PREFIX, prefix, sizeof(prefix)))
		return;
	if (!spank_getenv(sp, MONITORED, file, sizeof(file)) && !strcmp(file, prefix))
		for (int i = 0; i < MONITORING; i++)
			spank_unsetenv(sp, monitoring[i].name);
	unset_preloaded(sp, PRELOADED);
	spank_unsetenv(sp, PREFIX);
}

static void set_monitoring(spank_t sp, const char *prefix)
{
	for (int i = 0; i < MONITORING; i++)
		if (task_env_has(sp, monitoring[i].name))
			return;
	for (int i = 0; i < MONITORING; i++)
		spank_setenv(sp, monitoring[i].name, monitoring[i].value ? monitoring[i].value : prefix, 1);
}

/*
 * Libraries of that name, one for each MPI ABI, are installed in the parent of the plugin's directory. Separated by
 * colons.
 */
static bool find_libraries(const char *name, char *list, size_t size)
{
	char pattern[PATH_MAX + 32], *slash;
	glob_t found = {0};
	size_t n = 0;
	Dl_info self;

	if (!dladdr(&monitoring, &self) || strpbrk(self.dli_fname, ": *?[") || strlen(self.dli_fname) >= PATH_MAX)
		return false;
	strcpy(pattern, self.dli_fname);
	for (int i = 0; i < 2; i++) {
		if (!(slash = strrchr(pattern, '/')))
			return false;
		*slash = '\0';
	}
	strcat(pattern, name);
	if (glob(pattern, 0, NULL, &found))
		return false;
	for (size_t i = 0; i < found.gl_pathc && n < size; i++)
		n += snprintf(list + n, size - n, "%s%s", i ? ":" : "", found.gl_pathv[i]);
	globfree(&found);
	return n < size;
}

/* Preloads them before what the user does; the variable says which. False: there are none. */
static bool preload(spank_t sp, const char *name, const char *variable)
{
	char ours[2 * PATH_MAX], theirs[2 * PATH_MAX], all[4 * PATH_MAX + 1];

	if (!find_libraries(name, ours, sizeof(ours)))
		return false;
	if (!task_env_has(sp, "LD_PRELOAD"))
		snprintf(all, sizeof(all), "%s", ours);
	else if (!spank_getenv(sp, "LD_PRELOAD", theirs, sizeof(theirs)))
		snprintf(all, sizeof(all), "%s:%s", ours, theirs);
	else
		return true;
	spank_setenv(sp, "LD_PRELOAD", all, 1);
	spank_setenv(sp, variable, ours, 1);
	return true;
}

/* Its components, of programs and nodes that may differ, are one MPI_COMM_WORLD. */
static bool is_heterogeneous(spank_t sp)
{
	uint32_t own;
	char all[16];

	return task_env_has(sp, "SLURM_HET_SIZE") || (step.id < SLURM_MAX_NORMAL_STEP_ID &&
	       !spank_getenv(sp, "SLURM_STEP_NUM_TASKS", all, sizeof(all)) &&
	       !spank_get_item(sp, S_JOB_TOTAL_TASK_COUNT, &own) && strtoul(all, NULL, 10) != own);
}

int step_reorder(spank_t sp, int argc, char **argv)
{
	uint32_t rank = 0, local = 0;

	(void) argc, (void) argv;
	if (step.id == SLURM_EXTERN_CONT)
		return 0;
	if (task_env_has(sp, "TOPIARY_REORDER_PRELOAD")) {
		unset_preloaded(sp, "TOPIARY_REORDER_PRELOAD");
		spank_unsetenv(sp, "TOPIARY_REORDER");
	}
	if (!options.bind.reorder)
		return 0;
	/* Collectives of the library wait for ever for processes that lack it. */
	if (is_heterogeneous(sp)) {
		if (!spank_get_item(sp, S_TASK_GLOBAL_ID, &rank) && !rank)
			slurm_spank_log("topiary: step %s: --topo-reorder does nothing: the job or step is "
					"heterogeneous", step.name);
		return 0;
	}
	spank_setenv(sp, "TOPIARY_REORDER", options.bind.reorder == REORDER_REPORT ? "report" : "on", 1);
	if (step.settings.topiary_command)
		task_env_set(sp, "TOPIARY_REORDER_COMMAND", step.settings.topiary_command);
	if (step.config)
		task_env_set(sp, "TOPIARY_CONF", step.config);
	if (!preload(sp, "/libtopiary-reorder*.so", "TOPIARY_REORDER_PRELOAD") &&
	    !spank_get_item(sp, S_TASK_ID, &local) && !local)
		slurm_spank_log("topiary: step %s: --topo-reorder does nothing on %s: no libtopiary-reorder*.so in the "
				"folder above that of spank_topiary.so; MPI programs can hang if other nodes have it",
				step.name, step.node);
	return 0;
}

/* --topo-matrix=auto: the directory of records is in the folder of learned matrices, to which they are added. */
static bool learns;

/* The directory is recording.JOB in the folder of learned matrices (cli/place/learned.h). */
static void learn(spank_t sp)
{
	char folder[PATH_MAX];

	if (!options_learned_tag(options.matrix))
		return;
	learns = true;
	if (!spank_getenv(sp, "TOPIARY_MATRICES", folder, sizeof(folder)) && *folder)
		snprintf(options.capture, sizeof(options.capture), "%.3900s/recording", folder);
	else if (!spank_getenv(sp, "HOME", folder, sizeof(folder)))
		snprintf(options.capture, sizeof(options.capture), "%.3900s/.local/share/topiary/matrices/recording",
			 folder);
	else
		learns = false;
}

static void name_directory(char *out, size_t size)
{
	snprintf(out, size, "%s.%u", options.capture, step.job);
}

/* Remove the ranks' records, also those of an earlier run of a requeued job. Other files stay. */
static void remove_records(int fd)
{
	DIR *dir = run_dir_list(fd);
	struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (!strncmp(d->d_name, "rank.", 5))
			unlinkat(fd, d->d_name, 0);
	if (dir)
		closedir(dir);
}

static int make_directory(char *path, struct err *e)
{
	int fd;

	if (user_check(&step.user, e))
		return -1;
	if (*path != '/')
		return err_set(e, "%s%.200s: not an absolute path", learns ? "" : "--topo-capture=", path);
	if (learns)
		file_make_parents(path, 0700);
	if (mkdir(path, 0700) && errno != EEXIST)
		return err_set(e, "%s: %s", path, strerror(errno));
	if ((fd = user_open_directory(&step.user, path, e)) < 0)
		return -1;
	remove_records(fd);
	return 0;
}

/* A pipe from the merging process to slurmstepd. -1: nothing is captured. */
static int merge_pipe[2] = { -1, -1 };

enum { MERGE_STARTED = 's', MERGE_ENDED = 'e' };

struct merge {
	char directory[PATH_MAX];
	struct buf output;
};

/* All except synchronous faults: Slurm sends the signals that end the script to all processes of the step. */
static void block_signals(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS };
	sigset_t all;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(&all, faults[i]);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

static int merge_child(int fd, void *arg)
{
	const char *command = step.settings.topiary_command;
	const struct merge *m = arg;
	/* `topiary matrix -o` needs no settings, and the user may not be able to read topiary.conf. */
	char folder[PATH_MAX + 32], job[16];
	char *env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TOPIARY_CONF=/dev/null", folder, NULL };

	if (dup2(fd, STDERR_FILENO) < 0)
		return 127;
	if (setrlimit(RLIMIT_AS, &(struct rlimit){ STEP_MATRIX_MEMORY, STEP_MATRIX_MEMORY })) {
		dprintf(fd, "setrlimit(RLIMIT_AS): %s\n", strerror(errno));
		return 127;
	}
	close_range(STDERR_FILENO + 1, ~0U, 0);
	block_signals();
	snprintf(folder, sizeof(folder), "TOPIARY_MATRICES=%.*s",
		 (int) (strrchr(options.capture, '/') - options.capture), options.capture);
	snprintf(job, sizeof(job), "%u", step.job);
	if (learns)
		execle(command, command, "matrix", "learn", "--job", job, "--tag", options_learned_tag(options.matrix),
		       m->directory, NULL, env);
	else
		execle(command, command, "matrix", "--format=prof", "-o", options.capture, m->directory, NULL, env);
	dprintf(STDERR_FILENO, "%s: %s\n", command, strerror(errno));
	return 127;
}

static void notify_slurmstepd(char what)
{
	/* It may have given up waiting; the file is complete anyway. */
	(void) !write(merge_pipe[1], &what, 1);
}

/*
 * A process of the job that acts like a last line of its script: in the step's container, so that the job's limits
 * apply and Slurm's kill ends it, and with the user's rights. It is a copy of slurmstepd until it executes the
 * command, and cannot be traced until then.
 */
static void merge_after(int script)
{
	struct pollfd p = { .fd = script, .events = POLLIN };
	int null = open("/dev/null", O_RDWR);

	block_signals();
	prctl(PR_SET_NAME, "topiary-merge");
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || user_confine(&step.user, NULL))
		_exit(1);
	child_keep((int[]){ script, merge_pipe[1], -1 });
	notify_slurmstepd(MERGE_STARTED);
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	/* The user may have removed or replaced the directory: then there is nothing to merge. */
	struct merge m = {0};
	struct buf *w = &m.output;		/* the command's warnings, or its error */
	struct statvfs s;
	struct err e;
	int fd, rc = -1;

	name_directory(m.directory, sizeof(m.directory));
	fd = user_open_directory(&step.user, m.directory, &e);
	if (fd >= 0)
		rc = child_run(merge_child, &m, step.settings.map_timeout, MAX_OUTPUT, w, &e);
	while (w->len && w->data[w->len - 1] == '\n')
		w->data[--w->len] = '\0';
	if (rc > 0)
		err_set(&e, "%s", w->len ? w->data : "topiary matrix failed without a message");
	/*
	 * What ranks could not write is an empty or a missing record, which does not show why. A file system without a
	 * limit has 0 blocks.
	 */
	if (rc)
		err_within(&e, "job %u: %.200s was not %s%s", step.job, learns ? m.directory : options.capture,
			   learns ? "learned" : "written", fd >= 0 && !fstatvfs(fd, &s) && s.f_blocks && !s.f_bavail ?
			   ", its file system is full" : "");
	else if (m.output.len)
		err_set(&e, "job %u: %s", step.job, w->data + (strncmp(w->data, "topiary: ", 9) ? 0 : 9));
	if (rc || m.output.len)
		dprintf(STDERR_FILENO, "topiary: %s\n", printable(e.text));
	if (!rc || (learns && fd >= 0))
		remove_records(fd);
	rmdir(m.directory);
	notify_slurmstepd(MERGE_ENDED);
	_exit(0);
}

/* Forked twice, so that it is not a child of the script. */
static int start_merge(struct err *e)
{
	int script = syscall(SYS_pidfd_open, getpid(), 0), status = 1;
	pid_t pid = script < 0 ? -1 : fork();

	if (pid == 0) {
		if ((pid = fork()) == 0)
			merge_after(script);
		_exit(pid < 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (script >= 0)
		close(script);
	return status ?
	       err_set(e, "cannot start the process that merges the records: pidfd_open(2) or fork(2) failed") : 0;
}

int capture_open(spank_t sp, int argc, char **argv)
{
	(void) argc, (void) argv;
	if (step.id == SLURM_BATCH_SCRIPT && !*options.capture)
		learn(sp);
	if (step.id == SLURM_BATCH_SCRIPT && *options.capture && step.settings.topiary_command &&
	    pipe2(merge_pipe, O_CLOEXEC))
		slurm_error("topiary: job %u is not captured: %s", step.job, strerror(errno));
	return 0;
}

int capture_begin(spank_t sp, int argc, char **argv)
{
	char directory[PATH_MAX], prefix[PATH_MAX + 8];
	struct err e;

	(void) argc, (void) argv;
	if (step.id != SLURM_BATCH_SCRIPT)
		return 0;
	unset_inherited(sp);
	if (merge_pipe[1] < 0)
		return 0;
	name_directory(directory, sizeof(directory));
	if (make_directory(directory, &e) || start_merge(&e)) {
		slurm_spank_log("topiary: job %u%s: %s", step.job, learns ? ": --topo-matrix=auto learns nothing" :
				" is not captured", printable(e.text));
		return 0;
	}
	snprintf(prefix, sizeof(prefix), "%s/rank", directory);
	spank_setenv(sp, PREFIX, prefix, 1);
	/* Where no recorder looks for MPI_Comm_spawn, monitoring would crash programs that asked for nothing. */
	if (preload(sp, "/libtopiary-capture*.so", PRELOADED) || !learns)
		set_monitoring(sp, prefix);
	else
		slurm_spank_log("topiary: job %u: --topo-matrix=auto learns nothing: no libtopiary-capture*.so in the "
				"folder above that of spank_topiary.so", step.job);
	return 0;
}

static bool has_byte(const struct buf *b, char byte)
{
	return b->len && memchr(b->data, byte, b->len);
}

/*
 * The user can stop or kill the merging process, so this waits for its pipe, and for a few seconds at most; it kills
 * and reaps nothing. Slurm then kills the rest of the step.
 */
int capture_end(spank_t sp, int argc, char **argv)
{
	char directory[PATH_MAX], how[PATH_MAX + 32];
	struct buf received = {0};
	struct err e;
	int late;

	(void) sp, (void) argc, (void) argv;
	if (merge_pipe[0] < 0)
		return 0;
	close(merge_pipe[1]);
	late = child_read(merge_pipe[0], END_SECONDS, MAX_OUTPUT, &received) ? errno : 0;
	close(merge_pipe[0]);
	merge_pipe[0] = merge_pipe[1] = -1;
	name_directory(directory, sizeof(directory));
	if (learns)
		snprintf(how, sizeof(how), "learn --job=%u --tag=%s", step.job, options_learned_tag(options.matrix));
	else
		snprintf(how, sizeof(how), "--format=prof -o %.200s", options.capture);
	err_set(&e, "job %u: the process that merges its records %s; run: topiary matrix %s %.200s", step.job,
		late ? "did not end in time" : "was killed", how, directory);
	if (has_byte(&received, MERGE_STARTED) && !has_byte(&received, MERGE_ENDED))
		slurm_spank_log("topiary: %s", printable(e.text));
	buf_free(&received);
	return 0;
}
