/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SCORE_REQUEST_H
#define TOPIARY_SCORE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "shape/level.h"

/*
 * What a job asks of its place, in the words of --topo-fit, --topo-level and --topo-request, of --comment and of
 * topiary.conf. One reader for all of them: sbatch, slurmctld and `topiary replay` refuse the same words with the same
 * sentence.
 */
enum fit {
	FIT_OFF,		/* as Slurm places it */
	FIT_PREFER,		/* the least hardware cut, where that can be had now */
	FIT_REQUIRE,		/* within one domain of the level on each node, or as the path says; else wait */
	FIT_SPREAD,		/* each task in a domain of its own at the level (default L3) where possible */
	FIT_COUNT,
};

/*
 * --topo-request=/package=1/l3=2/core=4: on each node one package, in it two L3 caches, of each four cores. Levels go
 * inwards, from package to core, each at most once, the last is core; the idea is OAR's (oarsub -l /cpu=1/core=4).
 */
#define PATH_STEPS_MAX (LEVEL_COUNT - 1)
struct request_path {
	unsigned steps;		/* 0: none */
	struct request_step {
		enum level level;
		unsigned count;	/* at least 1 */
	} step[PATH_STEPS_MAX];
};

/*
 * How many ranks the matrix of --topo-matrix has, as sbatch counted them: a variable of the job's control environment
 * (spank_job_env), which job_submit/topiary reads.
 */
#define REQUEST_MATRIX_RANKS "TOPIARY_MATRIX_RANKS"

struct request {
	enum fit fit;
	enum level level;	/* LEVEL_PACKAGE to LEVEL_L2: the boundary to keep within; LEVEL_NODE: none is named */
	struct request_path path;	/* when it has steps, fit is FIT_REQUIRE and level LEVEL_NODE */
};

/* "off", "prefer", "require", "spread" in any case, or -1; and the constant of a fit. */
int fit_parse(const char *word);
const char *fit_name(enum fit fit);

/*
 * Set what one option says: name is "topo-fit", "topo-level" or "topo-request", as a user types it but for the dashes,
 * or "TopoFit" or "TopoLevel", as topiary.conf has it, where no site spreads all its jobs. 0, or -1 with r untouched
 * and a sentence that begins with the option: `--topo-level=cache: not one of package, die, numa, l3, l2, node`,
 * `TopoLevel=off: not a level; TopoFit=off ...`. What is set again is replaced. A path says all there is to say: beside
 * it a right fit or level, set before or after, changes nothing.
 */
int request_set(struct request *r, const char *name, const char *value, struct err *e);

/*
 * A user's options anywhere in a comment ("run 7, topo-fit=require topo-level=l3"; "--topo-fit=require" too), set apart
 * by blanks, commas or semicolons; all other words are read over. NULL is an empty comment. 0, or -1 as above with r
 * untouched.
 */
int request_comment(struct request *r, const char *comment, struct err *e);

/* The cores of a path on each node: the product of its counts; 0 for a path without steps. */
unsigned request_path_cores(const struct request_path *path);

/* "/package=1/l3=2/core=4", as it is read: the length, as snprintf. */
size_t request_path_text(const struct request_path *path, char *text, size_t size);

#endif
