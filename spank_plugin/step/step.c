/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "step.h"

#include <grp.h>
#include <slurm/slurm.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "hwview/image.h"
#include "options.h"
#include "run_dir.h"
#include "topology.h"

struct step step = { .root = -1, .dir = -1 };

/* --- the environment of its tasks --- */

#define LIST "TOPIARY_TASK_ENV"

enum {
	MAX_LIST = 4096,
	MAX_VALUE = 65536,	/* a longer one is not recognised, and stays */
};

/* "NAME:HASH ", an entry of the list. 64-bit FNV-1a: a forged collision gains nothing. */
static void format_entry(char *out, size_t size, const char *name, const char *value)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *value; value++)
		hash = (hash ^ (unsigned char) *value) * UINT64_C(0x100000001b3);
	snprintf(out, size, "%s:%016" PRIx64 " ", name, hash);
}

bool task_env_has(void *sp, const char *name)
{
	char none[1];

	return spank_getenv(sp, name, none, sizeof(none)) != ESPANK_ENV_NOEXIST;
}

void task_env_set(void *sp, const char *name, const char *value)
{
	char list[MAX_LIST] = "", one[256];

	if (task_env_has(sp, name) || spank_setenv(sp, name, value, 0) != ESPANK_SUCCESS)
		return;
	spank_getenv(sp, LIST, list, sizeof(list));
	format_entry(one, sizeof(one), name, value);
	if (strlen(list) + strlen(one) >= sizeof(list))
		return;
	strcat(list, one);
	spank_setenv(sp, LIST, list, 1);
}

/* Unset the variables that still have the value of a surrounding step or job, and the list. */
static void task_env_drop(spank_t sp)
{
	char list[MAX_LIST], name[128], value[MAX_VALUE], now[256], *save = NULL;

	if (spank_getenv(sp, LIST, list, sizeof(list)) == ESPANK_SUCCESS)
		for (char *one = strtok_r(list, " ", &save); one; one = strtok_r(NULL, " ", &save)) {
			if (sscanf(one, "%127[A-Za-z0-9_]:", name) != 1 ||
			    spank_getenv(sp, name, value, sizeof(value)) != ESPANK_SUCCESS)
				continue;
			format_entry(now, sizeof(now), name, value);
			if (!strncmp(one, now, strlen(now) - 1))
				spank_unsetenv(sp, name);
		}
	spank_unsetenv(sp, LIST);
}

/* --- its user --- */

int user_check(const struct user *u, struct err *e)
{
	uid_t r, f, s;
	gid_t rg, eg, sg;

	if (getresuid(&r, &f, &s) || getresgid(&rg, &eg, &sg))
		return err_set(e, "getresuid(2): %s", strerror(errno));
	if (r != u->uid || f != u->uid || s != u->uid || rg != u->gid || eg != u->gid || sg != u->gid)
		return err_set(e, "this process does not run as the job's user");
	return 0;
}

int user_become(const struct user *u)
{
	return setgroups(u->ngroups, u->groups) || setresgid(u->gid, u->gid, u->gid) ||
		setresuid(u->uid, u->uid, u->uid) ? -1 : 0;
}

int user_open_directory(const struct user *u, const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || faccessat(fd, ".", W_OK | X_OK, 0))
		err_set(e, "%s: %s", path, strerror(errno));
	else if (st.st_uid != u->uid)
		err_set(e, "%s: the directory is another user's", path);
	else if (st.st_mode & S_IWOTH)
		err_set(e, "%s: all users may write to the directory", path);
	else
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

int user_confine(const struct user *u, struct err *e)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return err_set(e, "prctl(PR_SET_NO_NEW_PRIVS): %s", strerror(errno));
	/* Some sites let a user trace such a process; its output may be used for other users. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return err_set(e, "prctl(PR_SET_DUMPABLE): %s", strerror(errno));
	return user_check(u, e);
}

/* --- the step --- */

/*
 * srun sets the type only where the user asked for a binding, and for the two options below (Slurm,
 * src/srun/libsrun/opt.c), which limit the number of tasks and not their place. slurmstepd sets its own only for the
 * tasks.
 */
