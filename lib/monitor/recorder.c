/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "monitor/recorder.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "monitor/counters.h"
#include "monitor/pu_counters.h"
#include "monitor/source.h"
#include "trace/writer.h"

#define LIVE_NS 100000000u	/* no two blocks of a live trace in less time */

struct recorder {
	const char *output;
	struct trace_head head;
	struct trace_writer *writer;	/* NULL after an error */
	struct counters counters;	/* of a process, */
	struct pu_counters node;	/* or of all there are */
	bool is_node;
	struct sources sources;		/* where all PUs of the domain are ours */
	hwloc_bitmap_t pus;
	unsigned *cpus, ncpus;		/* of the trace's PUs */
	uint64_t *values;
	uint64_t begun, last, absent;
	bool is_live;
	uint64_t flushed;		/* time */
};

static int sources_begin(struct recorder *r, const char *sets, struct err *e)
{
	struct source_request how = { .sets = sets, .root = "", .pus = r->pus = hwloc_bitmap_alloc() };
	struct buf absent = {0};
	int rc;

	if (!r->pus)
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < r->ncpus; i++)
		hwloc_bitmap_set(r->pus, r->cpus[i]);
	rc = sources_open(&r->sources, &how, &r->head, &absent, e);
	/* Who did not ask for a set does not miss what it lacks. */
	if (rc == 0 && absent.data && strcasecmp(sets, "sw"))
		log_info("%s", absent.data + strlen("; "));
	buf_free(&absent);
	return rc;
}

/* What it may not count is worth a line: a user who looks at a node asked for all of it. */
static int node_open(struct recorder *r, const char *sets, struct err *e)
{
	struct buf why = {0};
	int rc = pu_counters_open(&r->node, sets, r->cpus, r->ncpus, &why, e);

	if (rc == 0 && why.data)
		log_warning("%s", why.data + strlen("; "));
	buf_free(&why);
	return rc ? -1 : monitor_events_head(r->node.events, r->node.nevents, &r->head, e);
}

static int process_open(struct recorder *r, const struct recorder_request *how, struct err *e)
{
	return counters_open(&r->counters, how->pid, how->waits_for_exec, how->set, r->cpus, r->ncpus, e) ? -1 :
	       monitor_events_head(r->counters.events, r->counters.nevents, &r->head, e);
}

int recorder_begin(struct recorder *r, struct err *e)
{
	int fd = trace_file_create(r->output, e);
	struct err unheard;

	if (fd < 0)
		return -1;
	r->head.start = clock_nanoseconds(CLOCK_REALTIME);
	r->begun = r->last = clock_nanoseconds(CLOCK_MONOTONIC);
	r->writer = trace_writer_new(fd, r->output, &r->head, e);
	if (r->writer && (r->values = calloc(r->head.columns, sizeof(*r->values))))
		return 0;
	if (r->writer) {
		err_set(e, "out of memory");
		trace_writer_close(r->writer, &unheard);
	}
	trace_file_discard(r->output);
	return -1;
}

void recorder_free(struct recorder *r)
{
	if (!r)
		return;
	counters_close(&r->counters);
	pu_counters_close(&r->node);
	sources_close(&r->sources);
	hwloc_bitmap_free(r->pus);
	trace_head_free(&r->head);
	free(r->values);
	free(r->cpus);
	free(r);
}

struct recorder *recorder_new(const struct recorder_request *how, struct err *e)
{
	struct recorder *r = calloc(1, sizeof(*r));

	if (!r) {
		err_set(e, "out of memory");
		return NULL;
	}
	r->output = how->output;
	r->is_live = how->is_live;
	r->is_node = !how->pid;
	r->head.period = how->period;
	gethostname(r->head.node, sizeof(r->head.node) - 1);
	if (!trace_head_machine(&r->head, false, e) && (r->cpus = trace_head_cpus(&r->head, &r->ncpus, e)) &&
	    !(r->is_node ? node_open(r, how->set, e) : process_open(r, how, e)) &&
	    !sources_begin(r, how->set, e))
		return r;
	recorder_free(r);
	return NULL;
}

int recorder_tick(struct recorder *r, struct err *e)
{
	uint64_t now = clock_nanoseconds(CLOCK_MONOTONIC);

	if (now == r->last)
		return 0;
	if (r->is_node)
		pu_counters_read(&r->node, now - r->last, r->values);
	else
		r->absent += counters_read(&r->counters, r->values);
	sources_read(&r->sources, &r->head, now - r->last, r->values);
	r->last = now;
	if (trace_writer_tick(r->writer, now - r->begun, r->values, e))
		return -1;
	if (!r->is_live || now - r->flushed < LIVE_NS)
		return 0;
	r->flushed = now;
	return trace_writer_flush(r->writer, e);
}

int recorder_close(struct recorder *r, struct err *e)
{
	int rc = recorder_tick(r, e) || trace_writer_flush(r->writer, e) ? -1 : 0;
	bool is_empty = trace_writer_is_empty(r->writer);

	if (trace_writer_close(r->writer, e) || rc)
		rc = -1;
	if (is_empty)
		trace_file_discard(r->output);
	if (rc == 0) {
		log_info("%s: recorded %u events of %u PUs for %.1f s", r->output, r->head.nevents, r->head.pus,
			 (r->last - r->begun) * 1e-9);
		if (r->absent)
			log_warning("%s: %llu values are absent: their counters gave impossible values, or others used "
				    "them",
				    r->output, (unsigned long long) r->absent);
	}
	recorder_free(r);
	return rc;
}
