/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_PLACE_H
#define TOPIARY_REGISTRY_CMD_PLACE_H

#include <stdint.h>

#include "base/err.h"
#include "map/matrix.h"
#include "map/places.h"
#include "topo/snapshot.h"

/* What the places of a job are made from, beside the job itself. */
struct site {
	const struct snapshot *snapshot;	/* the nodes' shapes */
	const struct hierarchy *network;	/* the levels above the nodes, or NULL */
	const struct fabric *planes;		/* what the network is a plane of, or NULL */
	struct err *without;			/* NULL: a node that the network lacks is an error; else why the network is left out */
	const char *costs;			/* of the nodes' levels, as places_costs has them, or NULL */
	unsigned cpus;				/* of a task; 0: as the job says, else 1 */
};

/* The places of a job, and what it said of its tasks. */
struct job {
	unsigned tasks;		/* 0: it did not say */
	unsigned cpus;		/* of a task */
	struct places *places;	/* borrow the site's network and planes */
};

/*
 * Ask slurmctld, as any user may, which cores of which nodes a running job has, and how many CPUs a task of it: those of one task
 * are a place. 0, or -1 with an error naming job and node. The caller frees places.
 */
int job_load(uint32_t id, const struct site *s, struct job *out, struct err *e);

/*
 * The same from words: "HOSTS[=CORES][;HOSTS[=CORES]]...", each HOSTS a host list, without CORES all of a node's.
 * "cn[1-2];cn3=0-5,8".
 */
int job_from_words(const char *words, const struct site *s, struct job *out, struct err *e);

/* All hosts of the network, as its file tells their insides; it needs no snapshot. */
int job_from_network(const struct site *s, struct job *out, struct err *e);

/* Nothing but the costs between places, whose one host has no name: "-". */
int job_from_distances(const struct matrix *m, struct job *out, struct err *e);

#endif
