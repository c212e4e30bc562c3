/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#pragma once

/* What most files use of the C library: a file has it by any other header of base/ that it includes, or its own. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

/* What a function for qsort returns of two numbers; of several keys: COMPARE(a->x, b->x) ?: COMPARE(a->y, b->y). */
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
