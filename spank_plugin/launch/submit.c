/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "launch.h"

#include <sys/stat.h>

#include "base/child.h"
#include "options.h"
#include "score/request.h"
#include "step/step.h"

#define COUNT_SECONDS 10

static int plugin_argc;
static char **plugin_argv;
static unsigned matrix_ranks;		/* 0: not known */

/* Runs as the user who submits. */
static int count_child(int fd, void *path)
{
	int null = open("/dev/null", O_RDWR);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		return 127;
	execl(step.settings.topiary_command, "topiary", "matrix", "--json", path, NULL);
	return 127;
}

/*
 * Reads the matrix: a file that is none is refused, and job_submit/topiary refuses a job of more tasks than it has
 * ranks. What cannot be read on this host or within the time limit is checked when the job starts.
 */
static int count_ranks(const char *value, char *path, struct err *e)
{
	static const char key[] = "\"ranks\":", name[] = "topiary: matrix: ";
	struct buf answer = {0};
	const char *at = NULL;
	int rc = step_configure(plugin_argc, plugin_argv, NULL) ? -1 :
		 child_run(count_child, path, COUNT_SECONDS, 65536, &answer, NULL);

	if (!rc && answer.data && (at = strstr(answer.data, key)))
		matrix_ranks = strtoul(at + strlen(key), NULL, 10);
	if (rc == EXIT_FAILURE && answer.data && !strncmp(answer.data, name, strlen(name)))
		rc = err_set(e, "--topo-matrix=%s: not a communication matrix: %.*s", value,
			     (int) strcspn(answer.data + strlen(name), "\n"), answer.data + strlen(name));
	else
		rc = 0;
	buf_free(&answer);
	return rc;
}

/* A keyword is in any case, and stored in lower case; a tag behind it is the user's. */
static int copy_keyword(const char *name, const char *value, char *out, size_t size, struct err *e)
{
	int rc = options_copy_path(name, value, out, size, e);

	for (char *c = out; !rc && *c && *c != ':'; c++)
		*c = tolower((unsigned char) *c);
	return rc;
}

static int resolve_matrix(const char *value, char *out, size_t size, struct err *e)
{
	const char *tag = options_learned_tag(value), *end = tag;
	char path[PATH_MAX];
	struct stat st;

	matrix_ranks = 0;
	for (const char *at = tag; at && *at && (isalnum((unsigned char) *at) || *at == '_'); at++)
		end = at + 1;
	if (tag && (*end || end - tag > 32 || (!*tag && value[4])))
		return err_set(e, "--topo-matrix=%.60s: a tag has 1 to 32 letters, digits and underscores", value);
	if (tag || !strcasecmp(value, "off"))
		return copy_keyword("topo-matrix", value, out, size, e);
	if (!realpath(value, path) || stat(path, &st))
		return err_set(e, "--topo-matrix=%s: %s%s", value, strerror(errno), strchr(value, '/') ? "" :
			       "; expected a file, auto[:TAG] or off");
	if (!S_ISREG(st.st_mode))
		return err_set(e, "--topo-matrix=%s: not a regular file", value);
	if (access(path, R_OK))
		return err_set(e, "--topo-matrix=%s: %s", value, strerror(errno));
	if (strlen(path) >= size)
		return err_set(e, "--topo-matrix=%s: %s", value, strerror(ENAMETOOLONG));
	if (count_ranks(value, path, e))
		return -1;
	memcpy(out, path, strlen(path) + 1);
	return 0;
}

static int resolve_order(const char *value, char *out, size_t size, struct err *e)
{
	if (strcasecmp(value, "fabric") && strcasecmp(value, "off"))
		return err_set(e, "--topo-order=%.60s: expected off or fabric", value);
	return copy_keyword("topo-order", value, out, size, e);
}

static int check_target(const char *path, const char *directory)
{
	struct stat st;

	if (access(directory, W_OK | X_OK))
		return -1;
	if (stat(path, &st))
		return errno == ENOENT ? 0 : -1;
	errno = EISDIR;
	return S_ISREG(st.st_mode) ? 0 : -1;
}

static int resolve_capture(const char *value, char *out, size_t size, struct err *e)
{
	char parent[PATH_MAX], directory[PATH_MAX], path[2 * PATH_MAX];
	const char *last = strrchr(value, '/');

	last = last ? last + 1 : value;
	if (!*last || !strcmp(last, ".") || !strcmp(last, ".."))
		return err_set(e, "--topo-capture=%.200s: not a file name", value);
	if (snprintf(parent, sizeof(parent), "%.*s.", (int) (last - value), value) >= (int) sizeof(parent))
		return err_set(e, "--topo-capture=%.200s: %s", value, strerror(ENAMETOOLONG));
	if (!realpath(parent, directory))
		return err_set(e, "--topo-capture=%.200s: %s", value, strerror(errno));
	snprintf(path, sizeof(path), "%s/%s", strcmp(directory, "/") ? directory : "", last);
	if (check_target(path, directory))
		return err_set(e, "--topo-capture=%.200s: %s", value, strerror(errno));
	if (strlen(path) >= size)
		return err_set(e, "--topo-capture=%.200s: %s", value, strerror(ENAMETOOLONG));
	memcpy(out, path, strlen(path) + 1);
	return 0;
}

