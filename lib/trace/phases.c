/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/phases.h"

#include <math.h>

#include "base/array.h"
#include "base/file.h"
#include "base/order.h"
#include "base/printable.h"

#define PROCESSES_MAX 65536u
#define DEPTH_MAX 32u
#define THREADS_MAX 65536u
#define EARLIER_NS INT64_C(10000000000)

struct phases_process {
	uint32_t id;
	int64_t offset;			/* from its clock to the trace's time */
	double seconds[TRACE_PHASES_MAX];
	uint64_t seen;			/* bits: phases that it had */
	bool is_earlier;
};

/* The phases that a thread is in. */
struct phases_thread {
	unsigned process, number, depth;
	struct {
		unsigned phase;
		uint64_t begin;
	} open[DEPTH_MAX];
};

struct phases_reading {
	struct trace_phases *p;
	const struct trace *t;
	struct phases_process **processes;
	struct phases_thread **threads;
	unsigned nprocesses, nthreads, last_process, last_thread;	/* the last: of the line before */
};

/* --- finding --- */

int trace_phases_find(const struct trace_phases *p, const char *name)
{
	for (unsigned i = 0; i < p->n; i++)
		if (!strcmp(p->list[i].name, name))
			return i;
	return -1;
}

/* -1: there are too many, or memory is short. */
static int phase_of(struct trace_phases *p, char *name)
{
	int at;

	name[strnlen(name, TRACE_NAME - 1)] = '\0';
	at = trace_phases_find(p, name);
	if (at >= 0 || p->n == TRACE_PHASES_MAX)
		return at;
	p->list[p->n] = (struct trace_phase){ .least = INFINITY };
	snprintf(p->list[p->n].name, sizeof(p->list[p->n].name), "%s", name);
	return p->n++;
}

static int process_find(struct phases_reading *r, uint32_t id)
{
	if (r->last_process < r->nprocesses && r->processes[r->last_process]->id == id)
		return r->last_process;
	for (unsigned i = 0; i < r->nprocesses; i++)
		if (r->processes[i]->id == id)
			return r->last_process = i;
	return -1;
}

static struct phases_thread *thread_of(struct phases_reading *r, unsigned process, unsigned number)
{
	struct phases_thread *t = r->last_thread < r->nthreads ? r->threads[r->last_thread] : NULL;

	if (t && t->process == process && t->number == number)
		return t;
	for (unsigned i = 0; i < r->nthreads; i++)
		if (r->threads[i]->process == process && r->threads[i]->number == number)
			return r->threads[r->last_thread = i];
	if (r->nthreads == THREADS_MAX || array_reserve(r->threads, r->nthreads, 1) || !(t = calloc(1, sizeof(*t))))
		return NULL;
	t->process = process;
	t->number = number;
	r->last_thread = r->nthreads;
	return r->threads[r->nthreads++] = t;
}

/* --- lines --- */

/* The phases that a thread is in, down to so many, end. */
static int phases_close(struct phases_reading *r, struct phases_thread *t, unsigned depth, uint64_t at)
{
	while (t->depth > depth) {
		unsigned phase = t->open[--t->depth].phase;
		/* An end before its begin is in a damaged file alone. */
		uint64_t begin = t->open[t->depth].begin, end = at < begin ? begin : at;

		if (array_reserve(r->p->spans, r->p->nspans, 1))
			return -1;
		r->p->spans[r->p->nspans++] = (struct phase_span){ phase, begin, end };
		r->processes[t->process]->seconds[phase] += (end - begin) * 1e-9;
	}
	return 0;
}

static int read_line(struct phases_reading *r, char *line)
{
	struct phases_thread *t;
	struct trace_phase *x;
	unsigned number, to;
	uint64_t at;
	uint32_t id;
	char what;
	int used = 0, process, phase;

	if (*line == 'P') {
		struct phases_process *p;
		uint64_t real;

		if (sscanf(line, "P 1 %8" SCNx32 " %*d %*d %" SCNu64 " %" SCNu64 "%n", &id, &real, &at, &used) != 3 ||
		    line[used] || process_find(r, id) >= 0 || r->nprocesses == PROCESSES_MAX ||
		    array_reserve(r->processes, r->nprocesses, 1) || !(p = calloc(1, sizeof(*p))))
			return -1;
		r->processes[r->nprocesses++] = p;
		p->id = id;
		p->offset = (int64_t) (real - at - (uint64_t) r->t->head.start);
		p->is_earlier = (int64_t) (real - (uint64_t) r->t->head.start) < -EARLIER_NS;
		r->p->processes += !p->is_earlier;
		return 0;
	}
	if (sscanf(line, "%c %8" SCNx32 " %u %" SCNu64 "%n", &what, &id, &number, &at, &used) != 4 ||
	    line[used] != ' ' || !line[used + 1] || !strchr("BEM", what) || (process = process_find(r, id)) < 0)
		return -1;
	if (r->processes[process]->is_earlier)
		return 0;
	if (!(t = thread_of(r, process, number)) || (phase = phase_of(r->p, printable(line + used + 1))) < 0)
		return -1;
	x = &r->p->list[phase];
	r->processes[process]->seen |= UINT64_C(1) << phase;
	/* A moment before the trace is its start; after it, its end. */
	at += (uint64_t) r->processes[process]->offset;
	at = (int64_t) at < 0 ? 0 : at > r->t->end ? r->t->end : at;
	switch (what) {
	case 'B':
		if (t->depth == DEPTH_MAX)
			return -1;
		t->open[t->depth].phase = phase;
		t->open[t->depth].begin = at;
		x->depth = x->depth < t->depth ? t->depth : x->depth;
		t->depth++;
		x->times++;
		return 0;
	case 'E':	/* with those within, whose ends are missing */
		for (to = t->depth; to && t->open[to - 1].phase != (unsigned) phase; to--)
			;
		return to ? phases_close(r, t, to - 1, at) : -1;
	default:
		x->marks++;
		return 0;
	}
}