static bool user_binds(spank_t sp)
{
	static const struct { const char *type, *option; } derived[] = {
		{ "cores", "SLURM_NTASKS_PER_CORE" },
		{ "sockets", "SLURM_NTASKS_PER_SOCKET" },
	};
	char type[64] = "";

	if (spank_getenv(sp, "SLURM_CPU_BIND_TYPE", type, sizeof(type)) == ESPANK_ENV_NOEXIST)
		return false;
	for (size_t i = 0; i < sizeof(derived) / sizeof(*derived); i++)
		if (!strcmp(type, derived[i].type) && task_env_has(sp, derived[i].option))
			return false;
	return true;
}

int step_identify(spank_t sp, int argc, char **argv)
{
	const char *node = getenv("SLURMD_NODENAME");

	(void) argc, (void) argv;
	if (spank_get_item(sp, S_JOB_ID, &step.job) || spank_get_item(sp, S_JOB_STEPID, &step.id) ||
	    spank_get_item(sp, S_JOB_UID, &step.user.uid) || spank_get_item(sp, S_JOB_GID, &step.user.gid)) {
		slurm_error("topiary: Slurm does not provide the ids of this step; it runs without its topology");
		/* As a step that is left alone. */
		step.id = SLURM_EXTERN_CONT;
		return 0;
	}
	if (spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &step.user.groups, &step.user.ngroups))
		step.user.ngroups = 0;
	if (step.id == SLURM_BATCH_SCRIPT)
		snprintf(step.name, sizeof(step.name), "%u.batch", step.job);
	else if (step.id == SLURM_INTERACTIVE_STEP)
		snprintf(step.name, sizeof(step.name), "%u.interactive", step.job);
	else
		snprintf(step.name, sizeof(step.name), "%u.%u", step.job, step.id);
	/* slurmd sets it in slurmstepd's own environment. The step's has the node that srun was started on. */
	if (node && *node)
		snprintf(step.node, sizeof(step.node), "%s", node);
	else
		settings_host(step.node, sizeof(step.node));
	step.user_binds = user_binds(sp);
	return 0;
}

int step_configure(int argc, char **argv, struct err *e)
{
	if (step.configured)
		return 0;
	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "config=", 7))
			return err_set(e,
			       "plugstack.conf: spank_topiary.so: unknown argument '%s', expected config=FILE",
			       argv[i]);
		step.config = argv[i] + 7;
	}
	if (settings_load(step.config, &step.settings, e))
		return -1;
	step.configured = true;
	return 0;
}

int step_adopt_node(hwloc_topology_t *out, struct err *e)
{
	char path[sizeof(step.path) + sizeof("/" STEP_NODE_DIR)];

	if (!step.has_node)
		return err_set(e, "the step has no topology of the whole node");
	snprintf(path, sizeof(path), "%s/" STEP_NODE_DIR, step.path);
	return image_adopt_alone(path, out, e);
}

/*
 * The nearest network device, or a GPU that is far, may be outside the step's cores. topiary bind needs it wherever
 * there are GPUs, or ranks of mpirun.
 */
static void add_node_topology(spank_t sp)
{
	bool is_local, has_gpus = task_env_has(sp, "SLURM_STEP_GPUS") || task_env_has(sp, "SLURM_JOB_GPUS");
	bool has_ranks = step.id == SLURM_BATCH_SCRIPT || step.launcher;
	struct err e;
	int dir;

	if (!options.bind.mems && !has_gpus && !(has_ranks && options_place_ranks()) &&
	    ((!options.bind.nic && !options.bind.report && !options.monitor.hz && options.bind.place != PLACE_GPU) ||
	     step.launcher))
		return;
	dir = run_dir_sub(step.dir, STEP_NODE_DIR, &e);
	step.has_node = dir >= 0 &&
		!topology_write(step.settings.topology_file, NULL, step.root, dir, &is_local, &e);
	if (dir >= 0)
		close(dir);
	if (!step.has_node)
		slurm_error("topiary: step %s has no topology of the whole node: %s", step.name, e.text);
}

