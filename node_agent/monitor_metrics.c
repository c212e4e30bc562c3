/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors
 *
 * Notes. One object for the node, of the monitor's only thread. The file is replaced as a whole, so that node_exporter
 * never reads a part. General counters are given to jobs that count events themselves, and taken back after RECLAIM_NS.
 */
#include "monitor_metrics.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "monitor/counters.h"
#include "monitor/source.h"
#include "trace/block.h"
#include "trace/head.h"

#define SECOND UINT64_C(1000000000)
#define VALUES_MAX 40u		/* of the hardware tree: a site has many nodes, and one Prometheus */
#define DEVICES_MAX 40u		/* of network devices and GPUs beside, where MonitorMetricsSet has them */
#define JOBS_MAX 40u		/* rows of jobs beside */
#define RECLAIM_NS (600 * SECOND)	/* from giving way to a job's own events */
#define SUFFIX ".prom"		/* node_exporter reads no other file */

struct metrics_domain {
	char name[32];		/* "numa0" */
	long os_index;
	unsigned first, count;	/* of the node's PUs */
};

struct monitor_metrics {
	const struct settings *settings;
	struct trace_head head;			/* the node's tree and what is counted of it: no trace */
	struct counters_pu counters;
	struct sources sources;
	unsigned *cpus, ncpus;
	uint64_t *values;			/* by the head's columns: [event * ncpus + cpu], then the sources */
	bool *is_shown;				/* of these, those of the sources that the file has */
	struct metrics_domain *domains;		/* all of one level */
	unsigned ndomains, nshown;		/* nshown: without those of devices */
	uint64_t last, due;
	bool has_failed;			/* and that was logged */
	uint64_t given_way;			/* when; 0: the counters are ours */
};

/* --- what there is --- */

static void domain_fill(struct metrics_domain *d, const char *level, const struct trace_object *o)
{
	*d = (struct metrics_domain){ .os_index = o->os_index, .first = o->first, .count = o->count };
	if (!strcmp(level, "Machine"))
		snprintf(d->name, sizeof(d->name), "machine");
	else
		snprintf(d->name, sizeof(d->name), "%s%u", strcmp(level, "Package") ? "numa" : "package", o->index);
}

static int read_sources(struct monitor_metrics *m, struct buf *absent, struct err *e)
{
	struct source_request how = { .sets = m->settings->monitor_metrics_set, .root = "" };
	unsigned devices = 0, left_out = 0;

	if (monitor_events_head(m->counters.events, m->counters.nevents, &m->head, e) ||
	    sources_open(&m->sources, &how, &m->head, absent, e) || trace_head_check(&m->head, e))
		return -1;
	m->values = calloc(m->head.columns, sizeof(*m->values));
	m->is_shown = calloc(m->head.columns, sizeof(*m->is_shown));
	if (!m->values || !m->is_shown)
		return err_set(e, "out of memory");
	/* As many values of the sources as leave room for the events of the machine. */
	for (unsigned i = 0; i < m->sources.nmeters; i++) {
		const struct source_meter *s = &m->sources.meters[i];
		unsigned column;

		if (s->event < 0)
			continue;
		column = m->head.events[m->sources.events[s->event].index].column + s->object;
		if (m->is_shown[column])
			continue;
		m->is_shown[column] = *s->device ? devices < DEVICES_MAX :
						   m->nshown + m->counters.nevents < VALUES_MAX;
		left_out += !m->is_shown[column];
		*(*s->device ? &devices : &m->nshown) += m->is_shown[column];
	}
	if (left_out)
		log_info("MonitorMetrics has at most %u values of the tree and %u of devices: %u more are left out",
			 VALUES_MAX, DEVICES_MAX, left_out);
	return 0;
}

