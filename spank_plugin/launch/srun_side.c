/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "launch.h"

#include <jansson.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/child.h"
#include "base/file.h"
#include "base/printable.h"
#include "options.h"
#include "step/step.h"

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

/* A path in the directory of this job only: an salloc(1) in a batch script inherits those of the surrounding job. */
static const char *path_of_job(const char *variable)
{
	const char *path = getenv(variable), *job = getenv("SLURM_JOB_ID");
	char folder[64];

	if (!path || !job)
		return NULL;
	snprintf(folder, sizeof(folder), "/%s.batch/", job);
	return strstr(path, folder) ? path : NULL;
}

/* hosts: of the map, or NULL: it is to be made for as many ranks as the job has tasks. */
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

	if (!hosts && getenv(counts[0]))
		ranks = strtoul(getenv(counts[0]), NULL, 10);
	else if (!hosts || file_read(hosts, MAX_HOSTS, &text, e))
		return hosts ? -1 : err_set(e, "SLURM_NTASKS is not set");
	for (size_t i = 0; i < text.len; i++)
		ranks += text.data[i] == '\n';
	buf_free(&text);
	if (!ranks)
		return err_set(e, "%s: no hosts", hosts ? hosts : counts[0]);
	for (size_t i = 0; i < COUNT(counts); i++) {
		const char *value = getenv(counts[i]);

		if (value && strtoul(value, NULL, 10) != ranks)
			return err_set(e, "%s=%.20s, but the rank map has %lu rank%s", counts[i], value, ranks,
				       ranks == 1 ? "" : "s");
		counted |= value != NULL;
	}
	return counted ? 0 : err_set(e, "SLURM_NTASKS is not set");
}

/* --- learned matrices --- */

static struct {
	char text[512];				/* for the user, or "" */
	bool placed;
	char hosts[PATH_MAX], env[PATH_MAX];	/* files */
} learned;

