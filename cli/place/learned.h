/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "map/matrix/pattern.h"

/*
 * The matrices that --topo-matrix=auto keeps for a user: one file for each program, number of ranks and tag, in
 * TOPIARY_MATRICES or ~/.local/share/topiary/matrices, which must be the user's own and writable by nobody else. A file
 * is the newest run's matrix, readable by --topo-matrix=FILE: in the format of Open MPI's monitoring, with messages,
 * or, where that is too long, in Matrix Market's; its comments name the program, the pattern, which is recognised once,
 * and the last runs. At most LEARNED_FILES files and LEARNED_BYTES: the oldest
 * are removed. Everything runs as the user. For matrix.c and map.c.
 */
enum { LEARNED_RUNS = 8, LEARNED_FILES = 128, LEARNED_ID = 128, LEARNED_KEY = 41 };
#define LEARNED_FILE_BYTES (32u << 20)
#define LEARNED_BYTES (256u << 20)

/* Two runs have one pattern if their distance is at most this; older runs are compared with a new one. */
#define LEARNED_DISTANCE 0.1
#define LEARNED_DAYS 30

struct learned {
	char id[LEARNED_ID];		/* RANKS-[TAG-]KEY: the file's name without .mat */
	char path[PATH_MAX], program[1024];
	char pattern[PATTERN_TEXT];	/* for learned_pattern; empty if the file does not name it */
	struct matrix *matrix;
	unsigned recorded;		/* the number of ranks that ran */
	char resized[2 * PATTERN_TEXT];	/* "3-dimensional stencil 4x4x4, here 8x8x8"; "": as recorded */
	unsigned nruns;			/* the oldest first */
	struct learned_run {
		unsigned job;
		long long at;		/* seconds since 1970 */
		double distance;	/* from the run before; 1 for the first */
	} run[LEARNED_RUNS];
};

/* The folder, made if `make`. 0, or -1 with an error. */
int learned_folder(char path[static PATH_MAX], bool make, struct err *e);

/*
 * The key of a program, its build ID or a hash of its contents. Interpreters, whose program is a script, need a tag.
 * 0, or -1 with an error.
 */
int learned_key(const char *program, const char *tag, char key[static LEARNED_KEY], struct err *e);
void learned_id(unsigned ranks, const char *tag, const char *key, char id[static LEARNED_ID]);

/* The ids that begin with these characters, sorted; *n of them, each and the array for the caller to free. 0 or -1. */
int learned_list(const char *prefix, char ***ids, size_t *n, struct err *e);

/* 0, or -1 with an error: there is none (*missing), or its file is not one. Free in any case. */
int learned_read(const char *id, struct learned *out, bool *missing, struct err *e);
void learned_free(struct learned *l);

/* text; if it is empty, it becomes "3-dimensional stencil 4x4x4", or "-" for none, which takes a second at most. */
const char *learned_pattern(const struct matrix *m, char text[static PATTERN_TEXT]);

/*
 * For a program of which too few runs of this number of ranks are recorded: the matrix for this number by the pattern
 * of another one, the nearest that has a pattern which the one run of `own`, if there is one, confirms. 0, or -1 with
 * the reason. Free in any case.
 */
int learned_resize(const struct learned *own, unsigned ranks, struct learned *out, struct err *e);

/* Add a run, by its job. 0, or -1 with an error and the old file untouched. */
int learned_add(const char *id, const char *program, unsigned job, const struct matrix *m, struct err *e);

/* Do the last two runs agree? And is nothing gained from recording another one now? */
bool learned_is_stable(const struct learned *l);
bool learned_is_settled(const struct learned *l);
