/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/advice_facts.h"

#include <math.h>

#define INTERVALS 4096u		/* bounds the memory: 8 bytes for each PU and interval */

const char *const role_names[ROLES + 1] = {
	"busy", "context_switches", "migrations", "minor_faults", "major_faults", "cycles", "instructions", "l3_misses",
	"near_fills", "far_fills", "memory_used", "run_delay", "swapped_in", "tasks",
};

/*
 * Ticks of several recorders are at different times: run time and context switches of PUs are divided among intervals
 * of equal length.
 */
struct timeline {
	double start, end, length;	/* nanoseconds; length: of an interval */
	unsigned n;
	float *busy, *switches;		/* [pu * n + interval] */
	float *misses, *instructions, *major;	/* of all PUs: [interval] */
};

/* --- one trace */

struct reading {
	struct advice_facts *f;
	struct timeline *time;
	const struct trace *t;
	const unsigned *column;		/* into the joined head */
	double *sum;			/* of each column of the trace */
	unsigned *present;		/* its ticks that have a value */
};

static void line_add(const struct timeline *time, float *line, double from, double to, double value)
{
	double per_length = value / (to - from);

	for (unsigned i = from / time->length; i < time->n && i * time->length < to; i++)
		line[i] += per_length * (fmin(to, (i + 1) * time->length) - fmax(from, i * time->length));
}

/* A line for each PU, or one for all. The event of the joined head has the same number in each trace. */
static void block_add_line(const struct reading *r, const struct trace_block *b, enum advice_role role, float *lines,
			   bool is_each)
{
	int event = r->f->event[role];
	const struct trace_event *mine = &r->t->head.events[event], *joined = &r->f->h->events[event];
	double start = r->t->head.start - r->time->start;

	for (unsigned i = 0; i < r->t->head.levels[mine->level].n; i++) {
		size_t pu = is_each ? r->column[mine->column + i] - joined->column : 0;
		float *line = lines + pu * r->time->n;

		for (unsigned t = 0; t < b->n; t++) {
			uint64_t value = b->values[(size_t) (mine->column + i) * b->n + t];

			if (value != TRACE_ABSENT)
				line_add(r->time, line, start + (t ? b->times[t - 1] : b->begin), start + b->times[t],
					 value);
		}
	}
}

static void block_add(const struct reading *r, const struct trace_block *b)
{
	for (unsigned c = 0; c < r->t->head.columns; c++)
		for (unsigned t = 0; t < b->n; t++)
			if (b->values[(size_t) c * b->n + t] != TRACE_ABSENT) {
				r->sum[c] += b->values[(size_t) c * b->n + t];
				r->present[c]++;
			}
	if (r->f->event[BUSY] >= 0)
		block_add_line(r, b, BUSY, r->time->busy, true);
	if (r->f->event[SWITCHES] >= 0)
		block_add_line(r, b, SWITCHES, r->time->switches, true);
	if (r->f->event[MISSES] >= 0)
		block_add_line(r, b, MISSES, r->time->misses, false);
	if (r->f->event[INSTRUCTIONS] >= 0)
		block_add_line(r, b, INSTRUCTIONS, r->time->instructions, false);
	if (r->f->event[MAJOR] >= 0)
		block_add_line(r, b, MAJOR, r->time->major, false);
}

/* --- all of them */

/* An event half of whose values are absent is as one that is missing. */
static void drop_absent(struct advice_facts *f, struct trace *const *traces, unsigned n,
			const unsigned long long *present)
{
	for (int r = 0; r < ROLES; r++) {
		unsigned long long all = 0;

		for (unsigned t = 0; f->event[r] >= 0 && t < n; t++)
			all += traces[t]->ticks * traces[t]->head.levels[traces[t]->head.events[f->event[r]].level].n;
		if (f->event[r] >= 0 && 2 * present[f->event[r]] < all)
			f->event[r] = -1;
	}
}