static bool has_user_dir(void)
{
	return (*options.matrix || *options.order) && step.id == SLURM_BATCH_SCRIPT;
}

/*
 * Programs that use hwloc load the step's topology from these variables, with hwloc's minimal XML parser and without
 * the plugins that would discover what the topology contains already. hwloc 1 cannot read such a file, and a program
 * linked with it would have no topology at all: HWLOC_FORCE_FSROOT, which only hwloc 1 knows and evaluates before
 * HWLOC_XMLFILE, makes it discover by itself (hwloc 1.11, src/topology.c, hwloc_topology_load).
 */
static void export_env(spank_t sp)
{
	static const struct {
		const char *name, *value;
		bool in_step_dir, only_local;	/* in_step_dir: value is a file of the step's directory */
	} variables[] = {
		{ "HWLOC_XMLFILE", "/" IMAGE_XML, true, false },
		{ "HWLOC_FORCE_FSROOT", "/", false, false },
		{ "HWLOC_THISSYSTEM", "1", false, true },
		{ "HWLOC_LIBXML_IMPORT", "0", false, false },
		{ "HWLOC_PLUGINS_PATH", "", false, false },
	};
	char value[PATH_MAX + 32];

	spank_setenv(sp, "TOPIARY_STEP_DIR", step.path, 1);
	if (options.bind.hwloc == HWLOC_OWN || task_env_has(sp, "HWLOC_XMLFILE") ||
	    image_overruled(task_env_has, sp))
		return;
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		snprintf(value, sizeof(value), "%s%s", variables[i].in_step_dir ? step.path : "", variables[i].value);
		if (step.is_local || !variables[i].only_local)
			task_env_set(sp, variables[i].name, value);
	}
}