ORDER(by_begin, struct phase_span, COMPARE(x->begin, y->begin))

static int read_text(struct phases_reading *r, char *text)
{
	struct trace_phases *p = r->p;

	for (char *line = text, *next; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		p->left_out += read_line(r, line) != 0;
	}
	/* What has no end lasted until the trace's: the process was killed, or is still running. */
	for (unsigned i = 0; i < r->nthreads; i++)
		if (phases_close(r, r->threads[i], 0, r->t->end))
			return -1;
	for (unsigned i = 0; i < r->nprocesses; i++)
		for (unsigned k = 0; k < p->n; k++) {
			double seconds = r->processes[i]->seconds[k];

			if (!(r->processes[i]->seen >> k & 1))
				continue;
			p->list[k].processes++;
			p->list[k].seconds += seconds;
			p->list[k].least = fmin(p->list[k].least, seconds);
			p->list[k].greatest = fmax(p->list[k].greatest, seconds);
		}
	if (p->nspans)
		qsort(p->spans, p->nspans, sizeof(*p->spans), by_begin);
	return 0;
}

struct trace_phases *trace_phases_read(const char *path, const struct trace *t, struct err *e)
{
	struct trace_phases *p = calloc(1, sizeof(*p));
	struct phases_reading r = { .p = p, .t = t };
	struct buf text = {0};
	int rc = -1;

	if (!p || !(p->list = calloc(TRACE_PHASES_MAX, sizeof(*p->list))))
		err_set(e, "out of memory");
	else if (file_read(path, TRACE_PHASES_BYTES, &text, e) == 0)
		rc = read_text(&r, text.data) ? err_set(e, "%s: out of memory", path) :
			p->n ? 0 : err_set(e, "%s: has no phases", path);
	buf_free(&text);
	for (unsigned i = 0; i < r.nprocesses; i++)
		free(r.processes[i]);
	for (unsigned i = 0; i < r.nthreads; i++)
		free(r.threads[i]);
	free(r.processes);
	free(r.threads);
	if (rc == 0)
		return p;
	trace_phases_free(p);
	return NULL;
}

void trace_phases_free(struct trace_phases *p)
{
	if (!p)
		return;
	free(p->list);
	free(p->spans);
	free(p);
}

/* --- intervals --- */

static uint64_t overlap(const struct phase_span *s, uint64_t begin, uint64_t end)
{
	uint64_t from = s->begin > begin ? s->begin : begin, to = s->end < end ? s->end : end;

	return to > from ? to - from : 0;
}

int trace_phases_at(const struct trace_phases *p, uint64_t begin, uint64_t end)
{
	double covered[TRACE_PHASES_MAX] = {0}, all = (double) (end - begin) * p->processes;
	int found = -1;

	for (size_t i = 0; i < p->nspans && p->spans[i].begin < end; i++)
		covered[p->spans[i].phase] += overlap(&p->spans[i], begin, end);
	for (unsigned i = 0; i < p->n; i++) {
		if (covered[i] < all / 2)
			continue;
		if (found < 0 || p->list[i].depth > p->list[found].depth ||
		    (p->list[i].depth == p->list[found].depth && covered[i] > covered[found]))
			found = i;
	}
	return found;
}

int64_t trace_phases_ticks(const struct trace_phases *p, unsigned phase, const struct trace_interval *ticks, uint64_t n,
			   bool *is_in)
{
	double *covered = calloc(n + 1, sizeof(*covered));	/* of each interval, by all processes together */
	int64_t found = 0;

	if (!covered)
		return -1;
	for (const struct phase_span *s = p->spans; s < p->spans + p->nspans; s++) {
		uint64_t low = 0, high = n;

		if (s->phase != phase)
			continue;
		/* Ends increase, and so do begins. */
		while (low < high) {
			uint64_t middle = low + (high - low) / 2;

			if (ticks[middle].end <= s->begin)
				low = middle + 1;
			else
				high = middle;
		}
		for (; low < n && ticks[low].begin < s->end; low++)
			covered[low] += overlap(s, ticks[low].begin, ticks[low].end);
	}
	for (uint64_t i = 0; i < n; i++)
		found += is_in[i] = covered[i] >= (double) (ticks[i].end - ticks[i].begin) * p->processes / 2;
	free(covered);
	return found;
}

int trace_phases_restrict(const struct trace_phases *p, unsigned phase, struct trace *t, bool is_joined, struct err *e)
{
	struct trace_interval *ticks = trace_intervals(t, e);
	bool *is_in = calloc(t->ticks + 1, sizeof(*is_in));
	int64_t found = ticks && is_in ? trace_phases_ticks(p, phase, ticks, t->ticks, is_in) : -1;
	int rc = -1;

	if (found > 0)
		rc = trace_keep(t, is_in, is_joined, e);
	else if (found == 0)
		err_set(e, "phase %s: at no tick were half of the processes in it", p->list[phase].name);
	else if (ticks)
		err_set(e, "out of memory");
	free(is_in);
	free(ticks);
	return rc;
}
