/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors
 *
 * Notes. A trace belongs to its step in monitor_steps.c; no locks. The file is root's and grows by whole blocks, so
 * that a reader, or the next monitor, continues after the last. A tick that costs too much, and a trace that grows too
 * large, double the period; nothing here ends the monitor or the step.
 */
#include "monitor_trace.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "monitor/live.h"
#include "monitor/counters.h"
#include "monitor/source.h"
#include "trace/block.h"
#include "trace/writer.h"

#define SECOND UINT64_C(1000000000)
#define FLUSH_NS (10 * SECOND)		/* what a monitor that is killed loses at most */
#define BYTES_MAX ((off_t) 64 << 20)	/* of a trace: RunDir is small. The period doubles at each half of the rest */
#define COST_MAX 0.001			/* of the step's PUs: a tick that costs more doubles the period */
#define COST_TICKS 16u			/* over which that is averaged */

struct monitor_trace {
	char name[32];
	struct trace_head head;
	struct trace_writer *writer;	/* NULL after an error */
	int fd;				/* the writer's */
	struct live_writer *live;	/* NULL: nobody can follow it */
	struct counters_pu counters;
	struct sources sources;
	unsigned *cpus, ncpus;		/* of the head's PUs */
	hwloc_bitmap_t pus;		/* the same */
	char gpus[ASK_GPUS];		/* of the step */
	bool has_given_way;		/* and that was logged */
	uint64_t *values;
	uint64_t begun, last, due, period, flushed;	/* begun: time 0 of the trace */
	off_t next_half;		/* bytes at which the period doubles */
	uint64_t cost;			/* CPU time of the last ticks */
	unsigned costed;		/* ticks in it */
};

/* --- the file --- */

