/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * The functions that Slurm looks up in a select plugin. All are passed to the wrapped plugin, except job_test, and
 * node_init, by which slurmctld shows that it has read its configuration: a client that loads the plugin never calls
 * it. Calls that change which job holds which cores are observed.
 */
#include "slurm_glue.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include "base/err.h"
#include "plan.h"
#include "occupancy.h"
#include "snapshot_watch.h"
#include "steer.h"

#pragma GCC visibility push(default)

const char plugin_name[] = "Topiary before select/cons_tres";
const char plugin_type[] = "select/cons_tres";
const uint32_t plugin_id = SELECT_PLUGIN_CONS_TRES;
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

/* slurmctld's own definitions override these; with them the plugin also loads in programs that have none. */
slurm_conf_t slurm_conf __attribute__((weak));
node_record_t **node_record_table_ptr __attribute__((weak));
int node_record_count __attribute__((weak));
slurm_list_t job_list __attribute__((weak));
part_record_t *default_part_loc __attribute__((weak));

int init(void);
int fini(void);
int select_p_node_init(void);
int select_p_job_test JOB_TEST_PARMS;

/* X(result, name, parameters, arguments): passed on unchanged */
#define ALWAYS(X) \
	X(int, job_begin, (job_record_t *j), (j)) \
	X(int, job_ready, (job_record_t *j), (j)) \
	X(int, select_nodeinfo_set_all, (void), ())

#define NOTHING ((void) 0)

/* X(result, name, parameters, arguments, before, after): passed on between two actions: allocated cores change */
#define OBSERVED(X) \
	X(int, select_nodeinfo_set, (job_record_t *j), (j), steer_starting(j), steer_started(j)) \
	X(int, job_fini, (job_record_t *j), (j), NOTHING, steer_ended(j)) \
	X(int, job_expand, (job_record_t *from, job_record_t *to), (from, to), NOTHING, occupancy_forget()) \
	X(int, job_resized, (job_record_t *j, node_record_t *n), (j, n), NOTHING, occupancy_forget()) \
	X(int, job_suspend, (job_record_t *j, bool indefinite), (j, indefinite), NOTHING, occupancy_forget()) \
	X(int, job_resume, (job_record_t *j, bool indefinite), (j, indefinite), NOTHING, occupancy_forget()) \
	X(int, reconfigure, (void), (), NOTHING, (occupancy_forget(), plans_clear()))

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(25, 5, 0)
#define UNTIL_2505(X) \
	X(int, state_save, (char *dir), (dir)) \
	X(int, state_restore, (char *dir), (dir)) \
	X(int, job_init, (slurm_list_t jobs), (jobs)) \
	X(bitstr_t *, step_pick_nodes, (job_record_t *j, select_jobinfo_t *i, uint32_t n, bitstr_t **avail), \
	  (j, i, n, avail)) \
	X(int, step_start, (step_record_t *s), (s)) \
	X(int, step_finish, (step_record_t *s, bool killing), (s, killing)) \
	X(int, select_nodeinfo_pack, (select_nodeinfo_t *i, buf_t *b, uint16_t v), (i, b, v)) \
	X(int, select_nodeinfo_unpack, (select_nodeinfo_t **i, buf_t *b, uint16_t v), (i, b, v)) \
	X(select_nodeinfo_t *, select_nodeinfo_alloc, (void), ()) \
	X(int, select_nodeinfo_free, (select_nodeinfo_t *i), (i)) \
	X(int, select_nodeinfo_get, (select_nodeinfo_t *i, enum select_nodedata_type t, enum node_states s, void *d), \
	  (i, t, s, d)) \
	X(select_jobinfo_t *, select_jobinfo_alloc, (void), ()) \
	X(int, select_jobinfo_free, (select_jobinfo_t *i), (i)) \
	X(int, select_jobinfo_set, (select_jobinfo_t *i, enum select_jobdata_type t, void *d), (i, t, d)) \
	X(int, select_jobinfo_get, (select_jobinfo_t *i, enum select_jobdata_type t, void *d), (i, t, d)) \
	X(select_jobinfo_t *, select_jobinfo_copy, (select_jobinfo_t *i), (i)) \
	X(int, select_jobinfo_pack, (select_jobinfo_t *i, buf_t *b, uint16_t v), (i, b, v)) \
	X(int, select_jobinfo_unpack, (select_jobinfo_t **i, buf_t *b, uint16_t v), (i, b, v)) \
	X(int, get_info_from_plugin, (enum select_plugindata_info t, job_record_t *j, void *d), (t, j, d))
#else
#define UNTIL_2505(X)
#endif

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 2, 0)
#define UNTIL_2302(X)                                                                                                  \
	X(int, job_signal, (job_record_t * j, int s), (j, s))                                                          \
	X(char *, select_jobinfo_sprint, (select_jobinfo_t * i, char *b, size_t n, int m), (i, b, n, m))               \
	X(char *, select_jobinfo_xstrdup, (select_jobinfo_t * i, int m), (i, m))                                       \
	X(int, update_node_config, (int i), (i))                                                                       \
	X(bitstr_t *, resv_test, (resv_desc_msg_t * r, uint32_t n, bitstr_t * avail, bitstr_t * *cores),               \
	  (r, n, avail, cores))
