/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "replay/place.h"
#include "replay/scontrol.h"

/*
 * How running jobs lie on the hardware, from what scontrol shows of them and the shapes of their nodes. Slurm's core i
 * of a node is core i of its shape: both count in hwloc's logical order, whatever slurm.conf takes for sockets, as long
 * as it has all cores. Each level is judged by itself: a job of so many cores on a node needs as few of the level's
 * domains as have so many, the largest first. Which cores were free when a job began is known in part: those of jobs
 * that began before and still run were not, and if slurmctld still shows all jobs that ended since, all others were.
 * Leaf switches are the level above the nodes.
 */
enum { AUDIT_SWITCH = JUDGED_LEVELS, AUDIT_LEVELS };

/* The domains of a level on a kind of hardware. */
struct audit_domains {
	struct cluster_range *list;
	size_t n;			/* 0: the level is not there, or has not all cores */
};

struct audit_alloc {
	unsigned job, node;		/* scontrol's job, cluster's node */
	unsigned cores;
	bool holds;
	long long start, end;
	const char *gres;
	unsigned long long memory;
	uint64_t *set;
};

struct audit_judged {
	bool done;
	unsigned nodes, cores;
	unsigned had[AUDIT_LEVELS], need[AUDIT_LEVELS];	/* need 0: not judged at this level */
	unsigned room[AUDIT_LEVELS];		/* with all cores but those of jobs that began before and still run */
	unsigned then[AUDIT_LEVELS];		/* with the cores that were free when it began; 0: not known */
	unsigned spanning[JUDGED_LEVELS];	/* at least so many tasks are in several domains, each fits into one */
	unsigned whole[JUDGED_LEVELS];	/* tasks that the domains can hold, to find these */
	bool task_fits[JUDGED_LEVELS];
	unsigned gpus, gpus_far, gpus_unknown;
};

struct audit_finding {
	char *text;
	struct buf hosts;
	unsigned n;
};

struct audit {
	struct scontrol s;		/* what scontrol shows */
	struct cluster *cluster;	/* NULL: no node has a topology */
	struct string_map names;	/* of the cluster's nodes: their indexes */
	struct audit_domains *domains;	/* JUDGED_LEVELS of each kind of the cluster */
	const struct scontrol_node **node;	/* by the cluster's index; NULL: not audited */
	uint64_t **reserved;
	unsigned *fill;			/* shares by the cluster's node */
	struct audit_judged *judged;		/* by job */
	struct audit_alloc *allocs;
	size_t nallocs;
	struct audit_finding *findings, *faults;
	size_t nfindings, nfaults;
	unsigned running, audited, spread;	/* jobs */
	unsigned hidden, shared;	/* nodes with CPUs of jobs not shown; whose cores are several jobs' */
	unsigned promised;	/* NUMA nodes */
	long long known_since;		/* of a job that began later, all that ended since are shown; 0: unknown */
};

/*
 * Judges all jobs; s and cluster, which may be NULL, are set, and names of the cluster's nodes are in s. 0, or -1 when
 * memory is short. audit_free also frees s and the cluster.
 */
int audit_run(struct audit *u, struct err *e);
void audit_free(struct audit *u);

/* A running job is on more domains of the level than it needs, and did not ask for that. */
bool audit_is_split(const struct audit *u, size_t job, int level);

/* Numbers of jobs: at a level. */
#define AUDIT_OVER 5
struct audit_sums {
	unsigned judged, split, forced, better, unknown, spanning;
	unsigned over[AUDIT_OVER];	/* on so many domains more than needed, the last: or more */
};

struct audit_sums audit_sum(const struct audit *u, int level);