static int file_open(struct monitor_trace *t, int dir, struct err *e)
{
	struct stat st;

	t->fd = openat(dir, ASK_TRACE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (t->fd < 0 || fstat(t->fd, &st))
		return err_set(e, ASK_TRACE ": %s", strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_uid)
		return err_set(e, ASK_TRACE ": not a file of root's");
	if (st.st_size) {
		/* Continue what an earlier monitor began, whose clock is told by the head's start. */
		int again = openat(dir, ASK_TRACE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		struct trace *old = again < 0 ? NULL : trace_open_fd(again, ASK_TRACE, e);
		uint64_t since;
		bool same;
		int rc = -1;

		if (!old)
			return -1;
		same = old->head.nevents == t->head.nevents && old->head.pus == t->head.pus;
		for (unsigned i = 0; same && i < t->head.nevents; i++)
			same = !strcmp(old->head.events[i].name, t->head.events[i].name);
		if (!old->open_end || !same) {
			err_set(e, "the trace of an earlier topiary-monitor is of other events");
		} else {
			since = clock_nanoseconds(CLOCK_REALTIME) - old->head.start;
			if ((int64_t) since <= (int64_t) old->end)	/* the clock was set back */
				since = old->end + 1;
			t->begun = clock_nanoseconds(CLOCK_MONOTONIC) - since;
			t->head.start = old->head.start;
			t->writer = trace_writer_continue(dup(t->fd), ASK_TRACE, &t->head, old, since, e);
			rc = t->writer ? 0 : -1;
		}
		trace_close(old);
		return rc;
	}
	t->head.start = clock_nanoseconds(CLOCK_REALTIME);
	t->begun = clock_nanoseconds(CLOCK_MONOTONIC);
	t->writer = trace_writer_new(dup(t->fd), ASK_TRACE, &t->head, e);
	return t->writer ? 0 : -1;
}

static void trace_free(struct monitor_trace *t)
{
	struct err unheard;

	live_writer_free(t->live);
	if (t->writer)
		trace_writer_close(t->writer, &unheard);
	if (t->fd >= 0)
		close(t->fd);
	counters_pu_close(&t->counters);
	sources_close(&t->sources);
	trace_head_free(&t->head);
	hwloc_bitmap_free(t->pus);
	free(t->values);
	free(t->cpus);
	free(t);
}

/*
 * At the same moments on all nodes whose clocks agree: what they did is comparable, and a program that runs on all of
 * them is disturbed on all at once.
 */
static uint64_t due_next(const struct monitor_trace *t, uint64_t now)
{
	uint64_t left = t->period - clock_nanoseconds(CLOCK_REALTIME) % t->period;

	return now + left + (left < t->period / 4 ? t->period : 0);
}

struct monitor_trace *monitor_trace_new(int dir, const char *name, const struct monitor_ask *ask,
					hwloc_topology_t topology, struct err *e)
{
	const struct monitor_request *how = &ask->request;
	struct monitor_trace *t = calloc(1, sizeof(*t));
	struct source_request above;
	struct buf absent = {0};

	if (!t)
		return err_null(e, "out of memory");
	t->fd = -1;
	t->pus = hwloc_bitmap_alloc();
	snprintf(t->name, sizeof(t->name), "%s", name);
	memcpy(t->gpus, ask->gpus, sizeof(t->gpus));
	t->period = t->head.period = SECOND / how->hz;
	t->next_half = BYTES_MAX / 2;
	gethostname(t->head.node, sizeof(t->head.node) - 1);
	t->head.node[strcspn(t->head.node, ".")] = '\0';
	if (trace_head_tree(&t->head, topology, NULL, e) ||
	    !(t->cpus = trace_head_cpus(&t->head, &t->ncpus, e)) ||
	    counters_pu_open(&t->counters, how->set, t->cpus, t->ncpus, &absent, e) ||
	    monitor_events_head(t->counters.events, t->counters.nevents, &t->head, e))
		goto error;
	/* What is counted above the PU is read where all of it is the step's; GPUs also if Slurm has granted them. */
	above = (struct source_request){ .sets = how->set, .root = "", .pus = t->pus, .gpus = t->gpus };
	for (unsigned i = 0; t->pus && i < t->ncpus; i++)
		hwloc_bitmap_set(t->pus, t->cpus[i]);
	if (t->pus && (sources_open(&t->sources, &above, &t->head, &absent, e) || trace_head_check(&t->head, e) ||
		       file_open(t, dir, e)))
		goto error;
	if (!t->pus || !(t->values = calloc(t->head.columns, sizeof(*t->values)))) {
		err_set(e, "out of memory");
		goto error;
	}
	t->last = clock_nanoseconds(CLOCK_MONOTONIC);
	t->flushed = t->last;
	t->due = due_next(t, t->last);
	/* A step that nobody can follow is recorded all the same. */
	if (!(t->live = live_writer_new(dir, &t->head, ask->uid, e)))
		log_warning("step %s: topiary top cannot show it, its trace is recorded: %s", t->name, e->text);
	log_info("step %s: recorded at %u Hz, %u PU%s, %u event%s%s", t->name, how->hz, t->ncpus, PLURAL(t->ncpus),
		 t->head.nevents, PLURAL(t->head.nevents), absent.data ? absent.data : "");
	buf_free(&absent);
	return t;
error:
	buf_free(&absent);
	trace_free(t);
	return NULL;
}

uint64_t monitor_trace_due(const struct monitor_trace *t)
{
	return t->writer ? t->due : UINT64_MAX;
}

/* --- ticks --- */

static void period_double(struct monitor_trace *t, const char *why)
{
	t->period *= 2;
	log_info("step %s: recorded every %.3g s from now on: %s", t->name, t->period * 1e-9, why);
}

/* Keep the trace within its bytes, and its cost within its part of the step's PUs. */
static void period_check(struct monitor_trace *t, uint64_t cost)
{
	off_t size = lseek(t->fd, 0, SEEK_CUR);

	t->cost += cost;
	if (size > t->next_half) {
		t->next_half = (t->next_half + BYTES_MAX) / 2;
		period_double(t, "its trace is large");
	}
	if (++t->costed < COST_TICKS)
		return;
	if (t->cost > COST_MAX * COST_TICKS * t->period * t->ncpus && t->period < SECOND)
		period_double(t, "a tick costs too much");
	t->cost = t->costed = 0;
}

void monitor_trace_tick(struct monitor_trace *t, hwloc_const_bitmap_t shared)
{
	uint64_t cost = clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID), now = clock_nanoseconds(CLOCK_MONOTONIC);
	struct err e;
	int rc;

	if (!t->writer || now == t->last)
		return;
	counters_pu_read(&t->counters, now - t->last, t->values);
	if (t->counters.has_given_way && !t->has_given_way)
		log_info("step %s: hardware counters are given up: others use them", t->name);
	t->has_given_way = t->counters.has_given_way;
	for (unsigned i = 0; i < t->ncpus; i++)
		for (unsigned x = 0; hwloc_bitmap_isset(shared, t->cpus[i]) && x < t->counters.nevents; x++)
			t->values[(size_t) x * t->ncpus + i] = TRACE_ABSENT;
	sources_read(&t->sources, &t->head, now - t->last, t->values);
	if (!hwloc_bitmap_iszero(shared))
		sources_hide(&t->sources, &t->head, t->values);
	t->last = now;
	if (t->live)
		live_writer_tick(t->live, now - t->begun, t->values);
	rc = trace_writer_tick(t->writer, now - t->begun, t->values, &e);
	if (!rc && now - t->flushed >= FLUSH_NS) {
		t->flushed = now;
		rc = trace_writer_flush(t->writer, &e);
	}
	if (rc) {
		log_warning("step %s: recording ends, the step goes on: %s", t->name, e.text);
		trace_writer_close(t->writer, &e);
		t->writer = NULL;
	}
	period_check(t, clock_nanoseconds(CLOCK_THREAD_CPUTIME_ID) - cost);
	t->due = due_next(t, now);
}

void monitor_trace_end(struct monitor_trace *t, int dir, hwloc_const_bitmap_t shared)
{
	struct err e;

	monitor_trace_tick(t, shared);
	if (t->writer && trace_writer_close(t->writer, &e))
		log_warning("step %s: %s", t->name, e.text);
	t->writer = NULL;
	unlinkat(dir, LIVE_FILE, 0);
	if (renameat(dir, ASK_TRACE, dir, ASK_DONE) && errno != ENOENT)
		log_warning("step %s: " ASK_DONE ": %s", t->name, strerror(errno));
	trace_free(t);
}
