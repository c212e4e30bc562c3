/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <mpi.h>

#include "group.h"
#include "model.h"
#include "peers.h"
#include "real.h"
#include "standing.h"

/*
 * A collective, its form that returns at once and its persistent one, which tells at each start. All are told by what comes last,
 * with p the peers, or NULL when the call failed.
 */
#define COLLECTIVE(...) COLLECTIVE_EXPANDED(__VA_ARGS__)
#define COLLECTIVE_EXPANDED(now, later, often, takes, gives, tell) \
	WRAP(now, (UNPACK takes)) \
	{ \
		int rc = REAL(now)(UNPACK gives); \
		const struct peers *p = rc == MPI_SUCCESS ? peers_of(comm) : NULL; \
		tell; \
		return rc; \
	} \
	WRAP(later, (UNPACK takes, MPI_Request *request)) \
	{ \
		int rc = REAL(later)(UNPACK gives, request); \
		const struct peers *p = rc == MPI_SUCCESS ? peers_of(comm) : NULL; \
		tell; \
		return rc; \
	} \
	WRAP(often, (UNPACK takes, handle info, MPI_Request *request)) \
	{ \
		int rc = REAL(often)(UNPACK gives, info, request); \
		const struct peers *p = rc == MPI_SUCCESS ? peers_of(comm) : NULL; \
		struct tally_list sends = {0}; \
		tally_divert(&sends); \
		tell; \
		tally_divert(NULL); \
		standing_keep(*request, &sends); \
		return rc; \
	}

/* Counts and displacements in both widths (MPI 4.0, section 2.5.6). */
#define N int
#define AT int
#define FORMS(now, later) now, later, now##_init
#include "wrap_group_calls.h"
#undef N
#undef AT
#undef FORMS
#define N MPI_Count
#define AT MPI_Aint
#define FORMS(now, later) now##_c, later##_c, now##_init_c
#include "wrap_group_calls.h"
