/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/jobs.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/array.h"
#include "shape/hostlist.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define COLUMNS_MAX 128
#define MS 1000ll
#define SECONDS_MAX (1ll << 34)
#define LIMIT_MAX 10000000ll	/* of each part of a limit */
#define TASKS_MAX (1u << 24)
#define MEMORY_MAX 1e12		/* MB */

enum column {
	JOB, SUBMIT, START, END, NODES, TASKS, TASK_CPUS, ALLOC_CPUS, N_CPUS, REQ_CPUS, LIMIT, TIME_LIMIT, MINUTES, FIT,
	LEVEL, COMMENT, NODE_LIST, MEMORY, REQ_MEM, OTHER, COLUMN_COUNT,
};

static const struct {
	const char *name;
	enum column column;
} names[] = {
	{ "job", JOB }, { "JobID", JOB }, { "JobIDRaw", JOB }, { "submit", SUBMIT }, { "start", START }, { "end", END },
	{ "nodes", NODES }, { "NNodes", NODES }, { "AllocNodes", NODES }, { "tasks", TASKS }, { "NTasks", TASKS },
	{ "cpus_per_task", TASK_CPUS }, { "AllocCPUS", ALLOC_CPUS }, { "NCPUS", N_CPUS }, { "ReqCPUS",
											    REQ_CPUS }, { "limit",
													  LIMIT },
	{ "Timelimit", TIME_LIMIT }, { "TimelimitRaw", MINUTES }, { "fit", FIT }, { "level", LEVEL }, { "Comment",
													COMMENT },
	{ "NodeList", NODE_LIST }, { "memory", MEMORY }, { "ReqMem", REQ_MEM },
};

static const enum column usual[] = { JOB, SUBMIT, START, END, NODES, TASKS, TASK_CPUS, FIT, LEVEL };

#define BIT(column) (1u << (column))

/* One column of each row is required. */
static const struct {
	unsigned any;
	const char *called;
} needed[] = {
	{ BIT(JOB), "JobID" }, { BIT(SUBMIT), "Submit" }, { BIT(START), "Start" }, { BIT(END), "End" }, { BIT(NODES),
													  "NNodes" },
	{ BIT(TASKS) | BIT(ALLOC_CPUS) | BIT(N_CPUS) | BIT(REQ_CPUS), "NCPUS" },
};

struct reader {
	const char *name;
	unsigned line;
	const char *separators;		/* NULL before the first line */
	enum column order[COLUMNS_MAX];
	size_t ncolumns;
	const char *values[COLUMN_COUNT];	/* of a line; "" if it has none */
	const struct jobs_nodes *nodes;
	struct err *err;
};

static int line_error(struct reader *r, const char *what, const char *value)
{
	return err_set(r->err, "%s:%u: %s '%.60s'", r->name, r->line, what, value);
}

/* --- lines --- */

static int column_of(const char *name)
{
	for (size_t i = 0; i < COUNT(names); i++)
		if (!strcasecmp(name, names[i].name))
			return names[i].column;
	return -1;
}

/* Splits a line: each '|' ends a value; any number of blanks ends one value. */
static size_t line_split(const char *separators, char *line, char *words[COLUMNS_MAX])
{
	bool blanks = *separators != '|';
	size_t n = 0;

	for (; n < COLUMNS_MAX; line++) {
		line += blanks ? strspn(line, separators) : 0;
		if (blanks && !*line)
			break;
		words[n++] = line;
		line += strcspn(line, separators);
		if (!*line)
			break;
		*line = '\0';
	}
	return n;
}

static int check_needed(struct reader *r)
{
	unsigned has = 0;

	for (size_t i = 0; i < r->ncolumns; i++)
		has |= BIT(r->order[i]);
	for (size_t i = 0; i < COUNT(needed); i++)
		if (!(has & needed[i].any))
			return line_error(r, "missing column", needed[i].called);
	return 0;
}

/* The first line: 1 if it names the columns, 0 if it is a job already, or -1. */
static int read_head(struct reader *r, char *const *words, size_t n)
{
	if (*r->separators != '|' && column_of(words[0]) < 0) {
		memcpy(r->order, usual, sizeof(usual));
		r->ncolumns = COUNT(usual);
		return 0;
	}
	r->ncolumns = n;
	for (size_t i = 0; i < n; i++) {
		int column = column_of(words[i]);

		r->order[i] = column < 0 ? OTHER : (enum column) column;
	}
	return check_needed(r) ? -1 : 1;
}