/*
 * A batch job carries its options as environment variables of these names (Slurm, src/common/plugstack.c,
 * _opt_env_name), as the user typed them; a relative path would name another file where the job runs.
 */
static const struct { const char *env, *option, *value; } carried[] = {
	{ "_SLURM_SPANK_OPTION_topiary_topo_matrix", "topo-matrix", options.matrix },
	{ "_SLURM_SPANK_OPTION_topiary_topo_order", "topo-order", options.order },
	{ "_SLURM_SPANK_OPTION_topiary_topo_capture", "topo-capture", options.capture },
};

/* sbatch and salloc have the same context. */
static bool is_sbatch(void)
{
	return spank_context() == S_CTX_ALLOCATOR && strcmp(program_invocation_short_name, "salloc");
}

static bool is_inherited(const char *option, const char *value)
{
	char name[sizeof("SLURM_SPANK_") + 64];
	const char *inherited;

	if (is_sbatch() || !getenv("SLURM_JOB_ID"))
		return false;
	for (size_t i = 0; i < sizeof(carried) / sizeof(*carried); i++) {
		snprintf(name, sizeof(name), "SLURM_SPANK_%s", carried[i].env);
		inherited = getenv(name);
		if (!strcmp(option, carried[i].option) && inherited && !strcmp(inherited, value))
			return true;
	}
	return false;
}

/*
 * Of --topo-matrix the absolute path of a regular file that the user may read and that is a communication matrix, or
 * auto[:TAG] or off in lower case (a file of such a name is ./auto); of --topo-capture that of a file which exists or
 * may be created, in a directory where the user may write. All are refused outside sbatch. An option that a step
 * inherited from its job was checked when the job was submitted and is accepted as it is, so that a file that has
 * changed since does not fail a step.
 */
static int resolve_path(const char *name, const char *value, char *out, size_t size, struct err *e)
{
	if (is_inherited(name, value))
		return options_copy_path(name, value, out, size, e);
	if (!is_sbatch())
		return err_set(e, "--%s applies to batch jobs only: use it with sbatch", name);
	if ((!strcmp(name, "topo-matrix") ? resolve_matrix : !strcmp(name, "topo-order") ? resolve_order :
	     resolve_capture)(value, out, size, e))
		return -1;
	return *options.matrix && strcmp(options.matrix, "off") && !strcmp(options.order, "fabric") ?
		err_set(e, "--topo-order=fabric and --topo-matrix exclude each other: a matrix orders the nodes, too") :
		0;
}

int submit_init(spank_t sp, int argc, char **argv)
{
	/* For TopoMode; a file that cannot be read is reported on the nodes. */
	step_configure(argc, argv, NULL);
	plugin_argc = argc;
	plugin_argv = argv;
	return options_register(sp, resolve_path);
}

int submit_options(spank_t sp, int, char **)
{
	unsigned component = options_end_component(sp);
	bool later = component && is_sbatch();
	char ranks[16];

	/* The batch script runs on the nodes of the first component, and maps and records its ranks alone. */
	if (later)
		spank_job_control_unsetenv(sp, REQUEST_MATRIX_RANKS);
	snprintf(ranks, sizeof(ranks), "%u", matrix_ranks);
	if (!later && *options.matrix && matrix_ranks)
		spank_job_control_setenv(sp, REQUEST_MATRIX_RANKS, ranks, 1);
	for (size_t i = 0; i < sizeof(carried) / sizeof(*carried); i++) {
		const char *env = carried[i].env, *value = carried[i].value;

		if (!*value)
			continue;
		if (later) {
			slurm_error("topiary: --%s=%s has no effect on component %u of a heterogeneous job: give it "
				    "to the first one", carried[i].option, value, component);
			spank_job_control_unsetenv(sp, env);
		} else if (setenv(env, value, 1) || spank_job_control_setenv(sp, env, value, 1) != ESPANK_SUCCESS) {
			slurm_error("topiary: --%s=%s cannot be passed to the job", carried[i].option, value);
		}
	}
	/* Of this component. */
	if (is_sbatch())
		*options.matrix = *options.order = *options.capture = '\0';
	return 0;
}
