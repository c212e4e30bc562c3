/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#define BEGIN "D\tMPI_COMM_WORLD\tprocs: 0,1,2,3\n"
#include "matrix.h"
