/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "task.h"

#include <jansson.h>
#include <slurm/slurm.h>
#include <stdatomic.h>

#include "base/file.h"
#include "bind/gpu.h"
#include "bind/memory.h"
#include "bind/nic.h"
#include "hwview/machine.h"
#include "options.h"
#include "step/step.h"
#include "step/topology.h"

enum { MAX_TASKS = 4096, CELL = 512, RECORD = 8192 };

struct record {
	char text[RECORD];		/* a line of JSON, or the cells, each terminated by NUL */
};

static struct report {
	atomic_uint written;
	unsigned n;
	struct record record[];
} *report;

int report_open(spank_t sp, int, char **)
{
	uint32_t n;

	if (options.bind.report &&
	    (report = step_share(sp, sizeof(*report), sizeof(struct record), MAX_TASKS, &n)))
		report->n = n;
	return 0;
}

/* The state of a task as read back from the kernel. */
struct task_state {
	const struct task *task;
	hwloc_bitmap_t cpus;
	hwloc_topology_t node;		/* the whole node's; NULL: not available */
};

static void format_node(const struct task_state *, char *out)
{
	snprintf(out, CELL, "%s", step.node);
}

static void format_logical(const struct task_state *s, char *out)
{
	hwloc_bitmap_t logical = s->node ? hwloc_bitmap_alloc() : NULL;
	hwloc_obj_t pu = NULL;

	if (!logical)
		return;
	while ((pu = hwloc_get_next_obj_by_type(s->node, HWLOC_OBJ_PU, pu)))
		if (hwloc_bitmap_isset(s->cpus, pu->os_index))
			hwloc_bitmap_set(logical, pu->logical_index);
	hwloc_bitmap_list_snprintf(out, CELL, logical);
	hwloc_bitmap_free(logical);
}

static void format_os(const struct task_state *s, char *out)
{
	hwloc_bitmap_list_snprintf(out, CELL, s->cpus);
}

static void format_numa(const struct task_state *s, char *out)
{
	hwloc_topology_t t = s->node ? s->node : s->task->topology;
	hwloc_bitmap_t near = t ? hwloc_bitmap_alloc() : NULL;

	if (!near)
		return;
	if (!memory_nodes_choose(t, MEMORY_OFF, s->cpus, near, NULL))
		hwloc_bitmap_list_snprintf(out, CELL, near);
	hwloc_bitmap_free(near);
}

/* "preferred:8 hbm" */
static void format_memory(const struct task_state *s, char *out)
{
	hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
	const char *list;
	char tiers[64];

	memory_policy_text(out, CELL, NULL);
	if (s->node && nodes && (list = strchr(out, ':')) && !hwloc_bitmap_list_sscanf(nodes, list + 1)) {
		memory_nodes_tiers(s->node, nodes, tiers, sizeof(tiers));
		snprintf(out + strlen(out), CELL - strlen(out), "%s%s", *tiers ? " " : "", tiers);
	}
	hwloc_bitmap_free(nodes);
}

static void format_nic(const struct task_state *s, char *out)
{
	snprintf(out, CELL, "%s", s->task->nic);
}

static void format_gpu(const struct task_state *s, char *out)
{
	const struct task *t = s->task;
	char own[CELL];

	if (t->gpus ? gpu_subset(t->gpus, t->which_gpus[t->local], own, sizeof(own)) :
	    gpus_of_task(t->sp, s->node, own, sizeof(own), NULL))
		return;
	gpu_describe(s->node, own, s->cpus, out, CELL);
}

static void format_placed(const struct task_state *s, char *out)
{
	if (s->task->gpus)
		snprintf(out, CELL, "gpu%s", s->task->lacks_cores ? ", in a part of the job's cores" : "");
}

static void format_threads(const struct task_state *s, char *out)
{
	spank_getenv(s->task->sp, "OMP_NUM_THREADS", out, CELL);
}

static void format_rank(const struct task_state *s, char *out)
{
	snprintf(out, CELL, "%u", s->task->global);
}

/* Logical indices on the whole node. */
static void format_cores(const struct task_state *s, char *out)
{
	hwloc_bitmap_t cores = s->node ? hwloc_bitmap_alloc() : NULL;
	hwloc_obj_t core = NULL;

	if (!cores)
		return;
	while ((core = hwloc_get_next_obj_by_type(s->node, machine_core_type(s->node), core)))
		if (hwloc_bitmap_intersects(s->cpus, core->cpuset))
			hwloc_bitmap_set(cores, core->logical_index);
	hwloc_bitmap_list_snprintf(out, CELL, cores);
	hwloc_bitmap_free(cores);
}

static void format_nic_far(const struct task_state *s, char *out)
{
	char value[CELL];
	struct nics devices;

	/* Few tasks have such a variable, and to find devices takes longer than the rest. */
	for (const char *const *name = nics_variables; s->node && *name && !*out; name++)
		if (spank_getenv(s->task->sp, *name, value, sizeof(value)) == ESPANK_SUCCESS &&
		    !nics_find(s->node, &devices, NULL)) {
			nics_describe_far(&devices, value, s->cpus, out, CELL);
			nics_free(&devices);
		}
}

