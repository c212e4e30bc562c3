/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "cmd_cores.h"
#include "cmd_verdict.h"

/* Which records of a job: all, one task of an array, or one component of a heterogeneous job. */
struct which {
	const char *text;
	unsigned job, task, component;	/* NO_VAL: any */
};

static int which_parse(const char *text, struct which *out)
{
	struct which w = { .text = text, .task = NO_VAL, .component = NO_VAL };
	int used = 0;

	if (sscanf(text, "%9u%n", &w.job, &used) != 1 || !w.job)
		return -1;
	text += used;
	used = 0;
	if (*text && sscanf(text, "_%9u%n", &w.task, &used) != 1 && sscanf(text, "+%9u%n", &w.component, &used) != 1)
		return -1;
	if (text[used] || strspn(w.text, "0123456789_+") != strlen(w.text))
		return -1;
	*out = w;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct which *w = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (w->text)
			return ARGP_ERR_UNKNOWN;
		if (which_parse(arg, w))
			argp_error(state, "'%s' is no job: 12, 12_3 (a task of an array) or 12+1 (part of a heterogeneous job)", arg);
		return 0;
	case ARGP_KEY_END:
		if (!w->text)
			argp_error(state, "which job?");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	NULL, parse, "JOBID", "Tell why a job has the cores that it has, or why it waits, as slurmctld decided it.", NULL, NULL, NULL,
};

/* A record of slurmctld's, and the verdict in it. */
struct told {
	const job_info_t *job;
	int rc;			/* of verdict_read: 1 when there is none */
	struct verdict verdict;
	struct err why;
};

/* Whether a list of an array's tasks has one: "0-7:2,12%4"; a long one ends with "...". */
static bool tasks_have(const char *list, unsigned task)
{
	bool more = strstr(list, "...");

	for (const char *at = list; at && !more; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		unsigned from, to, step = 1;
		int n = sscanf(at, "%9u-%9u:%9u", &from, &to, &step);

		if (n < 1)
			return false;
		if (task >= from && task <= (n > 1 ? to : from) && step && (task - from) % step == 0)
			return true;
	}
	return more;
}

/* A task that has not been tried yet is part of the record of all those of its array. */
static bool is_meant(const job_info_t *j, const struct which *w)
{
	if (w->task != NO_VAL)
		return j->array_task_id == w->task || (j->array_task_str && tasks_have(j->array_task_str, w->task));
	return w->component == NO_VAL || (j->het_job_id && j->het_job_offset == w->component);
}

static int told_compare(const void *a, const void *b)
{
	const job_info_t *one = ((const struct told *) a)->job, *other = ((const struct told *) b)->job;

	if (one->array_task_id != other->array_task_id)
		return one->array_task_id < other->array_task_id ? -1 : 1;
	return one->job_id < other->job_id ? -1 : one->job_id > other->job_id;
}

static void read_verdict(struct told *t)
{
	bool pending = (t->job->job_state & JOB_STATE_BASE) == JOB_PENDING;

	t->rc = verdict_read(t->job->system_comment, &t->verdict, &t->why);
	/* What is left of an array has the comment of the task split off last, a job put back into the queue that of its last run. */
	if (t->rc == 0 && pending && t->verdict.outcome != VERDICT_WAITS)
		t->rc = 1;
	if (t->rc > 0)
		err_set(&t->why, "no verdict: Topiary's select plugin has not placed it yet, leaves it to Slurm (fit off), or is not "
			"loaded");
}

/* The records that are meant, in the order of tasks and components; the caller frees them. 0 or -1. */
static int tell_all(const job_info_msg_t *m, const struct which *w, struct told **out, size_t *n, struct err *e)
{
	struct told *list = calloc(m->record_count + 1, sizeof(*list));

	*n = 0;
	if (!list)
		return err_set(e, "out of memory");
	for (uint32_t i = 0; i < m->record_count; i++) {
		struct told *t = &list[*n];

		if (!is_meant(&m->job_array[i], w))
			continue;
		t->job = &m->job_array[i];
		read_verdict(t);
		++*n;
	}
	qsort(list, *n, sizeof(*list), told_compare);
	*out = list;
	return 0;
}

/* "12", "12_3", "12_[4-9]", "12+1" */
static void name_of(const job_info_t *j, struct buf *out)
{
	if (j->array_task_str)
		buf_printf(out, "%u_[%s]", j->array_job_id, j->array_task_str);
	else if (j->array_task_id != NO_VAL)
		buf_printf(out, "%u_%u", j->array_job_id, j->array_task_id);
	else if (j->het_job_id)
		buf_printf(out, "%u+%u", j->het_job_id, j->het_job_offset);
	else
		buf_printf(out, "%u", j->job_id);
}

