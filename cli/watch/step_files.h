/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"

/*
 * What --topo-monitor left of a step: a folder topiary-JOB.STEP in the directory that the job was submitted from, with
 * NODE.trace and NODE.tasks (trace/tasks.h) of each node. For cli/watch/advise.c.
 */
struct step_node {
	char *name;
	char *trace, *tasks;		/* paths, or NULL */
};

struct step_files {
	char *name;			/* "12.0", or of another folder its path */
	struct step_node *nodes;	/* by name */
	unsigned n;
};

/* Is it the id of a job or step: 12, 12.0, 12.batch, 12.interactive? */
bool step_files_is_id(const char *text);

/*
 * The steps that are meant by an id or by a folder, by number, *n of them: a job's are looked for in the current
 * directory, in the one that slurmctld or sacct(1) has for the job, and nowhere else. 0, or -1 with an error if there
 * are none. Free with step_files_free.
 */
int step_files_find(const char *what, struct step_files **out, unsigned *n, struct err *e);
void step_files_free(struct step_files *list, unsigned n);
