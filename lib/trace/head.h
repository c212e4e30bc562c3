/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <hwloc.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"

/*
 * What a trace is about: the node, the levels of its hardware tree, and the events that were counted. The recorder
 * fills it and writes it first (trace/writer.h); a reader gets it from the file, so that a trace is read without the
 * node's topology and without hwloc.
 *
 * PUs are numbered from 0 in hwloc's logical order, those traced only. In that order the PUs below any object are
 * consecutive: an object is its first PU and their count, and all objects below it are those within that interval.
 */
#define TRACE_NAME 64
#define TRACE_HEAD_MAX (16u << 20)	/* bytes of its text */
#define TRACE_OBJECTS_MAX (1u << 18)
#define TRACE_EVENTS_MAX 256u
#define TRACE_COLUMNS_MAX (1u << 19)

struct trace_object {
	unsigned index;			/* hwloc's logical index on the whole node */
	long os_index;			/* -1: none */
	unsigned first, count;		/* PUs */
};

static inline unsigned trace_object_end(const struct trace_object *o)
{
	return o->first + o->count;
}

/* For qsort(3): the order of a level's objects. */
int trace_object_compare(const void *a, const void *b);

/* One type of object, by hwloc's name for it ("L3Cache"). Objects are in post-order: by last PU, smaller ones first. */
struct trace_level {
	char type[TRACE_NAME];
	struct trace_object *objects;
	unsigned n;
	char (*names)[TRACE_NAME];	/* what its objects are shown as instead of type and index; NULL: none */
};

/*
 * Counters are recorded as the increase since the tick before and add up over time; gauges are values at the tick. Both
 * add up over the objects of their level.
 */
enum trace_kind { TRACE_COUNTER, TRACE_GAUGE };

struct trace_event {
	char name[TRACE_NAME], unit[TRACE_NAME];	/* unit: "" for a count */
	enum trace_kind kind;
	unsigned level;			/* where it is counted: its leaves are that level's objects */
	unsigned column;		/* of its first leaf in a block; trace_head_check sets it */
};

struct trace_head {
	char node[256], topology[HASH_HEX];	/* hash of the XML that the levels are from, "" if unknown */
	int64_t start;			/* nanoseconds since 1970, UTC: time 0 of the trace */
	uint64_t period;		/* nanoseconds between two ticks as asked for; ticks have their own times */
	struct trace_level *levels;	/* from the machine to the PU, then NUMA nodes and memory-side caches */
	unsigned nlevels;
	struct trace_event *events;
	unsigned nevents;
	char *formulas;			/* text for trace/formula.h, or NULL */
	unsigned pus, columns;		/* trace_head_check sets them */
};

/*
 * Take the levels from a topology: all objects with PUs among `pus` (NULL: all), memory-less and I/O objects excluded.
 * An object that is partly among them has only those PUs. 0 or -1.
 */
int trace_head_tree(struct trace_head *h, hwloc_topology_t topology, hwloc_const_bitmap_t pus, struct err *e);

/* Those of this machine, of the PUs that this process may use or of all. 0 or -1. */
int trace_head_machine(struct trace_head *h, bool all, struct err *e);

/* The operating system's numbers of its PUs, n of them; free(3) it. NULL on error. */
unsigned *trace_head_cpus(const struct trace_head *h, unsigned *n, struct err *e);

/* The name of an object, or NULL. */
const char *trace_head_name(const struct trace_level *l, unsigned object);

/* A level by hwloc's name or a usual other one ("L3", "NUMA", "Socket"), in any case of letters; -1: none. */
int trace_head_level(const struct trace_head *h, const char *type);
/* The same for what a user named: -1 with an error that lists the levels. */
int trace_head_level_named(const struct trace_head *h, const char *type, struct err *e);
/* An event by its name or its PAPI preset ("PAPI_TOT_CYC" for "cycles"); -1: none. */
int trace_head_event(const struct trace_head *h, const char *name);

/* The length of the name that text begins with, of an event or metric: a letter or _, then also digits, . and : */
size_t trace_name_length(const char *text);

/* Check what must hold of any head, and set what is derived. 0 or -1. */
int trace_head_check(struct trace_head *h, struct err *e);

/* As JSON, appended to out; and back, checked. 0 or -1, with *h holding nothing. */
int trace_head_write(const struct trace_head *h, struct buf *out, struct err *e);
int trace_head_parse(const char *text, size_t len, struct trace_head *h, struct err *e);

/* Leaves {0}. */
void trace_head_free(struct trace_head *h);
