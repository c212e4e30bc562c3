/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "capture.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <slurm/slurm.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"
#include "options.h"
#include "plain.h"
#include "step.h"
#include "user.h"

enum { MAX_WORDS = 4096 };

/* What the command may hold, which runs outside the job's own limits; 65,536 ranks with a hundred partners each take less. */
#define MAX_MEMORY ((rlim_t) 2 << 30)

/* By these a job recognises what it inherited from the one that it was submitted from. */
#define PREFIX "TOPIARY_CAPTURE"
#define PRELOADED "TOPIARY_CAPTURE_PRELOAD"
#define MONITORED "OMPI_MCA_pml_monitoring_filename"

static const struct { const char *name, *value; } monitoring[] = {
	{ MONITORED, NULL },				/* the prefix */
	{ "OMPI_MCA_pml_monitoring_enable", "2" },	/* what the library sends for itself is told apart */
	{ "OMPI_MCA_pml_monitoring_enable_output", "3" },	/* any number but 0 to 2: into files */
};

enum { MONITORING = sizeof(monitoring) / sizeof(*monitoring) };

static bool is_set(spank_t sp, const char *name)
{
	char value[8];

	return spank_getenv(sp, name, value, sizeof(value)) != ESPANK_ENV_NOEXIST;
}

static void drop_preload(spank_t sp)
{
	char all[4 * PATH_MAX], ours[2 * PATH_MAX];
	size_t n;

	if (spank_getenv(sp, PRELOADED, ours, sizeof(ours)) || spank_getenv(sp, "LD_PRELOAD", all, sizeof(all)))
		return;
	n = strlen(ours);
	if (strncmp(all, ours, n))
		return;
	if (all[n] == ':')
		spank_setenv(sp, "LD_PRELOAD", all + n + 1, 1);
	else if (!all[n])
		spank_unsetenv(sp, "LD_PRELOAD");
}

static void drop_inherited(spank_t sp)
{
	char prefix[PATH_MAX], file[PATH_MAX];

	if (spank_getenv(sp, PREFIX, prefix, sizeof(prefix)))
		return;
	if (!spank_getenv(sp, MONITORED, file, sizeof(file)) && !strcmp(file, prefix))
		for (int i = 0; i < MONITORING; i++)
			spank_unsetenv(sp, monitoring[i].name);
	drop_preload(sp);
	spank_unsetenv(sp, PREFIX);
	spank_unsetenv(sp, PRELOADED);
}

static void set_monitoring(spank_t sp, const char *prefix)
{
	for (int i = 0; i < MONITORING; i++)
		if (is_set(sp, monitoring[i].name))
			return;
	for (int i = 0; i < MONITORING; i++)
		spank_setenv(sp, monitoring[i].name, monitoring[i].value ? monitoring[i].value : prefix, 1);
}

/* The recorders, one for each kind of MPI that the site has, lie above the folder of the plugin. Colons between them. */
static bool find_recorders(char *list, size_t size)
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
	strcat(pattern, "/libtopiary-capture*.so");
	if (glob(pattern, 0, NULL, &found))
		return false;
	for (size_t i = 0; i < found.gl_pathc && n < size; i++)
		n += snprintf(list + n, size - n, "%s%s", i ? ":" : "", found.gl_pathv[i]);
	globfree(&found);
	return n < size;
}

static void set_recorders(spank_t sp)
{
	char ours[2 * PATH_MAX], theirs[2 * PATH_MAX], all[4 * PATH_MAX + 1];

	if (!find_recorders(ours, sizeof(ours)))
		return;
	if (!is_set(sp, "LD_PRELOAD"))
		snprintf(all, sizeof(all), "%s", ours);
	else if (!spank_getenv(sp, "LD_PRELOAD", theirs, sizeof(theirs)))
		snprintf(all, sizeof(all), "%s:%s", ours, theirs);
	else
		return;
	spank_setenv(sp, "LD_PRELOAD", all, 1);
	spank_setenv(sp, PRELOADED, ours, 1);
}

static void name_folder(char *out, size_t size)
{
	snprintf(out, size, "%s.%u", options.capture, step.job);
}

static bool is_told_by_rank(const char *name)
{
	return !strncmp(name, "rank.", 5);
}

/* What ranks told, of a former run of this job, too; the folder stays while anything else is in it. */
static void empty_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (is_told_by_rank(d->d_name))
			unlinkat(fd, d->d_name, 0);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

static bool is_own_folder(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && !access(path, W_OK | X_OK);
}

