/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_PLACE_H
#define TOPIARY_REGISTRY_CMD_PLACE_H

#include <stdint.h>

#include "base/err.h"
#include "map/places.h"
#include "topo/snapshot.h"

/* The places of a job, and what it said of its tasks. */
struct job {
	unsigned tasks;		/* 0: it did not say */
	struct places *places;
};

/*
 * Ask slurmctld, as any user may, which cores of which nodes a running job has. Nodes' shapes are those of s. A job whose tasks
 * want more than one core each is refused. 0, or -1 with an error naming job and node. The caller frees places.
 */
int job_load(uint32_t id, const struct snapshot *s, struct job *out, struct err *e);

/*
 * The same from words: "HOSTS[=CORES][;HOSTS[=CORES]]...", each HOSTS a host list, without CORES all of a node's.
 * "cn[1-2];cn3=0-5,8".
 */
int job_from_words(const char *words, const struct snapshot *s, struct job *out, struct err *e);

#endif