/* For the batch step on this node, which prints at its end that there was no such step. */
static void mark_batch_step(void)
{
	char name[sizeof(step.name)];
	int dir, fd = -1;

	if (step.id >= SLURM_MAX_NORMAL_STEP_ID || (step.launcher && !step.daemons))
		return;
	snprintf(name, sizeof(name), "%u.batch", step.job);
	if ((dir = run_dir_enter(step.root, name)) >= 0) {
		fd = openat(dir, STEP_SRUN_MARK, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		close(dir);
	}
	if (fd >= 0)
		close(fd);
}

void *step_share(spank_t sp, size_t head, size_t each, unsigned max, uint32_t *tasks)
{
	void *memory;

	if (step.dir < 0 || step.id >= SLURM_MAX_NORMAL_STEP_ID ||
	    spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, tasks) || !*tasks || *tasks > max)
		return NULL;
	memory = mmap(NULL, head + *tasks * each, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

const char *step_cores(spank_t sp)
{
	char *cores = NULL;

	if ((spank_get_item(sp, S_STEP_ALLOC_CORES, &cores) || !cores || !*cores) &&
	    (spank_get_item(sp, S_JOB_ALLOC_CORES, &cores) || !cores || !*cores))
		return NULL;
	return cores;
}

/* Make the step's directory and announce it to the tasks. 0, or -1 with an error: what it made is still there. */
static int prepare(spank_t sp, int argc, char **argv, struct err *e)
{
	unsigned loaded = hwloc_get_api_version() >> 16, own = HWLOC_API_VERSION >> 16;
	const char *cores = step_cores(sp);
	int fd;

	if (step_configure(argc, argv, e))
		return -1;
	/*
	 * A Slurm that is linked with another major version of hwloc has it in this process, and its functions come
	 * first: they would be called with structures of ours.
	 */
	if (loaded != own)
		return err_set(e, "spank_topiary.so was built with hwloc %u, and slurmstepd has hwloc %u loaded: build "
			       "Topiary with the hwloc of Slurm", own, loaded);
	if (!cores)
		return err_set(e, "Slurm does not provide the step's cores");
	if ((step.root = run_dir_open(step.settings.run_dir, e)) < 0)
		return -1;
	run_dir_sweep(step.root);
	if ((step.dir = run_dir_make(step.root, step.name, e)) < 0)
		return err_within(e, "%s", step.settings.run_dir);
	step.owner = getpid();
	snprintf(step.path, sizeof(step.path), "%s/%s", step.settings.run_dir, step.name);
	if (topology_write(step.settings.topology_file, cores, step.root, step.dir, &step.is_local, e))
		return -1;
	add_node_topology(sp);
	/* A fifo of the user's keeps no data. */
	if (step.id == SLURM_BATCH_SCRIPT && options_place_ranks() &&
	    (mkfifoat(step.dir, BIND_MARK, 0600) || fchownat(step.dir, BIND_MARK, step.user.uid, step.user.gid,
							     AT_SYMLINK_NOFOLLOW)))
		slurm_error("topiary: step %s: %s/" BIND_MARK ": %s: the line at its end may say that ranks of mpirun "
			    "were not placed", step.name, step.path, strerror(errno));
	if (has_user_dir()) {
		if ((fd = run_dir_sub(step.dir, STEP_USER_DIR, e)) < 0)
			return err_within(e, "%s", step.path);
		close(fd);
	}
	mark_batch_step();
	export_env(sp);
	return 0;
}

static void clean_up(void)
{
	if (step.dir >= 0 && run_dir_remove(step.root, step.name))
		slurm_error("topiary: %s: not removed completely; a later step on this node removes the rest",
			step.path);
	if (step.dir >= 0)
		close(step.dir);
	if (step.root >= 0)
		close(step.root);
	step.dir = step.root = -1;
}

int step_open(spank_t sp, int argc, char **argv)
{
	struct err e;

	if (step.id == SLURM_EXTERN_CONT)
		return 0;
	task_env_drop(sp);
	spank_unsetenv(sp, "TOPIARY_STEP_DIR");
	if (prepare(sp, argc, argv, &e)) {
		slurm_error("topiary: step %s runs without its topology: %s", step.name, e.text);
		clean_up();
		return 0;
	}
	slurm_debug2("topiary: step %s: %s, %s this machine", step.name, step.path, step.is_local ? "describes" :
		"does not describe");
	return 0;
}

int step_mount_user_dir(spank_t sp, int argc, char **argv)
{
	char path[sizeof(step.path) + sizeof("/" STEP_USER_DIR)];
	struct err e;

	(void) sp, (void) argc, (void) argv;
	if (step.dir < 0 || !has_user_dir())
		return 0;
	snprintf(path, sizeof(path), "%s/" STEP_USER_DIR, step.path);
	if (run_dir_mount_user(path, step.user.uid, step.user.gid, &e))
		slurm_error("topiary: step %s: no directory for the rank map, the job runs without it: %s", step.name,
			e.text);
	return 0;
}

/*
 * Where all ranks are on one node, mpirun starts them without srun, and the plugin does not see them; topiary bind has
 * left a mark.
 */
int step_warn_unused_options(spank_t sp, int argc, char **argv)
{
	struct buf list = {0};
	struct stat mark;
	char nodes[16];

	(void) argc, (void) argv;
	if (step.id != SLURM_BATCH_SCRIPT || step.dir < 0 ||
	    !faccessat(step.dir, STEP_SRUN_MARK, F_OK, AT_SYMLINK_NOFOLLOW) ||
	    (!fstatat(step.dir, BIND_MARK, &mark, AT_SYMLINK_NOFOLLOW) && !(mark.st_mode & 0777)) ||
	    spank_getenv(sp, "SLURM_JOB_NUM_NODES", nodes, sizeof(nodes)) || strcmp(nodes, "1"))
		return 0;
	options_list_per_task(&list);
	if (list.len && !list.failed)
		slurm_spank_log("topiary: job %u: not applied: %s; they apply to tasks that srun starts, and the job "
				"had none; what mpirun or torchrun starts is placed by: mpirun ... topiary bind "
				"PROGRAM", step.job, list.data);
	buf_free(&list);
	return 0;
}

int step_close(spank_t sp, int argc, char **argv)
{
	(void) sp, (void) argc, (void) argv;
	if (step.owner == getpid())
		clean_up();
	return 0;
}