static const struct column {
	const char *title, *key;	/* in the table, in JSON */
	void (*format)(const struct task_state *s, char *out);
} columns[] = {
	{ "rank ", "rank", format_rank },
	{ "node ", "node", format_node },
	{ "CPUs L#", "cpus_logical", format_logical },
	{ "P#", "cpus_os", format_os },
	{ "NUMA ", "numa", format_numa },
	{ "memory ", "memory", format_memory },
	{ "NIC ", "nic", format_nic },
	{ "GPU ", "gpu", format_gpu },
	{ "threads ", "threads", format_threads },
	/* For NODE.tasks only. */
	{ NULL, "cores", format_cores },
	{ NULL, "nic_far", format_nic_far },
	{ NULL, "placed", format_placed },
};

enum { ALL_COLUMNS = sizeof(columns) / sizeof(*columns), COLUMNS = ALL_COLUMNS - 3 };

static void record_json(char (*cells)[CELL], unsigned n_columns, char *out)
{
	json_t *o = json_object(), *text;
	size_t n;

	json_object_set_new(o, columns[0].key, json_integer(atol(cells[0])));
	for (size_t i = 1; i < n_columns; i++) {
		text = *cells[i] ? json_string(cells[i]) : NULL;
		json_object_set_new(o, columns[i].key, text ? text : json_null());
	}
	n = json_dumpb(o, out, RECORD, JSON_COMPACT | JSON_ENSURE_ASCII);
	out[n < RECORD ? n : 0] = '\0';
	json_decref(o);
}

static int print_all(struct err *e)
{
	struct buf out = {0};
	int rc = 0;

	if (options.bind.report != REPORT_JSON) {
		size_t width[COLUMNS] = {0};

		for (unsigned i = 0; i < report->n; i++) {
			const char *cell = report->record[i].text;

			for (size_t c = 0; *cell && c < COLUMNS; c++, cell += strlen(cell) + 1)
				width[c] = strlen(cell) > width[c] ? strlen(cell) : width[c];
		}
		for (unsigned i = 0; i < report->n; i++) {
			const char *cell = report->record[i].text;

			for (size_t c = 0; *cell && c < COLUMNS; c++, cell += strlen(cell) + 1)
				buf_printf(&out, "%s%s%-*s", c ? "  " : "", columns[c].title,
					   c + 1 < COLUMNS ? (int) width[c] : 0, cell);
			buf_puts(&out, *report->record[i].text ? "\n" : "");
		}
	}
	for (unsigned i = 0; options.bind.report == REPORT_JSON && i < report->n; i++)
		if (*report->record[i].text)
			buf_printf(&out, "%s\n", report->record[i].text);
	if (out.failed || file_write(STDERR_FILENO, out.data, out.len))
		rc = err_set(e, "--topo-report: the report of this node cannot be written to stderr");
	buf_free(&out);
	return rc;
}

/* The last task of the node prints all. cells: NULL if there is nothing to report of this one. */
static int report_add(const struct task *t, char (*cells)[CELL], struct err *e)
{
	char *out;
	size_t n = 0;

	if (!report || t->nlocal != report->n)
		return t->local ? 0 : t->nlocal > MAX_TASKS ?
		       err_set(e, "--topo-report: no report of this node: its %u tasks are more than %d", t->nlocal,
			       MAX_TASKS) :
		       err_set(e, "--topo-report: no report of this node: memory is short");
	out = report->record[t->local].text;
	if (cells && options.bind.report == REPORT_JSON)
		record_json(cells, COLUMNS, out);
	else
		for (size_t i = 0; cells && i < COLUMNS && n < RECORD; i++)
			n += snprintf(out + n, RECORD - n, "%s", *cells[i] ? cells[i] : "-") + 1;
	return atomic_fetch_add(&report->written, 1) + 1 == report->n ? print_all(cells ? e : NULL) : 0;
}

int report_task(const struct task *t, struct err *e)
{
	struct task_state s = { .task = t };
	char (*cells)[CELL], line[RECORD];
	int rc = -1;

	if (!options.bind.report && !task_lines_are_open())
		return 0;
	cells = calloc(ALL_COLUMNS, sizeof(*cells));
	s.cpus = hwloc_bitmap_alloc();
	if (step_adopt_node(&s.node, NULL))
		s.node = NULL;
	if (!cells || !s.cpus)
		err_set(e, "out of memory");
	else
		rc = machine_bound(0, s.cpus, e);
	for (size_t i = 0; !rc && i < ALL_COLUMNS; i++)
		columns[i].format(&s, cells[i]);
	if (!rc && task_lines_are_open()) {
		record_json(cells, ALL_COLUMNS, line);
		task_lines_set(t->local, line);
	}
	if (options.bind.report && report_add(t, rc ? NULL : cells, rc ? NULL : e))
		rc = -1;
	hwloc_bitmap_free(s.cpus);
	if (s.node)
		hwloc_topology_destroy(s.node);
	free(cells);
	return rc;
}