static int choose_domains(struct monitor_metrics *m, struct err *e)
{
	static const char *const levels[] = { "NUMANode", "Package", "Machine" };

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		int at = trace_head_level(&m->head, levels[i]);
		const struct trace_level *l = at < 0 ? NULL : &m->head.levels[at];
		unsigned pus = 0;

		/* Objects that have each PU once, few enough for the values. */
		for (unsigned k = 0; l && k < l->n; k++)
			pus += l->objects[k].count;
		if (!l || pus != m->ncpus || l->n * m->counters.nevents + m->nshown > VALUES_MAX)
			continue;
		if (!(m->domains = calloc(l->n, sizeof(*m->domains))))
			return err_set(e, "out of memory");
		for (; m->ndomains < l->n; m->ndomains++)
			domain_fill(&m->domains[m->ndomains], l->type, &l->objects[m->ndomains]);
		return 0;
	}
	return err_set(e, "this machine's topology has no level that all PUs are in");
}

struct monitor_metrics *monitor_metrics_new(const struct settings *s, struct err *e)
{
	struct monitor_metrics *m = calloc(1, sizeof(*m));
	size_t n = strlen(s->monitor_metrics);
	struct buf absent = {0};

	if (!m)
		return err_null(e, "out of memory");
	m->settings = s;
	/* Whatever else has a typing error in its place is not replaced. */
	if (*s->monitor_metrics != '/' || n <= strlen(SUFFIX) || strcmp(s->monitor_metrics + n - strlen(SUFFIX),
									SUFFIX)) {
		err_set(e, "expected an absolute path that ends in " SUFFIX ", as node_exporter reads");
		goto error;
	}
	if (trace_head_machine(&m->head, true, e) ||
	    !(m->cpus = trace_head_cpus(&m->head, &m->ncpus, e)) ||
	    counters_pu_open(&m->counters, s->monitor_metrics_set, m->cpus, m->ncpus, &absent, e) ||
	    read_sources(m, &absent, e) || choose_domains(m, e))
		goto error;
	unlink(s->monitor_metrics);
	m->last = clock_nanoseconds(CLOCK_MONOTONIC);
	m->due = m->last + s->monitor_metrics_interval * SECOND;
	log_info("%s: written every %u s, %u events of %u domains%s", s->monitor_metrics,
		 s->monitor_metrics_interval, m->counters.nevents, m->ndomains, absent.data ? absent.data : "");
	buf_free(&absent);
	return m;
error:
	buf_free(&absent);
	m->settings = NULL;	/* the file is not ours */
	err_within(e, "MonitorMetrics=%s", s->monitor_metrics);
	monitor_metrics_free(m);
	return NULL;
}

void monitor_metrics_free(struct monitor_metrics *m)
{
	if (!m)
		return;
	if (m->settings && unlink(m->settings->monitor_metrics) && errno != ENOENT)
		log_warning("%s: cannot be removed: %s", m->settings->monitor_metrics, strerror(errno));
	counters_pu_close(&m->counters);
	sources_close(&m->sources);
	trace_head_free(&m->head);
	free(m->domains);
	free(m->is_shown);
	free(m->values);
	free(m->cpus);
	free(m);
}

/* --- the text --- */

/* Lines of one metric are together, after those that describe it. */
struct metrics_family {
	const char *name, *help;
	bool is_begun;
};

static void family_begin(struct metrics_family *f, struct buf *out)
{
	if (!f->is_begun)
		buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n", f->name, f->help, f->name);
	f->is_begun = true;
}

/*
 * The sum over a domain's PUs that are online. False if a part of it is absent; online: how many there are.
 */
static bool domain_sum(const struct monitor_metrics *m, unsigned event, const struct metrics_domain *d, uint64_t *sum,
		       unsigned *online)
{
	const uint64_t *values = m->values + (size_t) event * m->ncpus;

	*sum = *online = 0;
	for (unsigned i = d->first; i < d->first + d->count; i++) {
		if (m->values[i] == TRACE_ABSENT)	/* of busy: offline */
			continue;
		if (values[i] == TRACE_ABSENT)
			return false;
		*sum += values[i];
		++*online;
	}
	return *online;
}

