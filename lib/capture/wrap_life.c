/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <mpi.h>

#include <stdlib.h>
#include <string.h>

#include "peers.h"
#include "real.h"
#include "tally.h"

/* The handles and constants that we were built with are those of one MPI: for another one every call is only passed on. */
static bool is_our_mpi(void)
{
	int (*version)(char *text, int *len) = (int (*)(char *, int *)) real_find("PMPI_Get_library_version");
	char text[MPI_MAX_LIBRARY_VERSION_STRING + 8192] = "";
	int len = 0;

	if (!version || version(text, &len) != MPI_SUCCESS)
		return false;
#ifdef OPEN_MPI
	return strstr(text, "Open MPI");
#else
	return !strstr(text, "Open MPI");
#endif
}

/*
 * Open MPI's own monitoring sees the collectives as they are and writes, while MPI ends, the same file; but it is not even loaded where
 * a site or user chose the transport (OMPI_MCA_pml).
 */
static bool may_be_monitored(void)
{
#ifdef OPEN_MPI
	const char *enabled = getenv("OMPI_MCA_pml_monitoring_enable");

	return enabled && atoi(enabled);
#else
	return false;
#endif
}

/* Of the files, as the environment had it when MPI began. */
static char *prefix;

static void start(void)
{
	const char *given = getenv("TOPIARY_CAPTURE");
	int rank, ranks;

	if (!given || !*given || !is_our_mpi() || !(prefix = strdup(given)))
		return;
	if (ASK(MPI_Comm_rank)(peers_world(), &rank) != MPI_SUCCESS || ASK(MPI_Comm_size)(peers_world(), &ranks) != MPI_SUCCESS)
		return;
	peers_start();
	tally_start(rank, ranks);
}

WRAP(MPI_Init, (int *argc, char ***argv))
{
	int rc = REAL(MPI_Init)(argc, argv);

	if (rc == MPI_SUCCESS)
		start();
	return rc;
}

WRAP(MPI_Init_thread, (int *argc, char ***argv, int wanted, int *got))
{
	int rc = REAL(MPI_Init_thread)(argc, argv, wanted, got);

	if (rc == MPI_SUCCESS)
		start();
	return rc;
}

WRAP(MPI_Finalize, (void))
{
	struct tally_stamp before;
	int rc;

	if (!tally_runs())
		return REAL(MPI_Finalize)();
	peers_end();
	if (!may_be_monitored()) {
		tally_end(prefix);
		return REAL(MPI_Finalize)();
	}
	before = tally_stamp(prefix);
	rc = REAL(MPI_Finalize)();
	if (tally_same(before, tally_stamp(prefix)))
		tally_end(prefix);
	return rc;
}
