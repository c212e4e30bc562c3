/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "trace/tasks.h"

static void check_set(hwloc_const_bitmap_t set)
{
	if (!set || hwloc_bitmap_weight(set) < 0 || hwloc_bitmap_last(set) > (int) TRACE_TASKS_INDEX)
		abort();
}

static void check_task(const struct trace_task *t)
{
	check_set(t->pus);
	check_set(t->cores);
	check_set(t->numa);
	if (t->memory)
		check_set(t->memory);
	if (!is_printable(t->gpu) || !is_printable(t->nic_far))
		abort();
}

/* Each rank once, in order; no text that a terminal obeys; no index beyond the greatest. */
static void check_tasks(const struct trace_tasks *t)
{
	check_set(t->cores);
	if (!t->nodes || t->n > TRACE_TASKS_MAX || !is_printable(t->node) || !is_printable(t->step) ||
	    !is_printable(t->capture))
		abort();
	for (unsigned i = 0; i < t->n; i++) {
		if (i && t->list[i].rank <= t->list[i - 1].rank)
			abort();
		check_task(&t->list[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char begin[] =
		"{\"tasks\":1,\"node\":\"n\",\"cores\":\"0-7\"}\n"
		"{\"rank\":0,\"cpus_os\":\"0\",\"cores\":\"0\",\"numa\":\"0\","
		"\"memory\":\"bind:0\",\"gpu\":\"0 far\"}\n";
	char path[64], *text = begin_with(begin, data, &size);
	int fd = file_of(text, size);
	struct trace_tasks *t;
	struct err e = {""};

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	t = trace_tasks_read(path, &e);
	if (t ? *e.text != '\0' : !*e.text || strchr(e.text, '\n'))
		abort();
	if (t)
		check_tasks(t);
	trace_tasks_free(t);
	close(fd);
	free(text);
	return 0;
}