#else
#define UNTIL_2302(X)
#endif

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
#define SINCE_2605(X) X(void, job_mem_reduce, (job_record_t *j), (j))
#else
#define SINCE_2605(X)
#endif

#define PASSED_ON(X) ALWAYS(X) UNTIL_2505(X) UNTIL_2302(X)

#define NAME(result, name, parms, args) "select_p_" #name,
#define OBSERVED_NAME(result, name, parms, args, before, after) "select_p_" #name,
static const char *const names[] = { PASSED_ON(NAME) SINCE_2605(NAME) OBSERVED(OBSERVED_NAME) "select_p_node_init",
				     "select_p_job_test" };

#define INDEX(result, name, parms, args) AT_##name,
#define OBSERVED_INDEX(result, name, parms, args, before, after) AT_##name,
enum { PASSED_ON(INDEX) SINCE_2605(INDEX) OBSERVED(OBSERVED_INDEX) AT_node_init, AT_job_test, AT_COUNT };

static void *inner, *pointers[AT_COUNT];

#define PASS(result, name, parms, args) \
	result select_p_##name parms; \
	result select_p_##name parms { return ((result (*) parms) pointers[AT_##name]) args; }
PASSED_ON(PASS)

#define OBSERVE(result, name, parms, args, before, after) \
	result select_p_##name parms; \
	result select_p_##name parms \
	{ \
		result rc; \
\
		before; \
		rc = ((result (*) parms) pointers[AT_##name])args; \
		after; \
		return rc; \
	}
OBSERVED(OBSERVE)

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
/* A running job gives memory back; its record is updated afterwards, so all jobs are read again for a decision. */
void select_p_job_mem_reduce(job_record_t *job);
void select_p_job_mem_reduce(job_record_t *job)
{
	((void (*)(job_record_t *)) pointers[AT_job_mem_reduce])(job);
	occupancy_forget();
}
#endif

int select_p_node_init(void)
{
	steer_start();
	return ((int (*)(void)) pointers[AT_node_init])();
}

int select_p_job_test JOB_TEST_PARMS
{
	return steer_job_test((slurm_job_test_t) pointers[AT_job_test], job, nodes, min_nodes, max_nodes, req_nodes,
			      mode, preemptees, preempted, excluded WILL_RUN_ARG);
}

/* --- the wrapped plugin --- */

#define FILE_NAME "select_cons_tres.so"

/*
 * Loads the plugin that this one shadows: the next file of the same name on PluginDir after this one, so that two
 * copies of Topiary never load each other. Looks up its functions, checks that its version is ours, and calls its init.
 * Returns the handle, or NULL with nothing loaded.
 */
static void *inner_load(const char *plugindir, struct err *e)
{
	const uint32_t *version;
	char path[PATH_MAX];
	struct stat own, st;
	bool past = false;
	int (*start)(void);
	void *handle;
	Dl_info info;

	if (!dladdr((void *) inner_load, &info) || stat(info.dli_fname, &own))
		return err_null(e, "cannot determine the path of Topiary's own plugin");
	for (const char *dir = plugindir;; dir += strcspn(dir, ":"), dir += *dir == ':') {
		if (!dir || !*dir)
			return err_null(e, "no " FILE_NAME " of Slurm after Topiary's in PluginDir=%s",
				plugindir ? plugindir : "");
		snprintf(path, sizeof(path), "%.*s/" FILE_NAME, (int) strcspn(dir, ":"), dir);
		if (stat(path, &st))
			continue;
		if (st.st_dev == own.st_dev && st.st_ino == own.st_ino)
			past = true;
		else if (past)
			break;
	}
	if (!(handle = dlopen(path, RTLD_LAZY)))
		return err_null(e, "%s", dlerror());
	version = dlsym(handle, "plugin_version");
	if (!version || *version != SLURM_VERSION_NUMBER) {
		err_set(e, "%s: version %#x, but Topiary's plugin was built for %#x", path, version ? *version : 0,
			SLURM_VERSION_NUMBER);
		goto error;
	}
	for (size_t i = 0; i < AT_COUNT; i++)
		if (!(pointers[i] = dlsym(handle, names[i]))) {
			err_set(e, "%s: no %s", path, names[i]);
			goto error;
		}
	start = (int (*)(void)) dlsym(handle, "init");
	if (start && start() != SLURM_SUCCESS) {
		err_set(e, "%s: its init() failed", path);
		goto error;
	}
	return handle;
error:
	dlclose(handle);
	return NULL;
}

int init(void)
{
	struct err e;

	if ((inner = inner_load(slurm_conf.plugindir, &e)))
		return SLURM_SUCCESS;
	error("topiary: %s", e.text);
	return SLURM_ERROR;
}

int fini(void)
{
	steer_stop();
	snapshot_watch_drop();
	if (inner) {
		int (*stop)(void) = (int (*)(void)) dlsym(inner, "fini");

		if (stop)
			stop();
		dlclose(inner);
	}
	inner = NULL;
	return SLURM_SUCCESS;
}

#pragma GCC visibility pop
