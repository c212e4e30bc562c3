/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_REQUEST_H
#define TOPIARY_BIND_REQUEST_H

#include "base/buf.h"
#include "base/err.h"

/*
 * The parsed values of --topo-tasks, --topo-place, --topo-membind, --topo-mems, --topo-omp, --topo-hugepages,
 * --topo-nic, --topo-report, --topo-hwloc and --topo-reorder. All zero: none is set. Called by spank_plugin/options.c,
 * on the submit side, which refuses a bad value, and on the node, which validates it again.
 */
enum bind_tasks { TASKS_OFF, TASKS_AUTO };
enum bind_place { PLACE_OFF, PLACE_COMPACT, PLACE_SCATTER, PLACE_MEM, PLACE_GPU };
enum bind_memory {
	MEMORY_OFF, MEMORY_LOCAL, MEMORY_BIND, MEMORY_INTERLEAVE,
	MEMORY_HBM, MEMORY_DRAM, MEMORY_CAPACITY, MEMORY_BANDWIDTH, MEMORY_LATENCY,
};
enum bind_mems { MEMS_OFF, MEMS_PREFER, MEMS_STRICT };
enum bind_scope { SCOPE_TASK, SCOPE_JOB };
enum bind_omp { OMP_OFF, OMP_AUTO, OMP_GOMP, OMP_KMP };
enum bind_huge { HUGE_OFF, HUGE_THP, HUGE_TLB, HUGE_1G };
enum bind_nic { NIC_OFF, NIC_AUTO, NIC_ONE, NIC_LOCAL, NIC_ALL };
enum bind_report { REPORT_OFF, REPORT_TABLE, REPORT_JSON };
enum bind_hwloc { HWLOC_STEP, HWLOC_OWN };
enum bind_reorder { REORDER_OFF, REORDER_ON, REORDER_REPORT };

struct bind_request {
	enum bind_tasks tasks;	/* auto: options that are not set have the values of bind_request_auto */
	enum bind_place place;
	char level[16];		/* of compact and scatter, for hwloc_type_sscanf: "package", "l3", "numa"; or "" */
	enum bind_memory memory;
	enum bind_scope scope;	/* the NUMA nodes of the task's cores, or of the step's */
	bool memory_strict;	/* bind to the chosen tier instead of preferring it */
	enum bind_mems mems;	/* what has no other policy: the NUMA nodes of the job's cores */
	enum bind_omp omp;
	enum bind_huge huge;
	enum bind_nic nic;
	bool strict;		/* also set filters for stacks that choose well by themselves */
	enum bind_report report;
	enum bind_reorder reorder;	/* MPI's communicators with a topology: libtopiary-reorder */
	enum bind_hwloc hwloc;	/* hwloc in programs loads the step's topology, or discovers by itself */
};

/*
 * Set one option by its name without dashes, "topo-place", or by its key of topiary.conf, "TopoPlace"; value is NULL or
 * "" where it has none. 0, or -1 with r unchanged and an error that begins with the option and lists its values.
 */
int bind_request_set(struct bind_request *r, const char *name, const char *value, struct err *e);

/*
 * Set the options that --topo-tasks=auto has a value for, but those that are set, by their names without dashes; is_set
 * NULL: none is. For spank_plugin/options.c and cli/place/bind.c.
 */
void bind_request_auto(struct bind_request *r, bool (*is_set)(const char *name));

/* In the environment of a job whose ranks of mpirun `topiary bind --job` places: its options, as words. */
#define BIND_JOB_OPTIONS "TOPIARY_BIND"

/* In the directory of the batch step a fifo of the user's, which has mode 0 once a rank has been placed. */
#define BIND_MARK "ranks"

/*
 * Append all options as words, "topo-place=compact:l3 topo-omp=off", which bind_request_read sets again. From the SPANK
 * plugin to cli/place/bind.c, in a job's environment. 0, or -1 with an error, and r has the options before the invalid
 * one.
 */
void bind_request_print(const struct bind_request *r, struct buf *out);
int bind_request_read(struct bind_request *r, const char *words, struct err *e);

#endif
