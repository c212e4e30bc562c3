/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "trace/reader.h"

/*
 * The phases of a recorded program that its processes named, by libtopiary_phase
 * (lib/phase/phase.c has the format of the file, which may be anybody's). Times are of the trace. Processes that began
 * more than 10 s before it are of an earlier run of a job that was requeued: they are ignored. A moment belongs to a
 * phase if at least half of the processes that the file is of are in it. For `topiary trace`.
 */
#define TRACE_PHASES_MAX 64u		/* different names */
#define TRACE_PHASES_BYTES (65u << 20)	/* of the file */

struct trace_phase {
	char name[TRACE_NAME];
	unsigned depth;			/* phases around it, at most */
	uint64_t times, marks;		/* how often it began, and was marked, in all processes */
	unsigned processes;		/* that had it */
	double seconds, least, greatest;	/* of all processes together; of the one that had least, and most */
};

struct trace_phases {
	struct trace_phase *list;
	unsigned n, processes;
	uint64_t left_out;		/* lines that could not be read */
	struct phase_span {
		unsigned phase;
		uint64_t begin, end;
	} *spans;			/* in the order of their begins */
	size_t nspans;
};

/* NULL on error, also if the file has no phases. Free with trace_phases_free, which accepts NULL. */
struct trace_phases *trace_phases_read(const char *path, const struct trace *t, struct err *e);
void trace_phases_free(struct trace_phases *p);

/* -1: none. */
int trace_phases_find(const struct trace_phases *p, const char *name);

/* The phase that an interval belongs to, the innermost of several, -1: none. */
int trace_phases_at(const struct trace_phases *p, uint64_t begin, uint64_t end);

/* Which of so many ticks (trace_intervals) belong to a phase: their number, or -1 when memory is short. */
int64_t trace_phases_ticks(const struct trace_phases *p, unsigned phase, const struct trace_interval *ticks, uint64_t n,
			   bool *is_in);

/*
 * Leave the ticks that belong to a phase in the trace. is_joined: they follow each other, and the trace lasts as long
 * as they do; otherwise they keep their times. 0, or -1 if there are none.
 */
int trace_phases_restrict(const struct trace_phases *p, unsigned phase, struct trace *t, bool is_joined, struct err *e);
