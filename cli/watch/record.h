/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "base/cmd_line.h"

/*
 * What `topiary record` and `topiary top` record: a command that is started, a process that runs already, or neither:
 * all of this node.
 */
struct record_request {
	struct cmd_words command;	/* n 0: none, but pid */
	unsigned pid, hz;
	const char *set, *output;	/* output NULL: a file named after the step or the process */
	/* Write each tick within 0.1 s, for readers that follow the trace, not 60 together: several times the bytes. */
	bool is_live;
	bool has_no_phases;		/* no file for the phases of libtopiary_phase beside the trace */
};

#define RECORD_DEFAULTS { .hz = 1, .set = "sw" }
#define RECORD_HZ_MAX 1000u

/* For the check of a command line: not both of command and pid, sets that exist. */
void record_check(const struct record_request *r, struct argp_state *state);

/*
 * Record until the process ends; blocks signals. A command runs, and ends, as without: *status is its exit status, or
 * 128 and the signal's number if one ended it. 0, or -1 with an error: no process to record.
 */
int record_run(const struct record_request *r, int *status, struct err *e);
/* Wait for a child: its exit status as a shell has it. */
int record_child_status(pid_t pid);
