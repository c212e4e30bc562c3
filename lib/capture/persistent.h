/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CAPTURE_PERSISTENT_H
#define TOPIARY_CAPTURE_PERSISTENT_H

#include <mpi.h>

#include "counters.h"

/*
 * Persistent requests: register the messages that each MPI_Start of one sends. Takes ownership of the entries of the
 * list and empties it. Called by wrap_p2p.c and wrap_collective.c.
 */
void persistent_register(MPI_Request request, struct counter_list *list);

#endif
