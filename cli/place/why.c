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

/* A job, array task or component that slurmctld or accounting knows, and its verdict. */
struct record {
	char name[64];		/* "12", "12_3", "12_[4-9]", "12+1" */
	const char *state;
	uint32_t task, id;	/* the order of those of slurmctld */
	int rc;			/* of verdict_read: 1 when there is none */
	struct verdict verdict;
	struct err why;
};

/* In the order of `topiary why`. */
struct records {
	struct record *list;
	size_t n;
};

static struct record *record_add(struct records *all, struct err *e)
{
	struct record *list = reallocarray(all->list, all->n + 1, sizeof(*list));

	if (!list) {
		err_set(e, "out of memory");
		return NULL;
	}
	all->list = list;
	list[all->n] = (struct record){0};
	return &list[all->n++];
}

/* The place of a verdict follows TopoVerdicts, which may have changed since it was written. */
static void record_read(struct record *t, const char *comments, bool started)
{
	bool pending = !strcmp(t->state, "pending");

	t->rc = verdict_read(comments, &t->verdict, &t->why);
	/*
	 * The record of an array's remaining tasks has the comment of the last task split off; a requeued job that of
	 * its last run.
	 */
	if (t->rc == 0 && pending && t->verdict.outcome != VERDICT_WAITS)
		t->rc = 1;
	if (t->rc <= 0)
		return;
	err_set(&t->why, "no verdict: %s",
		pending ? "it is pending; one is written when it starts, or when it waits for what it requires" :
		!strcmp(t->state, "ended") && !started ? "it ended before it started" :
		"Slurm placed it when the site's TopoFit or TopoVerdicts was off, when slurmctld had not loaded"
		" Topiary's select plugin, or when that had refused topiary.conf (`topiary doctor` on the controller"
		" names the line); or somebody replaced its comment");
}

/* --- from slurmctld --- */

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
	const struct record *one = a, *other = b;

	if (one->task != other->task)
		return one->task < other->task ? -1 : 1;
	return one->id < other->id ? -1 : one->id > other->id;
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

static int record_of_job(const job_info_t *j, struct records *all, struct err *e)
{
	const char *const comments[] = { j->admin_comment, j->system_comment };
	struct record *t = record_add(all, e);
	size_t start, len;

	if (!t)
		return -1;
	t->state = state_of(j);
	t->task = j->array_task_id;
	t->id = j->job_id;
	if (j->array_task_str)
		snprintf(t->name, sizeof(t->name), "%u_[%s]", j->array_job_id, j->array_task_str);
	else if (j->array_task_id != NO_VAL)
		snprintf(t->name, sizeof(t->name), "%u_%u", j->array_job_id, j->array_task_id);
	else if (j->het_job_id)
		snprintf(t->name, sizeof(t->name), "%u+%u", j->het_job_id, j->het_job_offset);
	else
		snprintf(t->name, sizeof(t->name), "%u", j->job_id);
	record_read(t, comments[verdict_find(comments[0], &start, &len)], j->nodes && *j->nodes);
	return 0;
}

/* Returns 0, 1 if slurmctld does not know the job, or -1. */
static int records_of_slurmctld(const struct which *w, struct records *all, struct err *e)
{
	job_info_msg_t *m = NULL;
	int rc = 0;

	slurm_init(NULL);
	if (cores_load(w->job, &m))
		return errno == ESLURM_INVALID_JOB_ID ? 1 : err_set(e, "%s", slurm_strerror(errno));
	for (uint32_t i = 0; rc == 0 && i < m->record_count; i++)
		if (is_selected(&m->job_array[i], w))
			rc = record_of_job(&m->job_array[i], all, e);
	slurm_free_job_info_msg(m);
	if (all->n)
		qsort(all->list, all->n, sizeof(*all->list), record_compare);
	return rc || all->n ? rc : err_set(e, "slurmctld has this job, but not this task or component");
}

/* --- from accounting --- */

/* A line of sacct: the job, its nodes ("None assigned"), comments, which may have bars and lines of their own. */
static int record_of_line(char *line, struct records *all, struct err *e)
{
	char *nodes = strchr(line, '|'), *comments = nodes ? strchr(nodes + 1, '|') : NULL;
	struct record *t;

	if (!comments)
		return 0;
	if (!(t = record_add(all, e)))
		return -1;
	*nodes++ = *comments++ = '\0';
	for (char *c = comments; (c = strchr(c, '|')); )
		*c = ' ';
	snprintf(t->name, sizeof(t->name), "%s", line);
	t->state = "ended";
	record_read(t, comments, strcmp(nodes, "None assigned"));
	return 0;
}

