/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "cores.h"
#include "verdict.h"

/* Selects records of a job: all, one array task, or one component of a heterogeneous job. */
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

struct args {
	const char *text;
	struct which which;
};

static void check_job(void *args, struct argp_state *state)
{
	struct args *a = args;

	if (which_parse(a->text, &a->which))
		argp_error(state, "'%s' is not a job ID: expected 12, 12_3 (an array task) or 12+1 (a component of a "
			   "heterogeneous job)", a->text);
}

static const struct cmd_syntax syntax = {
	NULL, "JOBID",
	"Explain why a job has its cores, or why it waits, from the verdict that slurmctld's plugin recorded.",
	CMD_TEXT(text), "a JOBID", check_job,
};

/* A job record of slurmctld and the verdict in it. */
struct record {
	const job_info_t *job;
	int rc;			/* of verdict_read: 1 when there is none */
	struct verdict verdict;
	struct err why;
};

/*
 * Whether a list of array tasks, "0-7:2,12%4", contains one; slurmctld truncates long lists with "...", which matches.
 */
static bool task_list_has(const char *list, unsigned task)
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

/* Array tasks that have not been considered yet share one record. */
static bool is_selected(const job_info_t *j, const struct which *w)
{
	if (w->task != NO_VAL)
		return j->array_task_id == w->task || (j->array_task_str && task_list_has(j->array_task_str, w->task));
	return w->component == NO_VAL || (j->het_job_id && j->het_job_offset == w->component);
}

static int record_compare(const void *a, const void *b)
{
	const job_info_t *one = ((const struct record *) a)->job, *other = ((const struct record *) b)->job;

	if (one->array_task_id != other->array_task_id)
		return one->array_task_id < other->array_task_id ? -1 : 1;
	return one->job_id < other->job_id ? -1 : one->job_id > other->job_id;
}

static void record_read(struct record *t)
{
	uint32_t state = t->job->job_state & JOB_STATE_BASE;
	bool pending = state == JOB_PENDING, started = t->job->nodes && *t->job->nodes;

	t->rc = verdict_read(t->job->system_comment, &t->verdict, &t->why);
	/*
	 * The record of an array's remaining tasks has the comment of the last task split off; a requeued job that of
	 * its last run.
	 */
	if (t->rc == 0 && pending && t->verdict.outcome != VERDICT_WAITS)
		t->rc = 1;
	if (t->rc > 0 && pending)
		err_set(&t->why, "no verdict: it is pending; one is written when it starts, or when it waits for what "
			"it requires");
	else if (t->rc > 0 && state > JOB_SUSPENDED && !started)
		err_set(&t->why, "no verdict: it ended before it started");
	else if (t->rc > 0)
		err_set(&t->why, "no verdict: Slurm placed it when the site's TopoFit was off, when slurmctld had not"
			" loaded Topiary's select plugin, or when that had refused topiary.conf (`topiary doctor` on"
			" the controller names the line)");
}

/* The selected records, ordered by task and component; the caller frees them. 0 or -1. */
static int records_select(const job_info_msg_t *m, const struct which *w, struct record **out, size_t *n, struct err *e)
{
	struct record *list = calloc(m->record_count + 1, sizeof(*list));

	*n = 0;
	if (!list)
		return err_set(e, "out of memory");
	for (uint32_t i = 0; i < m->record_count; i++) {
		struct record *t = &list[*n];

		if (!is_selected(&m->job_array[i], w))
			continue;
		t->job = &m->job_array[i];
		record_read(t);
		++*n;
	}
	qsort(list, *n, sizeof(*list), record_compare);
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

static int print_one(const struct record *record, struct err *e)
{
	static const struct table_column columns[] = { { "", TABLE_LEFT }, { "", TABLE_LEFT }, {0} };
	struct table *t = table_new(columns);
	const char *state = state_of(record->job);
	struct buf name = {0};

	name_of(record->job, &name);
	table_label(t, "job");
	table_cell(t, "%s, %s: %s", name.failed ? "?" : name.data, state,
		   record->verdict.outcome == VERDICT_WAITS && !strcmp(state, "ended") ? "waited" :
		   verdict_outcome(&record->verdict));
	table_colour(t, COLOUR_BOLD);
	buf_free(&name);
	verdict_add_rows(&record->verdict, t);
	return table_finish(t, e);
}

static void add_row(struct table *t, const struct record *record)
{
	const struct verdict *v = &record->verdict;
	struct buf name = {0}, asked = {0};

	name_of(record->job, &name);
	verdict_asked(v, &asked);
	table_cell(t, "%s", name.failed ? "?" : name.data);
	table_cell(t, "%s", state_of(record->job));
	table_cell(t, "%s", record->rc ? "-" : outcome_name(v->outcome));
	table_cell(t, "%s", record->rc ? "-" : asked.failed ? "?" : asked.data);
	table_cell(t, "%s", record->rc ? record->why.text : *v->cores ? v->cores : v->reason);
	buf_free(&asked);
	buf_free(&name);
}

static int print_table(const struct record *list, size_t n, struct err *e)
{
	static const struct table_column columns[] = {
		{ "JOB", TABLE_LEFT }, { "STATE", TABLE_LEFT }, { "VERDICT", TABLE_LEFT }, { "ASKED", TABLE_LEFT },
		{ "WHERE OR WHY", TABLE_CUT }, {0},
	};
	struct table *t = table_new(columns);

	for (size_t i = 0; i < n; i++)
		add_row(t, &list[i]);
	return table_finish(t, e);
}

static json_t *record_json(const struct record *record)
{
	struct buf name = {0};
	json_t *j;

	name_of(record->job, &name);
	j = json_pack("{s:s?, s:s, s:o, s:s?}", "job", name.data, "state", state_of(record->job), "verdict",
		      record->rc ? json_null() : verdict_json(&record->verdict), "error",
		      record->rc ? record->why.text : NULL);
	buf_free(&name);
	return j;
}

static int print_json(const struct record *list, size_t n, struct err *e)
{
	json_t *jobs = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(jobs, record_json(&list[i]));
	return cmd_print_new(json_pack("{s:o}", "jobs", jobs), e);
}

static bool any_verdict(const struct record *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!list[i].rc)
			return true;
	return false;
}

static int print_records(const struct cmd *c, const struct record *list, size_t n, struct err *e)
{
	if (!n)
		return err_set(e, "slurmctld has this job, but not this task or component");
	if (!any_verdict(list, n))
		return err_set(e, "%s", list->why.text);
	if (c->json)
		return print_json(list, n, e);
	return n == 1 ? print_one(list, e) : print_table(list, n, e);
}

static int job_explain(const struct cmd *c, const struct which *w, struct err *e)
{
	job_info_msg_t *m = NULL;
	struct record *list = NULL;
	size_t n;
	int rc;

	slurm_init(NULL);
	if (cores_load(w->job, &m)) {
		if (errno != ESLURM_INVALID_JOB_ID)
			return err_set(e, "%s", slurm_strerror(errno));
		return err_set(e, "slurmctld does not know this job, or "
			       "no longer; try `sacct -j %s -o JobID,SystemComment%%512`", w->text);
	}
	rc = records_select(m, w, &list, &n, e);
	if (rc == 0)
		rc = print_records(c, list, n, e);
	free(list);
	slurm_free_job_info_msg(m);
	return rc;
}

int cmd_why(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = {0};

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	return job_explain(c, &a.which, e) ? err_within(e, "job %s", a.text) : 0;
}
