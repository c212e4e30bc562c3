/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "capture.h"

#include <dlfcn.h>

#include "base/build_id.h"

/*
 * Open MPI's own monitoring writes the same file in MPI_Finalize. It sees the messages of Fortran programs, which the
 * recorder does not; but it breaks MPI_Comm_spawn (4.1 and 5.0) on both sides, writes nothing for a rank that is
 * killed, and is not loaded where a site or user chose the transport (OMPI_MCA_pml). So it is used only where Fortran
 * may send and nothing is spawned. It reads these variables in MPI_Init.
 */
#define MONITORING_FILE "OMPI_MCA_pml_monitoring_filename"
#define MONITORING_ENABLE "OMPI_MCA_pml_monitoring_enable"

/* The prefix of this process's files. NULL: nothing is counted. */
static char *prefix;
static bool may_be_monitored, spawned;
static char *monitoring;	/* the variable's value, where the recorder counts instead */
static pid_t process;

/*
 * --topo-matrix=auto: the files' names have the program's key, its build ID or else its inode; the first rank writes
 * PREFIX.KEY.program with its path.
 */
static const char *learned_prefix(const char *given)
{
	static char with_key[PATH_MAX];
	char key[BUILD_ID_HEX], program[PATH_MAX] = "";
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	struct stat st;

	if (!getenv("TOPIARY_LEARN") || n <= 0 || stat("/proc/self/exe", &st))
		return given;
	if (!*build_id_read("/proc/self/exe", key))
		snprintf(key, sizeof(key), "x%llx", (unsigned long long) st.st_ino);
	if (snprintf(with_key, sizeof(with_key), "%s.%s", given, key) >= (int) sizeof(with_key))
		return given;
	counters_learn(with_key, program);
	return with_key;
}

#define SPAWNS "it starts processes by MPI_Comm_spawn, which a matrix of its ranks does not contain"
#define MAY_SPAWN \
	"it or a library of its refers to MPI_Comm_spawn, in which Open MPI's monitoring crashes, and nothing else " \
	"counts the messages of Fortran"
#define IS_SPAWNED "it was started by MPI_Comm_spawn, and srun places only the ranks that it starts itself"

static void before_init(bool from_c)
{
	const char *given = getenv("TOPIARY_CAPTURE"), *file = getenv(MONITORING_FILE);
	struct timespec t;

	if (prefix || !given || !*given || !symbol_mpi_is_ours())
		return;
	/* Unique, so that no other run in the job, earlier or concurrent, writes the same file. */
	clock_gettime(CLOCK_REALTIME, &t);
	if (asprintf(&prefix, "%s.%llx-%x", learned_prefix(given), t.tv_sec * 1000000000ULL + t.tv_nsec, getpid()) < 0)
		prefix = NULL;
	if (!prefix)
		return;
	if (!file || strcmp(file, given))
		return;
	may_be_monitored = !from_c || dlsym(RTLD_DEFAULT, "mpi_send_");
	if (may_be_monitored && (getenv("OMPI_PARENT_PORT") || symbol_in_program("MPI_Comm_spawn") ||
				 symbol_in_program("mpi_comm_spawn"))) {
		counters_give_up(getenv("OMPI_PARENT_PORT") ? IS_SPAWNED : MAY_SPAWN);
		may_be_monitored = false;
	}
	if (may_be_monitored)
		setenv(MONITORING_FILE, prefix, 1);
	else if (getenv(MONITORING_ENABLE) && (monitoring = strdup(getenv(MONITORING_ENABLE))))
		setenv(MONITORING_ENABLE, "0", 1);
}

/* Child processes inherit the environment unchanged. */
static void restore_env(void)
{
	if (may_be_monitored)
		setenv(MONITORING_FILE, getenv("TOPIARY_CAPTURE"), 1);
	if (monitoring)
		setenv(MONITORING_ENABLE, monitoring, 1);
}

static int after_init(int rc)
{
	int rank, ranks, threads;

	restore_env();
	if (!prefix || rc != MPI_SUCCESS || PMPI(MPI_Comm_rank)(comm_world(), &rank) != MPI_SUCCESS ||
	    PMPI(MPI_Comm_size)(comm_world(), &ranks) != MPI_SUCCESS || !counters_name_file(prefix, rank))
		return rc;
	process = getpid();
	if ((spawned = process_is_spawned())) {
		counters_give_up(IS_SPAWNED);
		return rc;
	}
	comm_ranks_start();
	counters_start(rank, ranks, PMPI(MPI_Query_thread)(&threads) == MPI_SUCCESS &&
		       threads < MPI_THREAD_MULTIPLE);
	return rc;
}

WRAP(MPI_Init, (int *argc, char ***argv))
{
	before_init(true);
	return after_init(REAL(MPI_Init)(argc, argv));
}

WRAP(MPI_Init_thread, (int *argc, char ***argv, int wanted, int *got))
{
	before_init(true);
	return after_init(REAL(MPI_Init_thread)(argc, argv, wanted, got));
}

/* Open MPI's Fortran interface calls these; what such a program sends is seen by monitoring only. */
WRAP(PMPI_Init, (int *argc, char ***argv))
{
	int rc;

	before_init(false);
	rc = REAL(PMPI_Init)(argc, argv);
	restore_env();
	return rc;
}

WRAP(PMPI_Init_thread, (int *argc, char ***argv, int wanted, int *got))
{
	int rc;

	before_init(false);
	rc = REAL(PMPI_Init_thread)(argc, argv, wanted, got);
	restore_env();
	return rc;
}

WRAP(MPI_Finalize, (void))
{
	struct counters_file_stamp before;
	int rc;

	if (counters_started()) {
		comm_ranks_end();
		if (!may_be_monitored)
			counters_end();
	}
	before = counters_file_stamp();
	rc = REAL(MPI_Finalize)();
	/* The ranks of a spawned program are not those of the job's matrix. */
	if (spawned)
		counters_remove_file();
	else if (counters_file_unchanged(before, counters_file_stamp()))
		counters_end();
	else	/* monitoring has written the file */
		counters_stop();
	return rc;
}

WRAP(MPI_Abort, (handle comm, int code))
{
	if (counters_started())
		counters_write();
	return REAL(MPI_Abort)(comm, code);
}

#define SPAWN(name, params, ...) \
	WRAP(name, params) \
	{ \
		counters_give_up(SPAWNS); \
		return REAL(name)(__VA_ARGS__); \
	}

SPAWN(MPI_Comm_spawn, (const char *command, char **argv, int most, handle info, int root, handle comm, MPI_Comm *made,
      int *codes), command, argv, most, info, root, comm, made, codes)
SPAWN(MPI_Comm_spawn_multiple, (int count, char **commands, char ***argv, const int *most, const MPI_Info *info,
      int root, handle comm, MPI_Comm *made, int *codes), count, commands, argv, most, info, root, comm, made, codes)

/* A program that exits without MPI_Finalize. A forked child has nothing to write. */
__attribute__((destructor)) static void write_at_exit(void)
{
	if (process == getpid())
		counters_end();
}