/* 0; 1 for a row of sacct that is cut by a line break in a comment; -1. A comment in the last column may have '|'. */
static int read_values(struct reader *r, char *const *words, size_t n)
{
	if (n > r->ncolumns && r->order[r->ncolumns - 1] == COMMENT)
		n = r->ncolumns;
	if (n < r->ncolumns && *r->separators == '|')
		return 1;
	if (n != r->ncolumns)
		return err_set(r->err, "%s:%u: %zu values for %zu columns", r->name, r->line, n, r->ncolumns);
	for (size_t c = 0; c < COLUMN_COUNT; c++)
		r->values[c] = "";
	for (size_t i = 0; i < n; i++)
		r->values[r->order[i]] = words[i];
	return 0;
}

/* --- values --- */

/* Digits, then "." and more digits: in thousandths. Returns the end, or NULL. */
static const char *read_decimal(const char *text, long long *ms)
{
	long long n, unit = MS;
	char *end;

	if (!isdigit((unsigned char) *text))
		return NULL;
	n = strtoll(text, &end, 10);
	if (n > SECONDS_MAX)
		return NULL;
	n *= MS;
	if (*end == '.')
		for (end++; isdigit((unsigned char) *end); end++)
			n += (*end - '0') * (unit /= 10);
	*ms = n;
	return end;
}