/* alone: more than half of an interval by one PU, and less than that by all others together. */
static void intervals_judge(struct advice_facts *f, const struct timeline *time)
{
	for (unsigned i = 0; i < time->n; i++) {
		double most = 0, sum = 0;

		for (unsigned pu = 0; pu < f->h->pus; pu++) {
			double busy = time->busy[(size_t) pu * time->n + i];

			sum += busy;
			most = fmax(most, busy);
			f->contended[pu] += busy >= FULL * time->length &&
				time->switches[(size_t) pu * time->n + i] >= SHARED_SWITCHES * time->length * 1e-9;
		}
		if (most > WORKING * time->length && sum - most < WORKING * time->length)
			f->alone += time->length * 1e-9;
		f->disk_faults += time->major[i] >= DISK_FAULTS * time->length * 1e-9;
		const struct trace_level *cores = &f->h->levels[f->core];
		unsigned n = 0;

		for (unsigned j = 0; j < cores->n; j++) {
			const struct trace_object *core = &cores->objects[j];
			double busy = 0;

			for (unsigned pu = core->first; pu < trace_object_end(core); pu++)
				busy = fmax(busy, time->busy[(size_t) pu * time->n + i]);
			n += busy >= WORKING * time->length;
		}
		f->each[i] = (struct advice_interval){ n, time->misses[i],
						       time->instructions[i] };
	}
}

/* From the first start to the last end, in intervals as long as the longest period. */
static int timeline_make(struct timeline *time, struct trace *const *traces, const char *const *names, unsigned n,
			 struct err *e)
{
	double start = INFINITY, latest = -INFINITY, end = -INFINITY, earliest = INFINITY, length = 1;
	unsigned last = 0;

	for (unsigned t = 0; t < n; t++) {
		double from = traces[t]->head.start, to = from + traces[t]->end;

		start = fmin(start, from);
		end = fmax(end, to);
		earliest = fmin(earliest, to);
		last = from > latest ? t : last;
		latest = fmax(latest, from);
		length = fmax(length, (double) traces[t]->end / traces[t]->ticks);
	}
	if (latest >= earliest)
		return err_set(e, "%s: it was recorded at another time than the others", names[last]);
	*time = (struct timeline){ .start = start, .end = end, .length = fmax(length, (end - start) / INTERVALS) };
	time->n = ceil((end - start) / time->length);
	return 0;
}

static bool same_events(const struct trace_head *a, const struct trace_head *b)
{
	bool same = a->nevents == b->nevents;

	for (unsigned i = 0; same && i < a->nevents; i++)
		same = !strcmp(a->events[i].name, b->events[i].name) && a->events[i].kind == b->events[i].kind &&
			!strcmp(a->levels[a->events[i].level].type, b->levels[b->events[i].level].type);
	return same;
}

/* Of one node, with the same events in the same order. */
static int traces_check(struct trace *const *traces, const char *const *names, unsigned n, struct err *e)
{
	for (unsigned t = 0; t < n; t++) {
		if (traces[t]->head.pus > ADVICE_PUS)
			return err_set(e, "%s: %u PUs: advice is about nodes of %u at most", names[t],
				       traces[t]->head.pus, ADVICE_PUS);
		if (traces[t]->ticks < ADVICE_TICKS)
			return err_set(e, "%s: %llu ticks, advice needs at least %u; run longer, or record more often "
				       "(hz)", names[t], (unsigned long long) traces[t]->ticks, ADVICE_TICKS);
		if (strcmp(traces[0]->head.node, traces[t]->head.node))
			return err_set(e, "%s: it is of node %s, and %s of %s", names[t], traces[t]->head.node,
				       names[0], traces[0]->head.node);
		if (!same_events(&traces[0]->head, &traces[t]->head))
			return err_set(e, "%s: it has other events than %s", names[t], names[0]);
	}
	return 0;
}

static int traces_add(struct advice_facts *f, struct timeline *time, struct trace *const *traces, unsigned n,
		      struct err *e)
{
	unsigned long long *present = calloc(f->h->nevents, sizeof(*present));
	int rc = 0;