static int make_folder(const char *path, struct err *e)
{
	if (user_check(&step.user, e))
		return -1;
	if (*path != '/')
		return err_set(e, "--topo-capture=%.200s: not an absolute path", path);
	if (mkdir(path, 0700) && errno != EEXIST)
		return err_set(e, "%s: %s", path, strerror(errno));
	if (!is_own_folder(path))
		return err_set(e, "%s: not a folder of the user's", path);
	empty_folder(path);
	return 0;
}

int capture_begin(spank_t sp, int argc, char **argv)
{
	char folder[PATH_MAX], prefix[PATH_MAX + 8];
	struct err e;

	(void) argc, (void) argv;
	if (step.id != SLURM_BATCH_SCRIPT)
		return 0;
	drop_inherited(sp);
	if (!*options.capture)
		return 0;
	name_folder(folder, sizeof(folder));
	if (make_folder(folder, &e)) {
		slurm_spank_log("topiary: job %u is not captured: %s", step.job, plain(e.text));
		return 0;
	}
	snprintf(prefix, sizeof(prefix), "%s/rank", folder);
	spank_setenv(sp, PREFIX, prefix, 1);
	set_monitoring(sp, prefix);
	set_recorders(sp);
	return 0;
}

struct gather {
	struct user user;
	char folder[PATH_MAX];
	bool done;
};

static void exec_gather(const struct gather *g)
{
	const char *command = step.settings.topiary_command;
	/* Nothing that is configured matters here, and the user may not be able to read it. */
	char *env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TOPIARY_CONF=/nonexistent", NULL };

	execle(command, command, "matrix", "-o", options.capture, g->folder, NULL, env);
	dprintf(STDERR_FILENO, "%s: %s\n", command, strerror(errno));
}

/* A job that was not captured has been told so: there is no folder, or one that is not the user's. */
static int gather_child(int fd, void *arg)
{
	const struct gather *g = arg;
	int null = open("/dev/null", O_RDWR);
	struct err e;

	if (user_become(&g->user, &e)) {
		dprintf(fd, "%s\n", e.text);
		return 127;
	}
	if (!is_own_folder(g->folder))
		return 0;
	if (null < 0 || dup2(fd, STDERR_FILENO) < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return 127;
	if (setrlimit(RLIMIT_AS, &(struct rlimit){ MAX_MEMORY, MAX_MEMORY })) {
		dprintf(fd, "%s\n", strerror(errno));
		return 127;
	}
	close_range(STDERR_FILENO + 1, ~0U, 0);
	exec_gather(g);
	return 127;
}

static int remove_child(int fd, void *arg)
{
	const struct gather *g = arg;

	(void) fd;
	if (user_become(&g->user, NULL))
		return 127;
	if (g->done)
		empty_folder(g->folder);
	rmdir(g->folder);
	return 0;
}

static int user_of(spank_t sp, struct user *u, struct err *e)
{
	if (spank_get_item(sp, S_JOB_UID, &u->uid) || spank_get_item(sp, S_JOB_GID, &u->gid) ||
	    spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &u->groups, &u->ngroups))
		return err_set(e, "Slurm does not say who the job's user is");
	return 0;
}

/* What the command said, in words; or, as an error, that it ended badly. */
static int gather(struct gather *g, struct buf *words, struct err *e)
{
	int rc = child_run(gather_child, g, step.settings.map_timeout, MAX_WORDS, words, e);

	while (words->len && words->data[words->len - 1] == '\n')
		words->data[--words->len] = '\0';
	if (rc > 0)
		err_set(e, "%s", words->len ? words->data : "topiary matrix failed");
	return rc ? -1 : 0;
}

int capture_end(spank_t sp, int argc, char **argv)
{
	struct gather g = {0};
	struct buf words = {0};
	struct err e;
	bool known;

	(void) argc, (void) argv;
	if (step.id != SLURM_BATCH_SCRIPT || !*options.capture || !step.settings.topiary_command)
		return 0;
	name_folder(g.folder, sizeof(g.folder));
	known = !user_of(sp, &g.user, &e);
	g.done = known && !gather(&g, &words, &e);
	if (!g.done)
		err_within(&e, "job %u has no %.200s", step.job, options.capture);
	else if (words.len)
		err_set(&e, "job %u: %s", step.job, words.data);
	if (!g.done || words.len)
		slurm_spank_log("topiary: %s", plain(e.text));
	buf_free(&words);
	if (known)
		child_run(remove_child, &g, step.settings.map_timeout, MAX_WORDS, &words, NULL);
	buf_free(&words);
	return 0;
}