static bool read_date(const char *text, long long *ms)
{
	struct tm tm = { .tm_isdst = -1 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

	tm.tm_isdst = -1;
	if (!end || *end)
		return false;
	*ms = mktime(&tm) * MS;
	return *ms >= 0;
}

static int read_time(struct reader *r, enum column column, long long *ms)
{
	const char *text = r->values[column], *end = read_decimal(text, ms);

	if ((end && !*end) || read_date(text, ms))
		return 0;
	return line_error(r, "invalid time:", text);
}

static int read_count(struct reader *r, enum column column, unsigned *out)
{
	const char *text = r->values[column];
	unsigned long n;
	char *end;

	if (!*text)
		return 0;
	n = strtoul(text, &end, 10);
	if ((*end == 'K' || *end == 'M') && !end[1])	/* sacct's AllocNodes without --noconvert */
		n <<= *end++ == 'K' ? 10 : 20;
	if (!isdigit((unsigned char) *text) || *end || n > TASKS_MAX)
		return line_error(r, "invalid count:", text);
	*out = n;
	return 0;
}

/* Numbers separated by ':', at most three. Returns how many, 0 for anything else. */
static size_t read_parts(const char *text, long long part[3])
{
	char *end;

	for (size_t n = 0; n < 3; text = end + 1) {
		if (!isdigit((unsigned char) *text) || (part[n++] = strtoll(text, &end, 10)) > LIMIT_MAX)
			return 0;
		if (*end != ':')
			return *end ? 0 : n;
	}
	return 0;
}

/*
 * [DAYS-]HH:MM:SS, DAYS-HH, DAYS-HH:MM, MM:SS, MM (sbatch(1), --time); a word, such as UNLIMITED, is an unknown limit.
 */
static int read_limit_words(struct reader *r, const char *text, long long *ms)
{
	static const long long units[][3] = { { 60 }, { 60, 1 }, { 3600, 60, 1 } };
	const char *dash = strchr(text, '-');
	char *end = (char *) dash;
	long long part[3], days = dash ? strtoll(text, &end, 10) : 0;
	size_t n = read_parts(dash ? dash + 1 : text, part);

	if (!*text || isalpha((unsigned char) *text))
		return 0;
	if (!n || end != dash || days < 0 || days > LIMIT_MAX)
		return line_error(r, "invalid time limit:", text);
	*ms = days * 86400 * MS;
	for (size_t i = 0; i < n; i++)
		*ms += part[i] * units[dash ? 2 : n - 1][i] * MS;
	return 0;
}

static int read_limit(struct reader *r, struct past_job *job)
{
	unsigned minutes = 0;

	if (*r->values[LIMIT] && isdigit((unsigned char) *r->values[LIMIT]))
		return read_time(r, LIMIT, &job->limit);
	if (isdigit((unsigned char) *r->values[MINUTES])) {
		if (read_count(r, MINUTES, &minutes))
			return -1;
		job->limit = minutes * 60 * MS;
	}
	return job->limit ? 0 : read_limit_words(r, r->values[TIME_LIMIT], &job->limit);
}

/* A number and a unit, in MB, rounded up; *end is what follows. */
static bool read_megabytes(const char *text, double *mb, const char **end)
{
	static const char units[] = "KMGTP";
	const char *unit;

	if (!isdigit((unsigned char) *text))
		return false;
	*mb = strtod(text, (char **) end);
	if (**end && (unit = strchr(units, toupper((unsigned char) **end)))) {
		*mb = ldexp(*mb, 10 * (int) (unit - units - 1));
		++*end;
	}
	return *mb <= MEMORY_MAX;
}

/* sacct's ReqMem is "0" or "" where a job requested none. */
static int read_memory(struct reader *r, struct past_job *job)
{
	const char *text = *r->values[MEMORY] ? r->values[MEMORY] : r->values[REQ_MEM], *end;
	bool is_total = !*r->values[MEMORY];
	double mb;

	if (!*text || !strcmp(text, "-"))
		return 0;
	if (!read_megabytes(text, &mb, &end) || (*end && (!is_total || strspn(end, "nc") != 1 || end[1])))
		return line_error(r, "invalid memory:", text);
	if (is_total && *end != 'n')
		mb = mb * (*end == 'c' ? (double) job->tasks * job->task_cpus : 1) / job->nodes;
	job->memory = ceil(mb);
	return 0;
}

static bool value_given(const char *value)
{
	return *value && strcmp(value, "-");
}

static int set_word(struct reader *r, struct past_job *job, const char *option, enum column column)
{
	if (!value_given(r->values[column]))
		return 0;
	job->asks = true;
	return request_set(&job->request, option, r->values[column], r->err)
		? err_within(r->err, "%s:%u", r->name, r->line)
		: 0;
}

/* A fit without a level, and a level without a fit, are valid, as in sbatch's options. */
static int read_request(struct reader *r, struct past_job *job)
{
	struct request *q = &job->request;

	*q = (struct request){ .fit = FIT_PREFER, .level = LEVEL_NODE, .memory = FIT_PREFER };
	if (request_comment(q, r->values[COMMENT], NULL))
		r->values[COMMENT] = "";
	job->asks = q->fit != FIT_PREFER || q->level != LEVEL_NODE || strcasestr(r->values[COMMENT], "topo-fit=");
	job->asks_memory = strcasestr(r->values[COMMENT], "topo-mem=");
	return set_word(r, job, "topo-fit", FIT) || set_word(r, job, "topo-level", LEVEL);
}

static int read_size(struct reader *r, struct past_job *job)
{
	static const enum column cpu_columns[] = { ALLOC_CPUS, N_CPUS, REQ_CPUS };
	unsigned cpus = 0;

	if (read_count(r, NODES, &job->nodes) || read_count(r, TASKS, &job->tasks) ||
	    read_count(r, TASK_CPUS, &job->task_cpus))
		return -1;
	for (size_t i = 0; !cpus && i < COUNT(cpu_columns); i++)
		if (read_count(r, cpu_columns[i], &cpus))
			return -1;
	if (cpus && job->tasks && cpus % job->tasks == 0)
		job->task_cpus = cpus / job->tasks;
	else if (cpus)
		job->tasks = cpus < job->nodes ? job->nodes : cpus, job->task_cpus = 1;
	job->task_cpus += !job->task_cpus;
	if (!job->nodes || job->tasks < job->nodes)
		return err_set(r->err, "%s:%u: job %s has %u tasks on %u nodes", r->name, r->line, job->name,
			       job->tasks, job->nodes);
	return 0;
}

struct check {
	struct reader *r;
	const char *job;
};

static int node_check(const char *name, void *user)
{
	struct check *c = user;

	if (c->r->nodes->known(c->r->nodes->user, name))
		return 0;
	return err_set(c->r->err, "job %s ran on %s, which the snapshot does not have", c->job, name);
}

static int check_nodes(struct reader *r, const char *job)
{
	const char *list = r->values[NODE_LIST];
	struct check c = { r, job };

	if (!r->nodes || !value_given(list) || !strcmp(list, "None assigned"))
		return 0;
	return hostlist_expand(list, node_check, &c, r->err) ? err_within(r->err, "%s:%u", r->name, r->line) : 0;
}

/* --- jobs --- */

static bool is_step(const char *id)
{
	return strchr(id, '.') != NULL;
}

/* "Unknown" and "None" are times of jobs that did not start or end; sacct's NNodes may be what was only requested. */
static bool job_ran(const struct reader *r)
{
	return isdigit((unsigned char) *r->values[START]) && isdigit((unsigned char) *r->values[END]) &&
	       strcmp(r->values[NODES], "0") && strcmp(r->values[NODE_LIST], "None assigned");
}

static int read_job(struct reader *r, struct past_job *job)
{
	long long start, end;

	if (read_time(r, SUBMIT, &job->submit) || read_time(r, START, &start) || read_time(r, END, &end))
		return -1;
	job->run = end - start;
	return read_size(r, job) || read_memory(r, job) || read_limit(r, job) || read_request(r, job) ||
	       check_nodes(r, job->name);
}

static int add_job(struct reader *r, struct jobs *jobs)
{
	struct past_job *job;

	if (!*r->values[JOB])
		return line_error(r, "a job without a name:", "");
	if (is_step(r->values[JOB]))
		return 0;
	if (!job_ran(r)) {
		jobs->skipped++;
		return 0;
	}
	if (!(job = array_add(jobs->list, jobs->n)) || !(job->name = strdup(r->values[JOB])))
		return line_error(r, "out of memory at", r->values[JOB]);
	if (read_job(r, job))
		return -1;
	if (job->run < 0) {	/* a clock that was set back */
		jobs_cut(jobs, jobs->n - 1);
		jobs->skipped++;
	}
	return 0;
}

static int read_line(struct reader *r, struct jobs *jobs, char *line)
{
	char *words[COLUMNS_MAX];
	size_t n;
	int head = 0;

	line[strcspn(line, "\r")] = '\0';
	if (!line[strspn(line, " \t")] || *line == '#')
		return 0;
	if (!r->separators) {
		r->separators = strchr(line, '|') ? "|" : " \t";
		n = line_split(r->separators, line, words);
		head = read_head(r, words, n);
	} else {
		n = line_split(r->separators, line, words);
	}
	if (head)
		return head < 0 ? -1 : 0;
	if ((head = read_values(r, words, n)) > 0)
		jobs->unreadable++;
	return head < 0 ? -1 : head ? 0 : add_job(r, jobs);
}

static int read_lines(struct reader *r, struct jobs *jobs, const char *text, size_t len)
{
	const char *end = text + len;

	for (const char *at = text; at < end;) {
		const char *stop = memchr(at, '\n', end - at);
		char *line = strndup(at, (stop ? stop : end) - at);
		int rc;

		r->line++;
		if (!line)
			return line_error(r, "out of memory at", "");
		rc = read_line(r, jobs, line);
		free(line);
		if (rc)
			return -1;
		at = stop ? stop + 1 : end;
	}
	return r->separators ? 0 : err_set(r->err, "%s: no jobs in this file", r->name);
}

void jobs_cut(struct jobs *jobs, size_t n)
{
	while (jobs->n > n)
		free(jobs->list[--jobs->n].name);
}

int jobs_read(struct jobs *jobs, const char *text, size_t len, const char *name, const struct jobs_nodes *nodes,
	      struct err *e)
{
	struct reader r = { .name = name, .nodes = nodes, .err = e };
	size_t had = jobs->n, skipped = jobs->skipped, unreadable = jobs->unreadable;

	if (memchr(text, '\0', len))
		return err_set(e, "%s: not a text file", name);
	if (!read_lines(&r, jobs, text, len))
		return 0;
	jobs_cut(jobs, had);
	jobs->skipped = skipped;
	jobs->unreadable = unreadable;
	return -1;
}

void jobs_free(struct jobs *jobs)
{
	jobs_cut(jobs, 0);
	free(jobs->list);
	*jobs = (struct jobs){0};
}

/* In one array, the address is the order. */
static int submit_compare(const void *a, const void *b)
{
	const struct past_job *const *x = a, *const *y = b;

	if ((*x)->submit != (*y)->submit)
		return (*x)->submit < (*y)->submit ? -1 : 1;
	return (*x > *y) - (*x < *y);
}

int jobs_sort(struct jobs *jobs)
{
	const struct past_job **order = malloc((jobs->n + 1) * sizeof(*order));
	struct past_job *sorted = NULL;

	if (!order || array_reserve(sorted, 0, jobs->n)) {
		free(order);
		return -1;
	}
	for (size_t i = 0; i < jobs->n; i++)
		order[i] = &jobs->list[i];
	qsort(order, jobs->n, sizeof(*order), submit_compare);
	for (size_t i = 0; i < jobs->n; i++)
		sorted[i] = *order[i];
	free(order);
	free(jobs->list);
	jobs->list = sorted;
	return 0;
}
