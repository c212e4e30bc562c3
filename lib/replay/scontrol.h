/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/string_map.h"
#include "replay/slurm_parts.h"

/*
 * What scontrol(1) prints of nodes, running jobs and switches, for `topiary audit`: text, in lines or with --oneliner,
 * and JSON of Slurm 22.05 (openapi v0.0.37) to 26.05 (data_parser v0.0.45). Sources: src/api/job_info.c, node_info.c
 * and src/plugins/data_parser. Users choose the names of their jobs, which text repeats as they are: a record that has
 * one of the words read here twice is refused.
 */

/*
 * Calls word with each KEY=VALUE of the records of text, which begin with the word `first` at the start of a line:
 * `begins` for that word. rest is the text behind the word, not yet cut. Text before the first record is skipped. The
 * text is cut into pieces.
 */
typedef void scontrol_word_fn(void *user, const char *key, char *value, const char *rest, bool begins);
void scontrol_words(char *text, const char *first, scontrol_word_fn *word, void *user);

struct scontrol_node {
	const char *name, *reserved;	/* reserved: CPUSpecList, or "" */
	unsigned sockets, cores, threads;	/* cores of each socket, threads of each core, as in slurm.conf */
	unsigned allocated;		/* CPUs */
	unsigned core_spec;		/* CoreSpecCount */
	bool away;			/* no job begins there: down, drained, reserved; read of text */
	bool whole;			/* its record ends where records end */
	bool affinity;			/* its reason is that cores of a GPU do not match sockets */
	const char *partitions;		/* "batch,debug"; NULL: none, or not shown */
};

/* What a job has on each of some nodes. */
struct scontrol_share {
	const char *hosts, *cpus;	/* abstract CPUs, of which a core has scontrol_node.threads; of JSON cores */
	const char *gres;		/* "gpu:a100:2(IDX:0-1)" */
	unsigned long long memory;	/* MB */
	bool of_cores;
};

struct scontrol_job {
	const char *id, *name, *fault;	/* fault: why it is not read, or NULL */
	const char *partition;		/* "": not known */
	/* Has its cores; had them; never had; while it is read: is suspended. */
	enum { JOB_HOLDS, JOB_ENDED, JOB_OTHER, JOB_IS_SUSPENDED } state;
	long long start, end, suspended;	/* seconds since the epoch, 0: unknown; end: of having the cores */
	bool no_priority;
	unsigned cpus, tasks, task_cpus;	/* 0: unknown */
	bool spread;			/* it asked for sockets, or for tasks per socket */
	struct scontrol_share *shares;
	size_t nshares;
	unsigned long seen;
};

struct scontrol {
	struct scontrol_node *nodes;
	size_t nnodes;
	struct string_map names;	/* of the nodes: their indexes */
	struct scontrol_job *jobs;
	size_t njobs;
	struct scontrol_network {	/* a topology: of these partitions, "a,b"; NULL: of those without their own */
		char *partitions;
		struct slurm_parts leaves;
	} *networks;
	size_t nnetworks;
	size_t refused;			/* records of nodes that are cut, without a name or with another's */
	/* Own: */
	struct buf text[2];
	json_t *json[2];
	char **lists;
	size_t nlists;
	bool failed;
};

/*
 * Read the output in text, which is the struct's afterwards; name is for errors. Nodes come first. 0, or -1 with an
 * error: not such an output, invalid JSON, memory. Free with scontrol_free in either case; {0} is empty.
 */
int scontrol_read_nodes(struct scontrol *s, struct buf *text, const char *name, struct err *e);
int scontrol_read_jobs(struct scontrol *s, struct buf *text, const char *name, struct err *e);
/* `scontrol show topology`, or topology.conf; of these partitions, "a,b", or NULL: of the others. */
int scontrol_read_switches(struct scontrol *s, struct buf *text, const char *name, const char *partitions,
			   struct err *e);
/* The leaf switches of the jobs of a partition; NULL: not read. */
const struct slurm_parts *scontrol_leaves(const struct scontrol *s, const char *partition);
/* Whether a list of partitions, or NULL, has it. */
bool scontrol_has_partition(const char *list, const char *partition);
void scontrol_free(struct scontrol *s);