static const char *state_of(const job_info_t *j)
{
	switch (j->job_state & JOB_STATE_BASE) {
	case JOB_PENDING:
		return "pending";
	case JOB_RUNNING:
		return "running";
	case JOB_SUSPENDED:
		return "suspended";
	}
	return "ended";
}

static int print(struct table *t, struct err *e)
{
	int rc = table_print(t, stdout);

	table_free(t);
	return rc ? err_set(e, "the table cannot be written") : 0;
}

static int print_one(const struct told *told, struct err *e)
{
	static const struct table_column columns[] = { { "", TABLE_LEFT }, { "", TABLE_LEFT }, {0} };
	struct table *t = table_new(columns);
	struct buf name = {0};

	name_of(told->job, &name);
	table_cell(t, "job");
	table_colour(t, COLOUR_FAINT);
	table_cell(t, "%s, %s: %s", name.failed ? "?" : name.data, state_of(told->job), verdict_outcome(&told->verdict));
	table_colour(t, COLOUR_BOLD);
	buf_free(&name);
	verdict_tell(&told->verdict, t);
	return print(t, e);
}

static void add_row(struct table *t, const struct told *told)
{
	const struct verdict *v = &told->verdict;
	struct buf name = {0}, asked = {0};

	name_of(told->job, &name);
	verdict_asked(v, &asked);
	table_cell(t, "%s", name.failed ? "?" : name.data);
	table_cell(t, "%s", state_of(told->job));
	table_cell(t, "%s", told->rc ? "-" : outcome_name(v->outcome));
	table_cell(t, "%s", told->rc ? "-" : asked.failed ? "?" : asked.data);
	table_cell(t, "%s", told->rc ? told->why.text : *v->cores ? v->cores : v->reason);
	buf_free(&asked);
	buf_free(&name);
}

static int print_table(const struct told *list, size_t n, struct err *e)
{
	static const struct table_column columns[] = {
		{ "JOB", TABLE_LEFT }, { "STATE", TABLE_LEFT }, { "VERDICT", TABLE_LEFT }, { "ASKED", TABLE_LEFT },
		{ "WHERE OR WHY", TABLE_CUT }, {0},
	};
	struct table *t = table_new(columns);

	for (size_t i = 0; i < n; i++)
		add_row(t, &list[i]);
	return print(t, e);
}

static json_t *record_json(const struct told *told)
{
	struct buf name = {0};
	json_t *j;

	name_of(told->job, &name);
	j = json_pack("{s:s?, s:s, s:o, s:s?}", "job", name.data, "state", state_of(told->job), "verdict",
		      told->rc ? json_null() : verdict_json(&told->verdict), "error", told->rc ? told->why.text : NULL);
	buf_free(&name);
	return j;
}

static int print_json(const struct told *list, size_t n, struct err *e)
{
	json_t *jobs = json_array(), *answer = json_pack("{s:o}", "jobs", jobs);
	int rc;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(jobs, record_json(&list[i]));
	rc = cmd_print_json(answer, e);
	json_decref(answer);
	return rc;
}

static bool any_told(const struct told *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!list[i].rc)
			return true;
	return false;
}

static int print_told(const struct cmd *c, const struct told *list, size_t n, struct err *e)
{
	if (!n)
		return err_set(e, "slurmctld knows the job, but no such part of it");
	if (!any_told(list, n))
		return err_set(e, "%s", list->why.text);
	if (c->json)
		return print_json(list, n, e);
	return n == 1 ? print_one(list, e) : print_table(list, n, e);
}

static int why(const struct cmd *c, const struct which *w, struct err *e)
{
	job_info_msg_t *m = NULL;
	struct told *list = NULL;
	size_t n;
	int rc;

	slurm_init(NULL);
	if (cores_load(w->job, &m)) {
		if (errno != ESLURM_INVALID_JOB_ID)
			return err_set(e, "%s", slurm_strerror(errno));
		return err_set(e, "slurmctld does not know it, or no longer; `sacct -j %s -o JobID,SystemComment%%512` may", w->text);
	}
	rc = tell_all(m, w, &list, &n, e);
	if (rc == 0)
		rc = print_told(c, list, n, e);
	free(list);
	slurm_free_job_info_msg(m);
	return rc;
}

int cmd_why(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct which w = {0};

	if (cmd_parse(c, &argp, &w, argc, argv, e))
		return -1;
	return why(c, &w, e) ? err_within(e, "job %s", w.text) : 0;
}
