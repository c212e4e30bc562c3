/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CAPTURE_STANDING_H
#define TOPIARY_CAPTURE_STANDING_H

#include <mpi.h>

#include "tally.h"

/* Persistent requests: what each start of one sends. Takes the notes of the list, which is then empty. */
void standing_keep(MPI_Request request, struct tally_list *list);

#endif
