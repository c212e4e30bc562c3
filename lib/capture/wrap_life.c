/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <mpi.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "peers.h"
#include "real.h"
#include "tally.h"

/* The standard's own binary interface (MPI 5.0, chapter 20) has a library of its own in each MPI, which names itself like the other. */
static bool has_standard_handles(const void *of_mpi)
{
	Dl_info library;

	return dladdr(of_mpi, &library) && strstr(library.dli_fname, "mpi_abi");
}

/* The handles and constants that we were built with are those of one MPI: for another one every call is only passed on. */
static bool is_our_mpi(void)
{
	int (*version)(char *text, int *len) = (int (*)(char *, int *)) real_find("PMPI_Get_library_version");
	char text[MPI_MAX_LIBRARY_VERSION_STRING + 8192] = "";
	int len = 0;

	if (!version || version(text, &len) != MPI_SUCCESS)
		return false;
#if defined(OPEN_MPI)
	return strstr(text, "Open MPI") && !has_standard_handles((const void *) version);
#elif defined(MPI_ABI_VERSION)
	return has_standard_handles((const void *) version);
#else
	return !strstr(text, "Open MPI") && !has_standard_handles((const void *) version);
#endif
}

/*
 * Open MPI's own monitoring writes, while MPI ends, the same file. It sees what a Fortran program sends, which we do not; but it
 * breaks MPI_Comm_spawn (4.1 and 5.0), tells nothing of a rank that is killed, and is not even loaded where a site or user chose the
 * transport (OMPI_MCA_pml). So it counts only where Fortran may send. It reads these while MPI begins.
 */
#define MONITORED "OMPI_MCA_pml_monitoring_filename"
#define MONITORS "OMPI_MCA_pml_monitoring_enable"

/* What the files of this process begin with. NULL: nothing is counted. */
static char *prefix;
static bool may_be_monitored, spawned;
static char *monitors;		/* what the environment had, where we stand in */
static pid_t process;

/* A name of its own, so that no other run of the job, before or beside this one, writes the same file. */
static char *own_prefix(const char *given)
{
	struct timespec t;
	char *own;

	clock_gettime(CLOCK_REALTIME, &t);
	return asprintf(&own, "%s.%llx-%x", given, t.tv_sec * 1000000000ULL + t.tv_nsec, getpid()) < 0 ? NULL : own;
}

static bool may_send_by_fortran(void)
{
	return dlsym(RTLD_DEFAULT, "mpi_send_");
}

static void before(bool by_c)
{
	const char *given = getenv("TOPIARY_CAPTURE"), *file = getenv(MONITORED);

	if (prefix || !given || !*given || !is_our_mpi() || !(prefix = own_prefix(given)))
		return;
	if (!file || strcmp(file, given))
		return;
	may_be_monitored = !by_c || may_send_by_fortran();
	if (may_be_monitored)
		setenv(MONITORED, prefix, 1);
	else if (getenv(MONITORS) && (monitors = strdup(getenv(MONITORS))))
		setenv(MONITORS, "0", 1);
}

/* Programs that this one starts find the environment as it was. */
static void restore(void)
{
	if (may_be_monitored)
		setenv(MONITORED, getenv("TOPIARY_CAPTURE"), 1);
	if (monitors)
		setenv(MONITORS, monitors, 1);
}

static int after(int rc)
{
	int rank, ranks;

	restore();
	if (!prefix || rc != MPI_SUCCESS || ASK(MPI_Comm_rank)(peers_world(), &rank) != MPI_SUCCESS ||
	    ASK(MPI_Comm_size)(peers_world(), &ranks) != MPI_SUCCESS || !tally_name(prefix, rank))
		return rc;
	process = getpid();
	if ((spawned = peers_spawned()))
		return rc;
	peers_start();
	tally_start(rank, ranks);
	return rc;
}

WRAP(MPI_Init, (int *argc, char ***argv))
{
	before(true);
	return after(REAL(MPI_Init)(argc, argv));
}

WRAP(MPI_Init_thread, (int *argc, char ***argv, int wanted, int *got))
{
	before(true);
	return after(REAL(MPI_Init_thread)(argc, argv, wanted, got));
}

/* Fortran begins so in Open MPI, and what it sends then is seen by monitoring alone. */
WRAP(PMPI_Init, (int *argc, char ***argv))
{
	int rc;

	before(false);
	rc = REAL(PMPI_Init)(argc, argv);
	restore();
	return rc;
}

WRAP(PMPI_Init_thread, (int *argc, char ***argv, int wanted, int *got))
{
	int rc;

	before(false);
	rc = REAL(PMPI_Init_thread)(argc, argv, wanted, got);
	restore();
	return rc;
}

/* The ranks of a program that was started by another one are others than those of its numbers. */
static void after_end(struct tally_stamp was)
{
	if (spawned)
		tally_discard();
	else if (tally_same(was, tally_stamp()))
		tally_end();
	else
		tally_stop();
}

WRAP(MPI_Finalize, (void))
{
	struct tally_stamp was;
	int rc;

	if (tally_runs()) {
		peers_end();
		if (!may_be_monitored)
			tally_end();
	}
	was = tally_stamp();
	rc = REAL(MPI_Finalize)();
	after_end(was);
	return rc;
}

WRAP(MPI_Abort, (handle comm, int code))
{
	if (tally_runs())
		tally_write();
	return REAL(MPI_Abort)(comm, code);
}

/* A program that ends without MPI's knowledge. One that it forked and that ends has nothing to tell. */
__attribute__((destructor)) static void leave(void)
{
	if (process == getpid())
		tally_end();
}
