/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_PLACE_PLACE_H
#define TOPIARY_CLI_PLACE_PLACE_H

#include <stdint.h>

#include "base/err.h"
#include "map/matrix/matrix.h"
#include "map/places/places.h"
#include "shape/snapshot.h"

struct costs;

/* What the places of a job are built from, apart from the job itself. */
struct place_site {
	const struct snapshot *snapshot;	/* the nodes' shapes */
	const struct hierarchy *network;	/* the levels above the nodes, or NULL */
	const struct fabric *planes;		/* what the network is a plane of, or NULL */
	struct err *without;			/* NULL: a node missing in the network is an error; else the reason */
	struct costs *costs;			/* within the nodes, or NULL */
	unsigned cpus;				/* of a task; 0: the job's, or 1 */
};

/* The places of a job, and its tasks. */
struct place_job {
	unsigned tasks;		/* 0: not known */
	unsigned cpus;		/* of a task */
	struct places *places;	/* borrow the site's network and planes */
};

/*
 * The cores of a running job and the CPUs of its tasks, from slurmctld, as any user may: the CPUs of one task are a
 * place. 0, or -1 with an error naming job and node. The caller frees places.
 */
int job_load(uint32_t id, const struct place_site *s, struct place_job *out, struct err *e);

/*
 * The same from text: "HOSTS[=CORES][;HOSTS[=CORES]]...", each HOSTS a host list; without CORES all cores of a node.
 * "cn[1-2];cn3=0-5,8".
 */
int job_from_words(const char *words, const struct place_site *s, struct place_job *out, struct err *e);

/* All hosts of a network whose file also describes the nodes; needs no snapshot. */
int job_from_network(const struct place_site *s, struct place_job *out, struct err *e);

/* Only costs between places, on a single host without a name: "-". */
int job_from_distances(const struct matrix *m, struct place_job *out, struct err *e);

#endif
