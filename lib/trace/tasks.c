/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/tasks.h"

#include <jansson.h>

#include "base/array.h"
#include "base/file.h"
#include "base/number.h"
#include "base/order.h"
#include "base/printable.h"

/* "0-3,8"; "" and what is no list are empty. hwloc's own parser sets no bound to an index. NULL: no memory. */
static hwloc_bitmap_t list_read(const char *text)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	unsigned first, last;

	for (const char *at = text; set && at && !number_read_range(&at, TRACE_TASKS_INDEX, &first, &last);
	     at = *at == ',' ? at + 1 : NULL)
		if (hwloc_bitmap_set_range(set, first, last)) {
			hwloc_bitmap_free(set);
			return NULL;
		}
	return set;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static void text_copy(char *out, size_t size, const json_t *o, const char *key)
{
	snprintf(out, size, "%s", text_of(o, key));
	printable(out);
}

static void task_free(struct trace_task *t)
{
	hwloc_bitmap_free(t->pus);
	hwloc_bitmap_free(t->cores);
	hwloc_bitmap_free(t->numa);
	hwloc_bitmap_free(t->memory);
}

static int task_read(const json_t *o, struct trace_task *t)
{
	const char *memory = text_of(o, "memory");
	bool is_bound = !strncmp(memory, "bind:", 5);

	*t = (struct trace_task){ .rank = json_integer_value(json_object_get(o, "rank")),
				  .pus = list_read(text_of(o, "cpus_os")), .cores = list_read(text_of(o, "cores")),
				  .numa = list_read(text_of(o, "numa")),
				  .memory = is_bound ? list_read(memory + 5) : NULL };
	text_copy(t->gpu, sizeof(t->gpu), o, "gpu");
	t->lacks_cores = !strcmp(text_of(o, "placed"), "gpu, in a part of the job's cores");
	t->by_gpu = t->lacks_cores || !strcmp(text_of(o, "placed"), "gpu");
	text_copy(t->nic_far, sizeof(t->nic_far), o, "nic_far");
	if (t->pus && t->cores && t->numa && (t->memory || !is_bound))
		return 0;
	task_free(t);
	return -1;
}

static int head_read(const json_t *o, struct trace_tasks *t, struct err *e)
{
	json_int_t nodes = json_integer_value(json_object_get(o, "nodes"));

	if (json_integer_value(json_object_get(o, "tasks")) != 1)
		return err_set(e, "not a list of a step's tasks");
	text_copy(t->node, sizeof(t->node), o, "node");
	text_copy(t->step, sizeof(t->step), o, "step");
	text_copy(t->capture, sizeof(t->capture), o, "capture");
	t->nodes = nodes > 0 && nodes < UINT32_MAX ? nodes : 1;
	return (t->cores = list_read(text_of(o, "cores"))) ? 0 : err_set(e, "out of memory");
}

static int task_add(const json_t *o, struct trace_tasks *t, struct err *e)
{
	json_int_t rank = json_integer_value(json_object_get(o, "rank"));
	struct trace_task *new;

	if (!json_is_integer(json_object_get(o, "rank")) || rank < 0 || rank > UINT32_MAX)
		return err_set(e, "a task without a rank");
	if (t->n == TRACE_TASKS_MAX)
		return err_set(e, "more than %u tasks", TRACE_TASKS_MAX);
	if (array_reserve(t->list, t->n, 1) || task_read(o, &t->list[t->n]))
		return err_set(e, "out of memory");
	new = &t->list[t->n++];
	t->bits += hwloc_bitmap_last(new->pus) + hwloc_bitmap_last(new->cores) + hwloc_bitmap_last(new->numa) +
		(new->memory ? hwloc_bitmap_last(new->memory) : -1) + UINT64_C(4);
	return t->bits > TRACE_TASKS_BITS ? err_set(e, "its lists of PUs, cores and NUMA nodes are too long") : 0;
}

ORDER(by_rank, struct trace_task, COMPARE(x->rank, y->rank))

static int text_read(const char *text, struct trace_tasks *t, struct err *e)
{
	unsigned number = 0;

	for (size_t len; *text; text += len + (text[len] == '\n')) {
		json_t *o = json_loadb(text, len = strcspn(text, "\n"), 0, NULL);
		int rc = !json_is_object(o) ? err_set(e, "not a list of a step's tasks") :
			number ? task_add(o, t, e) : head_read(o, t, e);

		json_decref(o);
		number++;
		if (rc)
			return err_within(e, "line %u", number);
	}
	if (!number)
		return err_set(e, "not a list of a step's tasks");
	if (t->n)
		qsort(t->list, t->n, sizeof(*t->list), by_rank);
	for (unsigned i = 1; i < t->n; i++)
		if (t->list[i].rank == t->list[i - 1].rank)
			return err_set(e, "rank %u twice", t->list[i].rank);
	return 0;
}

struct trace_tasks *trace_tasks_read(const char *path, struct err *e)
{
	struct trace_tasks *t = calloc(1, sizeof(*t));
	struct buf text = {0};
	int rc = !t ? err_set(e, "out of memory") : file_read(path, TRACE_TASKS_BYTES, &text, e);

	if (rc == 0 && text_read(text.data ? text.data : "", t, e))
		rc = err_within(e, "%s", path);
	buf_free(&text);
	if (rc == 0)
		return t;
	trace_tasks_free(t);
	return NULL;
}

void trace_tasks_free(struct trace_tasks *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < t->n; i++)
		task_free(&t->list[i]);
	hwloc_bitmap_free(t->cores);
	free(t->list);
	free(t);
}
