/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <hwloc.h>

#include "base/buf.h"
#include "base/err.h"
#include "trace/head.h"

/*
 * What a node counts above the PU: memory, energy, bandwidth, disks, network devices, GPUs. A source finds the meters
 * of its kind on this machine; a meter is one number that is read at each tick, and says at which object of the
 * hardware tree it counts. Several meters of one event at one object add up. The table of sources is in source.c. For
 * cli/watch/record.c, node_agent/monitor_trace.c and node_agent/monitor_metrics.c.
 *
 * Counters that whoever runs on the domain moves are read only if all PUs of the domain are the reader's
 * (source_owns_object). A network device is the whole node's, because every process may use it.
 */
struct source_bounds {
	double most;		/* of a counter, a second; of a gauge, ever. 0: unknown */
	uint64_t range;		/* the counter continues at 0 after so much; 0: less than before is wrong */
	uint64_t narrow;	/* the counter may be one of 32 bits that continues at 0 here, or stops just below */
	uint64_t still_limit;	/* nanoseconds in which it increases if it works; 0: unknown */
};

struct source_meter {
	const char *name, *unit;	/* of the event, which is NAME or NAME.DEVICE in a trace */
	char device[40];		/* "" or the one device that it is of */
	enum trace_kind kind;
	const char *level;		/* by hwloc's name, and the object by the kernel's number; -1: the first */
	long os_index;
	struct source_bounds bounds;
	/* The value in the event's unit, TRACE_ABSENT if it cannot be read now. */
	uint64_t (*read)(struct source_meter *m);
	int fd;				/* -1: none */
	const char *begins;		/* in a text: the number follows this word, */
	unsigned field;			/* and so many others */
	double scale;			/* what is read times this is the value */
	const void *handle;		/* of a library, or the PUs that are summed up */
	uint64_t seldom;		/* of a counter that costs much to read: nanoseconds between two readings */
	/* --- of source.c --- */
	int event;			/* of struct sources; -1: it has no place in the tree */
	unsigned object;		/* of the event's level */
	uint64_t before, still, waited;	/* at the last reading; nanoseconds without increase, and since then */
};

struct source_event {
	const char *name, *unit;
	char device[40];
	enum trace_kind kind;
	unsigned index;			/* in the head's events */
};

struct sources {
	const char *root;		/* borrowed, as the next two: source_request */
	hwloc_const_bitmap_t pus;
	const char *gpus;
	struct source_meter *meters;
	unsigned nmeters;
	struct source_event *events;
	unsigned nevents;
	bool has_failed;		/* memory is short */
	bool uses_nvml;
};

struct source_request {
	const char *sets;		/* of monitor/events.h */
	const char *root;		/* "": this machine (monitor/sysfs.h) */
	hwloc_const_bitmap_t pus;	/* the reader's, by the kernel's numbers; NULL: it may read all */
	/*
	 * The reader's by their numbers in the order of PCI addresses ("0,2"), as Slurm has them; NULL, or all PUs of
	 * the node are the reader's: all it can open.
	 */
	const char *gpus;
};

/*
 * Find the meters of the sets and append their events to the head's (base/array.h), whose levels are there. Of a
 * source with none the reason is appended to why, each after "; ". The head's trace_head_check comes after it. 0 or -1.
 */
int sources_open(struct sources *s, const struct source_request *how, struct trace_head *h, struct buf *why,
		 struct err *e);

/*
 * Read all into a tick's values, by the head's columns: counters as the increase since the last reading, ns before.
 * What cannot be true is TRACE_ABSENT.
 */
void sources_read(struct sources *s, const struct trace_head *h, uint64_t ns, uint64_t *values);

/* All of them TRACE_ABSENT. */
void sources_hide(const struct sources *s, const struct trace_head *h, uint64_t *values);

/* Leaves {0}. */
void sources_close(struct sources *s);

/*
 * The increase of a counter in ns nanoseconds, TRACE_ABSENT if it cannot be true. still: how long it has not increased,
 * brought up to date.
 */
uint64_t source_increase(const struct source_bounds *b, uint64_t before, uint64_t now, uint64_t ns, uint64_t *still);

/* --- for the sources --- */

/* Are all PUs of a package, NUMA node or the machine the reader's? Not if the kernel does not know them. */
bool source_owns_object(const struct sources *s, const char *level, long os_index);

/* Add a meter; its descriptor is closed by sources_close, and on failure. */
void source_add(struct sources *s, const struct source_meter *m);
/* Close and forget those after the first n. */
void source_drop(struct sources *s, unsigned n);
/* Add a meter that reads a file, if that can be opened. False with errno if not. */
bool source_add_file(struct sources *s, struct source_meter m, const char *path);

/* 0 if meters were found, else -1 with why there are none. */
int source_memory(struct sources *s, struct err *e);
int source_disks(struct sources *s, struct err *e);
int source_run_delay(struct sources *s, struct err *e);
int source_swap(struct sources *s, struct err *e);
int source_network(struct sources *s, struct err *e);
int source_power(struct sources *s, struct err *e);
int source_bandwidth(struct sources *s, struct err *e);
int source_ports(struct sources *s, struct err *e);
int source_gpus(struct sources *s, struct err *e);
void source_gpus_end(void);	/* of uses_nvml */
