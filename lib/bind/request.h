/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BIND_REQUEST_H
#define TOPIARY_BIND_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * What a task is to get on its node, in the words of --topo-place, --topo-membind, --topo-omp, --topo-hugepages, --topo-nic and
 * --topo-report. All zero: nothing is asked. One reader for the submit side, which refuses a bad word, and for the node, where the
 * same word comes from the user again and is read again.
 */
enum bind_place { PLACE_OFF, PLACE_COMPACT, PLACE_SCATTER, PLACE_MEM };
enum bind_memory { MEMORY_OFF, MEMORY_LOCAL, MEMORY_BIND, MEMORY_INTERLEAVE };
enum bind_scope { SCOPE_TASK, SCOPE_JOB };
enum bind_omp { OMP_OFF, OMP_AUTO, OMP_GOMP, OMP_KMP };
enum bind_huge { HUGE_OFF, HUGE_THP, HUGE_TLB };
enum bind_nic { NIC_OFF, NIC_AUTO, NIC_ONE, NIC_LOCAL, NIC_ALL };
enum bind_report { REPORT_OFF, REPORT_TABLE, REPORT_JSON };

struct bind_request {
	enum bind_place place;
	char level[16];		/* of compact and scatter, as hwloc_type_sscanf reads it: "package", "l3", "numa"; or "" */
	enum bind_memory memory;
	enum bind_scope scope;	/* of interleave: over the memory of the task's cores, or of all of the job's on the node */
	enum bind_omp omp;
	enum bind_huge huge;
	enum bind_nic nic;
	bool strict;		/* filters, too, for stacks that choose well by themselves */
	enum bind_report report;
};

/*
 * Set what one option says; name is as the user types it but for the dashes, "topo-place"; value is NULL or "" where it has none.
 * 0, or -1 with r untouched and a sentence that begins with the option and lists what it takes.
 */
int bind_request_set(struct bind_request *r, const char *name, const char *value, struct err *e);

#endif