	f->rate = calloc(f->h->columns, sizeof(*f->rate));
	f->contended = calloc(f->h->pus, sizeof(*f->contended));
	time->busy = calloc((size_t) f->h->pus * time->n, sizeof(*time->busy));
	time->switches = calloc((size_t) f->h->pus * time->n, sizeof(*time->switches));
	time->misses = calloc(time->n, sizeof(*time->misses));
	time->instructions = calloc(time->n, sizeof(*time->instructions));
	time->major = calloc(time->n, sizeof(*time->major));
	f->each = calloc(time->n, sizeof(*f->each));
	if (!present || !f->rate || !f->contended || !f->each || !time->busy || !time->switches || !time->misses ||
	    !time->instructions || !time->major)
		rc = err_set(e, "out of memory");
	for (unsigned t = 0; rc == 0 && t < n; t++) {
		struct reading r = { .f = f, .time = time, .t = traces[t], .column = f->join.column[t] };
		struct trace_block b = {0};

		r.sum = calloc(r.t->head.columns, sizeof(*r.sum));
		r.present = calloc(r.t->head.columns, sizeof(*r.present));
		if (!r.sum || !r.present)
			rc = err_set(e, "out of memory");
		for (unsigned i = 0; rc == 0 && i < r.t->nblocks; i++)
			if (!(rc = trace_read(r.t, i, &b, e)))
				block_add(&r, &b);
		if (rc == 0) {
			/* Absent values count as the mean of the others. */
			const struct trace_head *h = &r.t->head;

			for (unsigned x = 0; x < h->nevents; x++)
				for (unsigned c = h->events[x].column; c < h->events[x].column +
				     h->levels[h->events[x].level].n; c++) {
					double mean = r.present[c] ? r.sum[c] / r.present[c] : 0;

					present[x] += r.present[c];
					r.f->rate[r.column[c]] += h->events[x].kind == TRACE_GAUGE ? mean :
						mean * r.t->ticks / r.f->seconds;
				}
		}
		trace_block_free(&b);
		free(r.sum);
		free(r.present);
	}
	if (rc == 0) {
		drop_absent(f, traces, n, present);
		intervals_judge(f, time);
	}
	free(present);
	free(time->busy);
	free(time->switches);
	free(time->misses);
	free(time->instructions);
	free(time->major);
	return rc;
}

static int traces_read(struct advice_facts *f, struct trace *const *traces, const char *const *names, unsigned n,
		       struct err *e)
{
	const struct trace_head **heads = calloc(n, sizeof(*heads));
	struct timeline time;
	int rc;

	for (unsigned t = 0; heads && t < n; t++)
		heads[t] = &traces[t]->head;
	rc = !heads ? err_set(e, "out of memory") : traces_check(traces, names, n, e) ||
		timeline_make(&time, traces, names, n, e) ||
		trace_join_make(&f->join, NULL, NULL, heads, NULL, n, e) ? -1 : 0;
	free(heads);
	if (rc)
		return -1;
	f->h = &f->join.head;
	f->intervals = time.n;
	f->length = time.length * 1e-9;
	f->seconds = (time.end - time.start) * 1e-9;
	f->core = trace_head_level(f->h, "Core");
	if (f->core < 0)
		f->core = trace_head_level(f->h, "PU");
	for (int r = 0; r < ROLES; r++)
		f->event[r] = trace_head_event(f->h, role_names[r]);
	/* Counted on a wider level, they tell nothing of cores. */
	for (int r = BUSY; r <= SWITCHES; r++)
		if (f->event[r] >= 0 && (int) f->h->events[f->event[r]].level != trace_head_level(f->h, "PU"))
			f->event[r] = -1;
	return traces_add(f, &time, traces, n, e);
}

int facts_read(struct advice_facts *f, const struct advice_node *node, struct err *e)
{
	*f = (struct advice_facts){ .tasks = node->tasks };
	for (int r = 0; r < ROLES; r++)
		f->event[r] = -1;
	if (!node->n || !traces_read(f, node->traces, node->names, node->n, e))
		return 0;
	facts_free(f);
	return -1;
}

bool facts_at_pus(const struct advice_facts *f, enum advice_role r)
{
	return (int) f->h->events[f->event[r]].level == trace_head_level(f->h, "PU");
}

double facts_rate(const struct advice_facts *f, enum advice_role r, hwloc_const_bitmap_t pus)
{
	const struct trace_event *event = &f->h->events[f->event[r]];
	const struct trace_level *leaves = &f->h->levels[event->level];
	double sum = 0;

	for (unsigned i = 0; i < leaves->n; i++)
		if (leaves->objects[i].os_index >= 0 && hwloc_bitmap_isset(pus, leaves->objects[i].os_index))
			sum += f->rate[event->column + i];
	return sum;
}

void facts_free(struct advice_facts *f)
{
	trace_join_free(&f->join);
	free(f->rate);
	free(f->contended);
	free(f->each);
	*f = (struct advice_facts){0};
}
