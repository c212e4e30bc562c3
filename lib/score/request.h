/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "shape/level.h"

/*
 * A placement request: --topo-fit, --topo-level, --topo-request and --topo-mem, in options, --comment and topiary.conf.
 * One parser for all of them: sbatch, slurmctld and `topiary replay` refuse the same values with the same message.
 */
enum fit {
	FIT_OFF,		/* as Slurm places it */
	FIT_PREFER,		/* the lowest cost that is available now */
	FIT_REQUIRE,		/* within one domain of the level on each node, or as the path says; else wait */
	FIT_SPREAD,		/* each task in a domain of its own at the level (default L3) where possible */
	FIT_COUNT,
};

/*
 * --topo-request=/package=1/l3=2/core=4: on each node one package, in it two L3 caches, of each four cores. Levels go
 * inwards, from package to core, each at most once, the last is core. The syntax follows OAR's (oarsub -l
 * /cpu=1/core=4). core:performance and core:efficiency are cores of the last or the first kind of the node
 * (shape/shape.h); cores of a node with one kind are performance cores.
 */
enum request_kind { REQUEST_ANY_KIND, REQUEST_PERFORMANCE, REQUEST_EFFICIENCY };
#define PATH_STEPS_MAX (LEVEL_COUNT - 1)
struct request_path {
	unsigned steps;		/* 0: none */
	struct request_step {
		enum level level;
		unsigned count;	/* at least 1 */
	} step[PATH_STEPS_MAX];
	enum request_kind kind;	/* of the cores */
};

/*
 * The number of ranks of --topo-matrix, as counted by sbatch: a variable of the job's control environment
 * (spank_job_env), which job_submit/topiary reads.
 */
#define REQUEST_MATRIX_RANKS "TOPIARY_MATRIX_RANKS"

/*
 * TopoWeight, of the site: whether a job gets the node that is best for it, or the one that other jobs miss least;
 * WEIGHT_LONG, the default: the latter if its time limit is longer than WEIGHT_LONG_MINUTES (decision 52).
 */
enum request_weight { WEIGHT_JOB, WEIGHT_LONG, WEIGHT_QUEUE };
#define WEIGHT_LONG_MINUTES (3 * 24 * 60)

struct request {
	enum fit fit;
	enum level level;	/* LEVEL_PACKAGE to LEVEL_L2: the boundary to keep within; LEVEL_NODE: none */
	struct request_path path;	/* if it has steps, fit is FIT_REQUIRE and level LEVEL_NODE */
	enum fit memory;		/* in the cores' own NUMA nodes: FIT_OFF, FIT_PREFER or FIT_REQUIRE */
	enum request_weight weight;		/* no job asks for it */
};

/* "off", "prefer", "require", "spread" in any case, or -1; and the constant of a fit. */
int fit_parse(const char *word);
const char *fit_name(enum fit fit);

/* "job", "long", "queue" in any case, or -1. */
int request_weight_parse(const char *word);

/* Whether other jobs come first for a job with this time limit; 0: none, or unknown. */
bool request_queue_first(const struct request *r, unsigned long long limit_minutes);

/*
 * Sets one option: name is "topo-fit", "topo-level", "topo-request" or "topo-mem", as users write it but without
 * dashes, or "TopoFit", "TopoLevel" or "TopoMem" of topiary.conf, where spread is not allowed. 0, or -1 with r
 * untouched and a message that begins with the option: `--topo-level=cache: not one of package, die, numa, l3, l2,
 * node`, `TopoLevel=off: not a level; TopoFit=off ...`. A later value replaces an earlier one. A path overrides any
 * valid fit or level, set before or after it.
 */
int request_set(struct request *r, const char *name, const char *value, struct err *e);

/*
 * Reads a user's options anywhere in a comment ("run 7, topo-fit=require topo-level=l3"; also "--topo-fit=require"),
 * separated by blanks, commas or semicolons; all other words are ignored. NULL is an empty comment. 0, or -1 as above
 * with r untouched.
 */
int request_comment(struct request *r, const char *comment, struct err *e);

/* Returns -1 with a sentence if a word of the comment begins as an option ("topo-", "--topo-") and is none; else 0. */
int request_comment_unknown(const char *comment, struct err *e);

/* The cores of a path on each node: the product of its counts; 0 for a path without steps. */
unsigned request_path_cores(const struct request_path *path);

/* Writes "/package=1/l3=2/core=4", which reads back the same. Returns the length, as snprintf. */
size_t request_path_text(const struct request_path *path, char *text, size_t size);
