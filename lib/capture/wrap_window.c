/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <mpi.h>

#include "peers.h"
#include "real.h"
#include "tally.h"

static int moved(int rc, enum tally_kind kind, int count, handle type, int to, handle window)
{
	MPI_Group group;

	if (rc != MPI_SUCCESS || to < 0 || !tally_runs() || ASK(MPI_Win_get_group)((MPI_Win) window, &group) != MPI_SUCCESS)
		return rc;
	tally_add(kind, peers_in_group(group, to), peers_bytes(count, type));
	ASK(MPI_Group_free)(&group);
	return rc;
}

#define UNPACK(...) __VA_ARGS__
#define MOVE(name, request_name, kind, data, more, more_names) \
	WRAP(name, (data, int count, handle type, int to, MPI_Aint at, int to_count, handle to_type UNPACK more, handle w)) \
	{ \
		return moved(REAL(name)(mine, count, type, to, at, to_count, to_type UNPACK more_names, w), kind, count, type, to, w); \
	} \
	WRAP(request_name, (data, int count, handle type, int to, MPI_Aint at, int to_count, handle to_type UNPACK more, handle w, \
			    MPI_Request *request)) \
	{ \
		return moved(REAL(request_name)(mine, count, type, to, at, to_count, to_type UNPACK more_names, w, request), kind, \
			     count, type, to, w); \
	}

MOVE(MPI_Put, MPI_Rput, TALLY_PUT, const void *mine, (), ())
MOVE(MPI_Get, MPI_Rget, TALLY_GET, void *mine, (), ())
MOVE(MPI_Accumulate, MPI_Raccumulate, TALLY_PUT, const void *mine, (, handle op), (, op))