/* The first event is the busy time: a part of the time that there was. The others are counts. */
static void write_event(const struct monitor_metrics *m, unsigned event, uint64_t ns, struct buf *out)
{
	char name[TRACE_NAME + 32], help[TRACE_NAME + 64];
	struct metrics_family f = { name, help, false };

	snprintf(name, sizeof(name), event ? "topiary_node_%s_per_second" : "topiary_node_%s_ratio",
		 m->counters.events[event]->name);
	snprintf(help, sizeof(help), event ? "%s a second on the PUs of the domain." :
		 "Part of the time that the PUs of the domain were %s.", m->counters.events[event]->name);
	for (unsigned i = 0; i < m->ndomains; i++) {
		unsigned online;
		uint64_t sum;

		if (!domain_sum(m, event, &m->domains[i], &sum, &online))
			continue;
		family_begin(&f, out);
		buf_printf(out, "%s{domain=\"%s\"} %.6g\n", name, m->domains[i].name,
			   event ? sum * 1e9 / ns : (double) sum / ns / online);
	}
}

/* How a unit of a trace is written in Prometheus. */
static const struct metrics_unit {
	const char *unit, *suffix, *words;
	enum trace_kind kind;
	double factor;
} units[] = {
	{ "B", "bytes_per_second", "bytes a second", TRACE_COUNTER, 1 },
	{ "B", "bytes", "bytes", TRACE_GAUGE, 1 },
	{ "uJ", "watts", "watts", TRACE_COUNTER, 1e-6 },
	{ "uW", "watts", "watts", TRACE_GAUGE, 1e-6 },
	{ "%", "ratio", "a part of 1", TRACE_GAUGE, 0.01 },
};

static const struct metrics_unit *unit_of(const struct source_event *x)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(units[i].unit, x->unit) && units[i].kind == x->kind)
			return &units[i];
	return NULL;
}

/* Events of one name are one family, with a device as a label. */
static void write_sources(const struct monitor_metrics *m, uint64_t ns, struct buf *out)
{
	const struct source_event *all = m->sources.events, *end = all + m->sources.nevents;

	for (const struct source_event *x = all; x < end; x++) {
		const struct metrics_unit *u = unit_of(x);
		char name[TRACE_NAME + 32], help[TRACE_NAME + 64];
		struct metrics_family f = { name, help, false };
		const struct source_event *first = all;

		while (strcmp(first->name, x->name))
			first++;
		if (!u || first < x)
			continue;
		snprintf(name, sizeof(name), "topiary_node_%s_%s", x->name, u->suffix);
		snprintf(help, sizeof(help), "%s in %s, where it is counted.", x->name, u->words);
		for (; first < end; first++)
			if (!strcmp(first->name, x->name)) {
				/* One event at the objects where it is counted. */
				const struct trace_event *event = &m->head.events[first->index];
				const struct trace_level *l = &m->head.levels[event->level];

				for (unsigned i = 0; i < l->n; i++) {
					uint64_t value = m->values[event->column + i];
					struct metrics_domain d;

					if (!m->is_shown[event->column + i] || value == TRACE_ABSENT)
						continue;
					domain_fill(&d, l->type, &l->objects[i]);
					family_begin(&f, out);
					buf_printf(out, "%s{domain=\"%s\"", f.name, d.name);
					if (*first->device)
						buf_printf(out, ",device=\"%s\"", first->device);
					buf_printf(out, "} %.10g\n",
						   value * u->factor * (first->kind == TRACE_GAUGE ? 1 : 1e9 / ns));
				}
			}
	}
}

/* --- jobs --- */

struct metrics_job {
	char id[32];
	hwloc_bitmap_t cpus;	/* of its steps */
};

struct metrics_jobs {
	struct metrics_job list[JOBS_MAX];
	unsigned n, recorded;	/* recorded: steps */
};

