/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "base/string_map.h"
#include "cmd.h"
#include "fabric/model/hierarchy.h"
#include "map/matrix/matrix.h"
#include "map/places/places.h"
#include "replay/replay.h"
#include "shape/snapshot.h"

/* What the registry publishes of the site, for cli/place/map.c and cli/watch/advise.c. */

/* The nodes' shapes: from that file; path NULL: from SnapshotFile, otherwise from the registry. NULL on error. */
struct snapshot *published_snapshot(const struct cmd *c, const char *path, struct err *e);

/*
 * The network above the nodes: topiaryd's FabricFile, or, if there is no SnapshotFile either, the registry's. NULL:
 * there is none, or, with a warning, it cannot be read.
 */
struct hierarchy *published_network(const struct cmd *c);

/*
 * The costs within nodes that topiary map uses, in lines as in CostsFile, which topiaryd writes:
 *
 *	# a comment
 *	cn[001-128] node=100,package=38.5,...,core=2,0-1=12
 *	* l3=8
 *
 * A host list and costs as places_costs reads them; an asterisk is all other nodes. Called by map.c; place.c asks for
 * each node.
 */
struct costs {
	char *text;			/* cut into pieces */
	struct string_map names;
	const char **of;		/* by the number of the name; borrowed from text */
	const char *others;		/* of nodes without own costs, or NULL */
	const char *source;		/* for the user, in words: "--costs", a path, ... */
	bool is_published;		/* by the registry: costs that do not fit a node are left out */
	unsigned used, without;		/* nodes that had costs here, and that had none */
	unsigned rejected;
};

/* NULL: what the registry published, if anything. 0, or -1 with an error; free in either case. */
int costs_load(const struct cmd *c, const char *option, struct costs *out, struct err *e);
void costs_free(struct costs *c);

/* Counts the node in used or without. NULL: the costs of the levels by default. */
const char *costs_of(struct costs *c, const char *node);

/*
 * The costs of the node do not fit its hardware, for the reason in why: true if it shall have default costs, which is
 * logged for the first, false if that is an error.
 */
bool costs_reject(struct costs *c, const struct err *why);

/* "within nodes: of 3 nodes from /var/lib/topiary/costs, default for 1 node" */
void costs_describe(const struct costs *c, struct buf *out);

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

/*
 * Past jobs, replayed under policies: `topiary replay`, and `topiary audit --days`. The cluster is borrowed; no
 * policies: stock, block, prefer. text is freed. leave_out: jobs on nodes that the cluster does not have, as in jobs.h.
 */
#define PAST_MAX_BYTES (1u << 30)
#define PAST_POLICIES 15
struct past {
	const struct cluster *cluster;
	struct jobs jobs;
	struct replay_policy policies[PAST_POLICIES];
	struct replay_result results[PAST_POLICIES];
	size_t npolicies;
};
int past_read(struct past *s, struct buf *text, const char *name, bool leave_out, struct err *e);
int past_run(struct past *s, uint64_t limit, struct err *e);	/* limit: of jobs, 0: none */
int past_table(const struct past *s, struct err *e);
json_t *past_json(const struct past *s);

/*
 * What TopoMode=observe recorded in file, or in ObserveFile if it is NULL: `topiary observed`, and `topiary audit
 * --observed`. Starts of the last days, 0: all. NULL on error, also if there are none.
 */
struct observed;
struct observed *observed_read(const struct cmd *c, const char *file, unsigned days, struct err *e);
int observed_table(const struct observed *r, struct err *e);
json_t *observed_json(const struct observed *r);
void observed_free(struct observed *r);
