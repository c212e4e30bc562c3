/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "score/score.h"

/*
 * A verdict: the decision of the select plugin about a job, as stored in one of the job's comments (TopoVerdicts;
 * scontrol show job, sacct) and printed by `topiary why`. One line of words, without newlines, quotes, backslashes and
 * bars (Slurm writes it into SQL unquoted, sacct separates columns by bars), which may be among text of others in the
 * comment:
 *
 *	topiary:1 placed fit=prefer level=l3 nodes=2 tasks=8x1 all_tasks=16 candidates=12 room=9 touched=1,1,1,1,8
 *	broken=1,1,1,1,8 beside=cn7 decided=open:l3 cores=cn[1-2]:0-7;cn3:8-15 end
 *	topiary:1 waits fit=require level=l3 nodes=1 tasks=0x1 all_tasks=12 candidates=4 reason=no_L3_has_12_cores end
 *
 * A missing word means 0, none or the node's level. Counts are in the order of enum level, package to l2; those of
 * "cuts" are NUMA and L3, and those of "left" begin with the node. Values have no blanks: nodes are separated by ';',
 * the blanks of a reason are '_'. Later versions may add words, which readers ignore, but never change the meaning of
 * one.
 */
enum verdict_outcome {
	VERDICT_PLACED,		/* by Topiary */
	VERDICT_LEFT,		/* to Slurm alone: reason */
	VERDICT_WAITS,		/* required, and not available now: reason */
	VERDICT_COUNT,
};

/* Why the nodes chosen are better than the best other one, where that is not their cost (enum chooser_row). */
enum verdict_better {
	BETTER_BY_COST,		/* decided_row; also equal, and of earlier versions the lower index */
	BETTER_MEMORY,		/* their NUMA nodes hold the memory */
	BETTER_KINDS,		/* cores of fewer kinds */
	BETTER_DEVICES,		/* more cores and devices near each other */
	BETTER_SHARING,		/* no tasks share cores */
	BETTER_SPARE,		/* fewer cores without a task */
	BETTER_ORDER,		/* equal, and first in Slurm's order */
	BETTER_WORTH,		/* the other's nodes are worth more to other jobs: these come first, or it is equal */
	BETTER_FREE,		/* as many domains, and free cores that other jobs need less (chooser_free) */
	BETTER_COUNT,
};

#define VERDICT_TEXT 512

struct verdict {
	enum verdict_outcome outcome;
	struct request request;
	unsigned nodes;				/* that it has; the fewest that it may have if it waits */
	unsigned more_nodes;			/* 1: it may have more nodes */
	unsigned tasks, task_cores;		/* the most tasks on a node, 0: unknown; cores of each */
	unsigned all_tasks;			/* of the job; 0: unknown (earlier versions) */
	unsigned cores_per_node;		/* of the node with the most tasks; 0: unknown */
	unsigned own_cores;			/* 1: spread tasks were given whole cores without requesting them */
	unsigned unspread;			/* spread, given up for near memory: its level, from 1; fit is prefer */
	unsigned whole_nodes;			/* 1: all cores of its nodes are the job's, whatever its request */
	unsigned whole_tasks;			/* 1: "cuts" counts cuts through its tasks; 0: unknown */
	unsigned memory_far;			/* nodes where the NUMA nodes of its cores cannot hold its memory */
	unsigned gpus, gpus_far;		/* those granted whose near cores are known; near none of its cores */
	unsigned gpus_unknown;			/* granted ones whose near cores are not known */
	unsigned cores_far;			/* beside GPUs of known place, its cores that are near none of them */
	unsigned candidates, room;		/* nodes that Slurm offered; of these, those with room for the cores */
	unsigned unknown;			/* of candidates, those without a usable shape in the snapshot */
	struct score_cost cost;			/* on the worst of its nodes; VERDICT_PLACED only */
	unsigned free_unknown;			/* 1: "open", "broken" and "left" are not known */
	char lacks[24];				/* levels that this node does not have: "die,l3" */
	char beside[64];			/* the best node that it did not get; "": none to compare */
	unsigned better;			/* enum verdict_better */
	int decided_row, decided_level;		/* where its nodes are better (score_differ); -1: nowhere */
	char cores[VERDICT_TEXT];		/* "cn[1-2]:0-7 cn3:8-11"; truncated after a word: ends with "..." */
	char reason[192];			/* part of a sentence: "no L3 has 12 cores" */
};

/*
 * The words of the line, in their order: what is written, read and, by cli/place/verdict.c, printed. Numbers and texts
 * are fields of the struct, with `at` and `size`; the others have fields of their own.
 */
struct verdict_word {
	const char *name;
	enum { WORD_NUMBER, WORD_TEXT, WORD_FIT, WORD_LEVEL, WORD_PATH, WORD_TASKS, WORD_COUNTS, WORD_DECIDED } kind;
	size_t at, size;
	char blank;		/* replaces blanks in a text */
	enum score_row row;
};
extern const struct verdict_word verdict_words[];
extern const unsigned verdict_word_count;
unsigned verdict_number(const struct verdict *v, const struct verdict_word *w);

/* Whether the counts of a level are those of another (score.h), because the node does not have it. */
bool verdict_lacks(const struct verdict *v, enum level level);

/* "placed", "left", "waits" and "beyond", "cuts", "touched", "open", "broken", "left": constants. */
const char *outcome_name(enum verdict_outcome outcome);
const char *score_row_name(enum score_row row);

/*
 * Appends the line. The list of cores is truncated so that the line has at most VERDICT_TEXT bytes; invalid characters
 * become '?'. out->failed is set when memory is short.
 */
void verdict_write(const struct verdict *v, struct buf *out);

/*
 * Finds the first complete line in a comment, of any version, so that it can be replaced: 0 with start and length, or
 * 1. The comment may be NULL, here and below.
 */
int verdict_find(const char *comment, size_t *start, size_t *len);

/* Finds and parses the line in a comment: 0, 1 when there is none, -1 with an error when it cannot be parsed. */
int verdict_read(const char *comment, struct verdict *out, struct err *e);