static int learned_child(int fd, void *program)
{
	int null = open("/dev/null", O_RDWR);

	if (setrlimit(RLIMIT_AS, &(struct rlimit){ STEP_MATRIX_MEMORY, STEP_MATRIX_MEMORY }) || null < 0 ||
	    dup2(null, STDIN_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
		return 127;
	close_range(STDERR_FILENO + 1, ~0U, 0);
	unsetenv("LD_PRELOAD");
	if (step.config)
		setenv("TOPIARY_CONF", step.config, 1);
	execl(step.settings.topiary_command, "topiary", "map", "--job", getenv("SLURM_JOB_ID"), "--learned", program,
	      "--ranks", getenv(counts[0]), "--tag", getenv("TOPIARY_LEARN_TAG") ?: "", "--format", "srun", "-o",
	      learned.hosts, "--env", learned.env, NULL);
	return 127;
}

/* What capture_begin has set; the user's own stays. */
static void stop_recording(void)
{
	const char *prefix = getenv("TOPIARY_CAPTURE"), *monitored = getenv("OMPI_MCA_pml_monitoring_filename");
	const char *ours = getenv("TOPIARY_CAPTURE_PRELOAD"), *all = getenv("LD_PRELOAD");

	if (prefix && monitored && !strcmp(prefix, monitored)) {
		unsetenv("OMPI_MCA_pml_monitoring_filename");
		unsetenv("OMPI_MCA_pml_monitoring_enable");
		unsetenv("OMPI_MCA_pml_monitoring_enable_output");
	}
	if (ours && all && !strncmp(all, ours, strlen(ours)) && all[strlen(ours)] == ':')
		setenv("LD_PRELOAD", all + strlen(ours) + 1, 1);
	else if (ours && all && !strcmp(all, ours))
		unsetenv("LD_PRELOAD");
	unsetenv("TOPIARY_CAPTURE");
}

static void place_learned(const char *folder, const char *program)
{
	struct buf answer = {0}, text = {0};
	json_t *verdict = NULL;
	char *save = NULL, *value;
	struct err e;
	int rc;

	snprintf(learned.hosts, sizeof(learned.hosts), "%s/learned.%d", folder, getpid());
	snprintf(learned.env, sizeof(learned.env), "%s/learned.%d.env", folder, getpid());
	rc = child_run(learned_child, (void *) program, step.settings.map_timeout, 4096, &answer, &e);
	if (!rc && answer.data)
		verdict = json_loads(answer.data, 0, NULL);
	if (!verdict)
		err_set(&e, "%s map gave no answer", step.settings.topiary_command);
	snprintf(learned.text, sizeof(learned.text), "%s", verdict ?
		 json_string_value(json_object_get(verdict, "text")) ?: "" : e.text);
	if (json_is_true(json_object_get(verdict, "settled")))
		stop_recording();
	if (json_is_true(json_object_get(verdict, "placed")) && !file_read(learned.env, 1 << 20, &text, &e)) {
		for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
			if ((value = strchr(line, '='))) {
				*value++ = '\0';
				setenv(line, value, 1);
			}
		learned.placed = !setenv("SLURM_HOSTFILE", learned.hosts, 1);
	}
	json_decref(verdict);
	buf_free(&answer);
	buf_free(&text);
}

int srun_report_learned(spank_t, int, char **)
{
	if (learned.placed)
		slurm_spank_log("topiary: %s", printable(learned.text));
	else if (*learned.text)
		slurm_verbose("topiary: %s", printable(learned.text));
	/* srun has read it. */
	if (*learned.hosts) {
		unlink(learned.hosts);
		unlink(learned.env);
	}
	return 0;
}

int srun_follow_map(spank_t, int argc, char **argv)
{
	const char *hosts = path_of_job("TOPIARY_HOSTFILE"), *given = getenv("SLURM_HOSTFILE");
	const char *folder = path_of_job("TOPIARY_LEARN");
	bool launches = false;
	struct buf text = {0};
	char **line = NULL;
	struct err e = {"/proc/self/cmdline cannot be read"};
	int n = 0, command = 0;

	if ((!hosts && !folder) || (given && hosts && !strcmp(given, hosts)))
		return 0;
	if (!file_read("/proc/self/cmdline", MAX_LINE, &text, NULL))
		line = malloc((text.len + 2) * sizeof(*line));
	for (size_t at = 0; line && at < text.len; at += strlen(text.data + at) + 1) {
		line[n++] = text.data + at;
		line[n] = NULL;
		launches |= n > 1 && launchers_known(line[n - 1]);
	}
	if (n && !check_environment(hosts, &e) &&
	    !srun_check_options(n, line, options_names(), &command, &e)) {
		if (hosts)
			setenv("SLURM_HOSTFILE", hosts, 1);
		else if (!launches && command < n && !step_configure(argc, argv, NULL))
			place_learned(folder, line[command]);
	} else if (!hosts)
		snprintf(learned.text, sizeof(learned.text), "ranks stay where Slurm places them: %.440s",
			 e.text);
	else if (!launches)
		slurm_spank_log("topiary: srun does not follow the job's rank map: %s", printable(e.text));
	free(line);
	buf_free(&text);
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

int srun_warn_launcher(spank_t sp, int, char **)
{
	struct buf list = {0}, line = {0};
	char **words = NULL;
	const char *daemon;
	int n = 0, fd;
	bool order;

	if (spank_get_item(sp, S_JOB_ARGV, &n, &words) || n < 1 || !(daemon = launchers_daemon(words[0])))
		return 0;
	if (!launchers_place(daemon))
		options_list_per_task(&list);
	/* Open MPI 4 reads the order from its environment; other launchers have numbered the ranks by then. */
	if ((order = !strcmp(options.order, "fabric") && getenv("TOPIARY_HOSTFILE") && strcmp(daemon, "orted")))
		buf_printf(&list, "%s--topo-order", list.len ? ", " : "");
	if (list.len)
		buf_printf(&line, "topiary: not applied to the ranks that %s starts: %s; to apply them use srun%s\n",
			   daemon, list.data, order ? "" : ", or mpirun ... topiary bind PROGRAM");
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