/* By sacct(1), whose records are those of any release of slurmdbd. */
static int records_of_accounting(const struct which *w, struct records *all, struct err *e)
{
	char command[160], *line = NULL, job[16];
	struct buf one = {0}, said = {0};
	size_t size = 0, digits;
	FILE *from;
	int rc = 0;

	digits = snprintf(job, sizeof(job), "%u", w->job);
	snprintf(command, sizeof(command),
		 "timeout 30 sacct -nPX -j %s -o JobID,NodeList,AdminComment,SystemComment 2>&1", w->text);
	if (!(from = popen(command, "re")))
		return err_set(e, "sacct cannot be run: %m");
	while (rc == 0 && getline(&line, &size, from) >= 0) {
		bool first = !strncmp(line, job, digits) && strchr("|_+", line[digits]);

		line[strcspn(line, "\n")] = '\0';
		if (!first && !one.len && !said.len)
			buf_puts(&said, line);
		if (first && one.len)
			rc = record_of_line(one.data, all, e);
		if (first)
			buf_free(&one);
		if (first || one.len)
			buf_printf(&one, "%s ", line);
	}
	if (rc == 0 && one.len)
		rc = one.failed ? err_set(e, "out of memory") : record_of_line(one.data, all, e);
	pclose(from);
	if (rc == 0 && !all->n)
		rc = err_set(e, "slurmctld does not know this job, or no longer, and neither does accounting%s%s",
			     said.len ? ": " : "", said.len ? said.data : "");
	free(line);
	buf_free(&one);
	buf_free(&said);
	return rc;
}

/* --- output --- */

static int print_one(const struct record *record, struct err *e)
{
	static const struct table_column columns[] = { { "", TABLE_LEFT }, { "", TABLE_LEFT }, {0} };
	bool waited = record->verdict.outcome == VERDICT_WAITS && !strcmp(record->state, "ended");
	struct table *t = table_new(columns);

	table_label(t, "job");
	table_cell(t, "%s, %s: %s", record->name, record->state, waited ? "waited" : verdict_outcome(&record->verdict));
	table_colour(t, COLOUR_BOLD);
	verdict_add_rows(&record->verdict, t);
	return table_finish(t, e);
}

static int print_table(const struct records *all, struct err *e)
{
	static const struct table_column columns[] = {
		{ "JOB", TABLE_LEFT }, { "STATE", TABLE_LEFT }, { "VERDICT", TABLE_LEFT }, { "ASKED", TABLE_LEFT },
		{ "WHERE OR WHY", TABLE_CUT }, {0},
	};
	struct table *t = table_new(columns);

	for (const struct record *r = all->list; r < all->list + all->n; r++) {
		const struct verdict *v = &r->verdict;
		struct buf asked = {0};

		verdict_asked(v, &asked);
		table_cell(t, "%s", r->name);
		table_cell(t, "%s", r->state);
		table_cell(t, "%s", r->rc ? "-" : outcome_name(v->outcome));
		table_cell(t, "%s", r->rc ? "-" : asked.failed ? "?" : asked.data);
		table_cell(t, "%s", r->rc ? r->why.text : *v->cores ? v->cores : v->reason);
		buf_free(&asked);
	}
	return table_finish(t, e);
}

static int print_json(const struct records *all, struct err *e)
{
	json_t *jobs = json_array();

	for (const struct record *r = all->list; r < all->list + all->n; r++)
		json_array_append_new(jobs, json_pack("{s:s, s:s, s:o, s:s?}", "job", r->name, "state", r->state,
						      "verdict", r->rc ? json_null() : verdict_json(&r->verdict),
						      "error", r->rc ? r->why.text : NULL));
	return cmd_print_new(json_pack("{s:o}", "jobs", jobs), e);
}

static int print_records(const struct cmd *c, const struct records *all, struct err *e)
{
	size_t with = 0;

	while (with < all->n && all->list[with].rc)
		with++;
	if (with == all->n)
		return err_set(e, "%s", all->list->why.text);
	if (c->json)
		return print_json(all, e);
	return all->n == 1 ? print_one(all->list, e) : print_table(all, e);
}

int cmd_why(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct records all = {0};
	struct args a = {0};
	int rc;

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	rc = records_of_slurmctld(&a.which, &all, e);
	if (rc > 0)
		rc = records_of_accounting(&a.which, &all, e);
	if (rc == 0)
		rc = print_records(c, &all, e);
	free(all.list);
	return rc ? err_within(e, "job %s", a.text) : 0;
}
