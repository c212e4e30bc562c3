/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_WORKER_H
#define TOPIARY_REGISTRY_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox.h"

/* What parser.c and the workers say to each other. */
enum ask { ASK_READ, ASK_CANON, ASK_COMPARE, ASK_COUNT };

/* One message, with two descriptors: the socket for the answer, and a sealed file with the documents one after the other. */
struct question {
	enum ask ask;
	bool drift;
	size_t bytes[2];	/* of each document; the second is 0 where the question is about one */
};
enum { QUESTION_SOCKET, QUESTION_FILE, QUESTION_FDS };

/* Followed by its parts: of ASK_READ these, of the others the first alone. When refused the first is the reason. */
enum { PART_CORES, PART_HIERARCHY, PART_DETAIL, PART_ALLOCATION, PART_FACTS, PARTS };
struct answer {
	uint32_t refused;
	uint32_t ncores, npus;
	uint32_t bytes[PARTS];
};

/* The bytes that each part may have: more is neither sent nor taken. */
extern const uint32_t part_max[ASK_COUNT][PARTS];

/* The parent of the workers: one thread, and nothing in it but this loop. Ends when control is closed. */
_Noreturn void worker_parent(int control, const struct sandbox *s);

#endif