static void job_note(void *user, const char *step, hwloc_const_bitmap_t cpus, bool is_recorded)
{
	struct metrics_jobs *jobs = user;
	size_t len = strspn(step, "0123456789");
	struct metrics_job *j = jobs->list;

	jobs->recorded += is_recorded;
	while (j < jobs->list + jobs->n && (strncmp(j->id, step, len) || j->id[len]))
		j++;
	if (j == jobs->list + jobs->n) {
		if (jobs->n == JOBS_MAX || len >= sizeof(j->id) || !(j->cpus = hwloc_bitmap_alloc()))
			return;
		memcpy(j->id, step, len);
		jobs->n++;
	}
	hwloc_bitmap_or(j->cpus, j->cpus, cpus);
}

static void write_steps(const struct monitor_metrics *m, const struct monitor_steps *steps, struct buf *out)
{
	struct metrics_family recorded = { "topiary_monitor_steps_recorded", "Steps of which a trace is recorded.",
					  false };
	struct metrics_family f = { "topiary_node_job_pus", "PUs of the domain that steps of the job have.", false };
	struct metrics_jobs jobs = {0};
	unsigned rows = settings_yes(m->settings->monitor_metrics_jobs) ? 0 : JOBS_MAX;

	monitor_steps_each(steps, job_note, &jobs);
	family_begin(&recorded, out);
	buf_printf(out, "%s %u\n", recorded.name, jobs.recorded);
	for (const struct metrics_job *j = jobs.list; j < jobs.list + jobs.n; j++) {
		for (const struct metrics_domain *d = m->domains; d < m->domains + m->ndomains &&
		     rows < JOBS_MAX; d++) {
			unsigned pus = 0;

			for (unsigned i = d->first; i < d->first + d->count; i++)
				pus += hwloc_bitmap_isset(j->cpus, m->cpus[i]);
			if (!pus)
				continue;
			family_begin(&f, out);
			buf_printf(out, "%s{domain=\"%s\",jobid=\"%s\"} %u\n", f.name, d->name, j->id, pus);
			rows++;
		}
		hwloc_bitmap_free(j->cpus);
	}
}

/* --- the file --- */

int64_t monitor_metrics_tick(struct monitor_metrics *m, const struct monitor_steps *steps)
{
	uint64_t now = clock_nanoseconds(CLOCK_MONOTONIC);
	struct buf text = {0};
	struct err e;
	int rc;

	if (!m)
		return -1;
	if (now < m->due)
		return m->due - now;
	uint64_t ns = now - m->last;
	struct metrics_family written = { "topiary_monitor_written_timestamp_seconds",
					  "When topiary-monitor wrote these values.", false };
	struct metrics_family interval = { "topiary_monitor_interval_seconds",
					   "The time that rates and ratios are means of.", false };

	counters_pu_read(&m->counters, ns, m->values);
	sources_read(&m->sources, &m->head, ns, m->values);
	for (unsigned event = 0; event < m->counters.nevents; event++)
		write_event(m, event, ns, &text);
	write_sources(m, ns, &text);
	write_steps(m, steps, &text);
	family_begin(&interval, &text);
	buf_printf(&text, "%s %.3f\n", interval.name, ns * 1e-9);
	family_begin(&written, &text);
	buf_printf(&text, "%s %.3f\n", written.name, clock_nanoseconds(CLOCK_REALTIME) * 1e-9);
	m->last = now;
	/* The counters that jobs use, and that they may have left by now. */
	if (m->counters.has_given_way && !m->given_way) {
		log_info("%s: hardware counters are given up for %u s: others use them", m->settings->monitor_metrics,
			 (unsigned) (RECLAIM_NS / SECOND));
		m->given_way = now;
	} else if (m->given_way && now - m->given_way >= RECLAIM_NS) {
		counters_pu_reclaim(&m->counters);
		m->given_way = 0;
	}
	rc = text.failed ? err_set(&e, "%s: out of memory", m->settings->monitor_metrics) :
		file_refresh(m->settings->monitor_metrics, text.data, text.len, 0644, &e);
	if (rc && !m->has_failed)
		log_warning("%s; tried again every %u s", e.text, m->settings->monitor_metrics_interval);
	m->has_failed = rc;
	buf_free(&text);
	while (m->due <= now)
		m->due += m->settings->monitor_metrics_interval * SECOND;
	return m->due - now;
}
