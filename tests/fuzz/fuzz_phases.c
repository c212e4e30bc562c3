/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "trace/phases.h"
#include "trace/writer.h"

#define TICKS 150u

/* A trace of one PU with a tick each 10 ns. The descriptor. */
static int trace_made(void)
{
	static const char head[] =
		"{\"version\":1,\"node\":\"n\",\"topology\":\"\",\"start\":0,\"period\":10,\"levels\":["
		"{\"type\":\"PU\",\"objects\":[[0,0,0,1]]}],"
		"\"events\":[{\"name\":\"a\",\"unit\":\"\",\"kind\":\"counter\",\"level\":\"PU\"}]}";
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct trace_writer *w;
	struct trace_head h;
	struct err e;

	if (trace_head_parse(head, strlen(head), &h, &e) || !(w = trace_writer_new(dup(fd), "made", &h, &e)))
		abort();
	for (uint64_t i = 1; i <= TICKS; i++)
		if (trace_writer_tick(w, 10 * i, &i, &e))
			abort();
	if (trace_writer_close(w, &e))
		abort();
	trace_head_free(&h);
	return fd;
}

/* The ticks that are left follow each other, and have the values that they had. */
static void check_trace(const struct trace *t, bool is_joined)
{
	struct trace_block b = {0};
	uint64_t ticks = 0, last = 0;
	struct err e;

	for (unsigned i = 0; i < t->nblocks; i++) {
		if (trace_read(t, i, &b, &e) || b.begin < last || (is_joined && b.begin != last))
			abort();
		for (unsigned k = 0; k < b.n; k++, ticks++) {
			if (b.times[k] != (k ? b.times[k - 1] : b.begin) + 10 ||
			    (!is_joined && b.values[k] * 10 != b.times[k]))
				abort();
			last = b.times[k];
		}
	}
	if (ticks != t->ticks || last != t->end || !ticks)
		abort();
	trace_block_free(&b);
}

static void check_phases(const struct trace_phases *p, const struct trace *t)
{
	for (unsigned i = 0; i < p->n; i++)
		if (!*p->list[i].name || !is_printable(p->list[i].name) || p->list[i].least > p->list[i].greatest ||
		    p->list[i].processes > p->processes)
			abort();
	for (size_t i = 0; i < p->nspans; i++)
		if (p->spans[i].end > t->end || p->spans[i].begin > p->spans[i].end ||
		    p->spans[i].phase >= p->n ||
		    (i && p->spans[i].begin < p->spans[i - 1].begin))
			abort();
	for (uint64_t at = 0; at < t->end; at += 35)
		if (trace_phases_at(p, at, at + 10) >= (int) p->n)
			abort();
}

static void read_phases(const char *path, int made, bool is_joined)
{
	struct err e;
	struct trace *t = trace_open_fd(dup(made), "made", &e);
	struct trace_phases *p = t ? trace_phases_read(path, t, &e) : NULL;

	if (!t)
		abort();
	if (p) {
		check_phases(p, t);
		if (trace_phases_restrict(p, p->n - 1, t, is_joined, &e) == 0)
			check_trace(t, is_joined);
	}
	trace_phases_free(p);
	trace_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int made = -1;
	char path[64], *text = begin_with("P 1 00000001 1 0 0 0\nB 00000001 1 100 a\n", data, &size);
	int fd = file_of(text, size);

	if (made < 0)
		made = trace_made();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_phases(path, made, false);
	read_phases(path, made, true);
	close(fd);
	free(text);
	return 0;
}
