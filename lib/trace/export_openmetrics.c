/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/export_forms.h"

#define PART 1024u	/* values of a series read at once */

/*
 * OpenMetrics wants the samples of a series together, and a trace has those of a tick together. The values are turned
 * round in a temporary file: [series][tick], series being the objects of one metric after those of another.
 */
struct turned {
	int fd;
	uint64_t *times;	/* of all ticks, since the trace's start */
	uint64_t ticks, filled;
};

/* --- names --- */

/* Is it an event that adds up, whose value depends on the mode? */
static bool is_counter(const struct trace_view *v, const struct trace_metric *m)
{
	int event = m->formula.nevents == 1 && m->formula.nsteps == 1 ?
		trace_head_event(v->head, m->formula.events[0]) : -1;

	return event >= 0 && v->head->events[event].kind == TRACE_COUNTER;
}

static void family_name(const struct trace_view *v, const struct trace_metric *m, char name[static EXPORT_NAME])
{
	static const char *const suffixes[] = {
		[TRACE_RATE] = "_per_second", [TRACE_PER_TICK] = "_per_tick", [TRACE_ACCUMULATED] = "_accumulated",
	};

	snprintf(name, EXPORT_NAME, "topiary_trace_%s%s", m->formula.name, is_counter(v, m) ? suffixes[v->mode] : "");
	for (char *p = name; *p; p++)
		if (!isalnum((unsigned char) *p))
			*p = '_';
}

static bool is_family(const struct trace_view *v, const struct trace_metric *m, const char *name)
{
	char other[EXPORT_NAME];

	family_name(v, m, other);
	return !strcmp(other, name);
}

/* The first metric of a family stands for it; the others are of other levels. 0 or -1. */
static int families_check(const struct trace_view *v, struct err *e)
{
	char name[EXPORT_NAME];

	for (const struct trace_metric *m = v->metrics; m < v->metrics + v->n; m++) {
		family_name(v, m, name);
		for (const struct trace_metric *other = v->metrics; other < m; other++)
			if (other->level == m->level && is_family(v, other, name))
				return err_set(e, "%s and %s are both %s at level %s in OpenMetrics: rename the "
					       "formula", other->formula.name, m->formula.name, name,
					       v->head->levels[m->level].type);
	}
	return 0;
}

/* --- turning round --- */

static int turned_open(struct turned *u, const struct trace *t, struct err *e)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];

	u->ticks = t->ticks;
	snprintf(path, sizeof(path), "%s/topiary-export-XXXXXX", folder && *folder ? folder : "/tmp");
	if (!(u->times = calloc(u->ticks + 1, sizeof(*u->times))))
		return err_set(e, "out of memory");
	if ((u->fd = mkostemp(path, O_CLOEXEC)) < 0)
		return err_set(e, "%s: %s", path, strerror(errno));
	unlink(path);
	return 0;
}

static int turned_add(struct turned *u, const struct trace_view *v, const struct trace_block *b, struct err *e)
{
	uint64_t series = 0;
	size_t len = b->n * sizeof(double);

	for (const struct trace_metric *m = v->metrics; m < v->metrics + v->n; m++)
		for (unsigned i = 0; i < m->n; i++, series++) {
			off_t at = (series * u->ticks + u->filled) * sizeof(double);

			errno = 0;
			if (pwrite(u->fd, m->values + (size_t) i * b->n, len, at) != (ssize_t) len)
				return err_set(e, "a temporary file in TMPDIR: %s",
					       errno ? strerror(errno) : "no space is left");
		}
	memcpy(u->times + u->filled, b->times, b->n * sizeof(*b->times));
	u->filled += b->n;
	return 0;
}

static int turn(struct turned *u, const struct trace *t, struct trace_view *v, struct err *e)
{
	struct trace_block b = {0};
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < t->nblocks; i++)
		rc = trace_read(t, i, &b, e) || trace_view_block(v, &b, e) || turned_add(u, v, &b, e) ? -1 : 0;
	trace_block_free(&b);
	return rc;
}

/* --- the text --- */

static void write_label(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		putc(*text, out);
	}
}

static void write_time(int64_t start, uint64_t since, FILE *out)
{
	int64_t ns = (int64_t) ((uint64_t) start + since);
	uint64_t whole = ns < 0 ? -(uint64_t) ns : (uint64_t) ns;

	fprintf(out, " %s%" PRIu64 ".%09" PRIu64 "\n", ns < 0 ? "-" : "", whole / 1000000000, whole % 1000000000);
}

static int write_series(const struct turned *u, uint64_t series, const struct trace_head *h, const char *labels,
			FILE *out, struct err *e)
{
	double part[PART];

	for (uint64_t at = 0; at < u->filled && !ferror(out); at += PART) {
		unsigned n = u->filled - at < PART ? u->filled - at : PART;

		if (pread(u->fd, part, n * sizeof(*part), (series * u->ticks + at) * sizeof(*part)) !=
		    (ssize_t) (n * sizeof(*part)))
			return err_set(e, "a temporary file in TMPDIR cannot be read");
		for (unsigned i = 0; i < n; i++) {
			if (isnan(part[i]))
				continue;
			fputs(labels, out);
			export_number(part[i], out);
			write_time(h->start, u->times[at + i], out);
		}
	}
	return 0;
}

/* All of one metric, whose first series has this number. */
static int write_metric(const struct turned *u, uint64_t series, const struct trace_view *v,
			const struct trace_metric *m, const char *name, FILE *out, struct err *e)
{
	const struct trace_level *l = &v->head->levels[m->level];
	char *labels = NULL;
	size_t len;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < m->n; i++) {
		FILE *text = open_memstream(&labels, &len);

		if (!text)
			return err_set(e, "out of memory");
		fprintf(text, "%s{node=\"", name);
		write_label(v->head->node, text);
		fprintf(text, "\",level=\"%s\",object=\"%u\"} ", l->type, l->objects[i].index);
		rc = fclose(text) ? err_set(e, "out of memory") :
			write_series(u, series + i, v->head, labels, out, e);
		free(labels);
	}
	return rc;
}

static int write_family(const struct turned *u, const struct trace_view *v, const char *name, FILE *out, struct err *e)
{
	uint64_t series = 0;
	int rc = 0;

	fprintf(out, "# TYPE %s gauge\n", name);
	for (const struct trace_metric *m = v->metrics; rc == 0 && m < v->metrics + v->n; series += m++->n)
		if (is_family(v, m, name))
			rc = write_metric(u, series, v, m, name, out, e);
	return rc;
}

static bool is_first(const struct trace_view *v, const struct trace_metric *m, const char *name)
{
	for (const struct trace_metric *other = v->metrics; other < m; other++)
		if (is_family(v, other, name))
			return false;
	return true;
}

int export_openmetrics(const struct trace *t, struct trace_view *v, FILE *out, struct err *e)
{
	struct turned u = { .fd = -1 };
	char name[EXPORT_NAME];
	int rc = families_check(v, e) || turned_open(&u, t, e) || turn(&u, t, v, e) ? -1 : 0;

	for (const struct trace_metric *m = v->metrics; rc == 0 && m < v->metrics + v->n; m++) {
		family_name(v, m, name);
		if (is_first(v, m, name))
			rc = write_family(&u, v, name, out, e);
	}
	if (rc == 0)
		fputs("# EOF\n", out);
	if (u.fd >= 0)
		close(u.fd);
	free(u.times);
	return rc;
}
