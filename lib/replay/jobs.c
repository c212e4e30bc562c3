/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "replay/jobs.h"

#include <math.h>

#include "base/array.h"
#include "base/order.h"
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
	LEVEL, COMMENT, NODE_LIST, MEMORY, REQ_MEM, GPUS, ALLOC_TRES, REQ_TRES, RUN, NODE_OF_CPU, OTHER, COLUMN_COUNT,
};

static const struct {
	const char *name;
	enum column column;
} names[] = {
	{ "job", JOB }, { "JobID", JOB }, { "JobIDRaw", JOB }, { "submit", SUBMIT }, { "start", START }, { "end", END },
	{ "nodes", NODES }, { "NNodes", NODES }, { "AllocNodes", NODES }, { "tasks", TASKS }, { "NTasks", TASKS },
	{ "cpus_per_task", TASK_CPUS }, { "AllocCPUS", ALLOC_CPUS }, { "NCPUS", N_CPUS }, { "ReqCPUS", REQ_CPUS },
	{ "limit", LIMIT }, { "Timelimit", TIME_LIMIT }, { "TimelimitRaw", MINUTES }, { "fit", FIT },
	{ "level", LEVEL }, { "Comment", COMMENT }, { "NodeList", NODE_LIST }, { "memory", MEMORY },
	{ "ReqMem", REQ_MEM }, { "gpus", GPUS }, { "AllocTRES", ALLOC_TRES }, { "ReqTRES", REQ_TRES },
};

static const enum column usual[] = { JOB, SUBMIT, START, END, NODES, TASKS, TASK_CPUS, FIT, LEVEL };
/* The first columns of swf, and how many it has. */
static const enum column swf[] = { JOB, SUBMIT, OTHER, RUN, ALLOC_CPUS, OTHER, OTHER, REQ_CPUS, LIMIT };
#define SWF_COLUMNS 18u

#define BIT(column) (1u << (column))

/* One column of each row is required. */
static const struct {
	unsigned any;
	const char *called;
} needed[] = {
	{ BIT(JOB), "JobID" }, { BIT(SUBMIT), "Submit" }, { BIT(START), "Start" }, { BIT(END), "End" },
	{ BIT(NODES), "NNodes" }, { BIT(TASKS) | BIT(ALLOC_CPUS) | BIT(N_CPUS) | BIT(REQ_CPUS), "NCPUS" },
};

struct reader {
	const char *name;
	unsigned line;
	const char *separators;		/* NULL before the first line */
	bool is_swf;
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

/* The first line: 1 if it names the columns, 0 if it is a job already, or -1. */
static int read_head(struct reader *r, char *const *words, size_t n)
{
	unsigned has = 0;

	if (*r->separators != '|' && column_of(words[0]) < 0) {
		r->is_swf = n >= SWF_COLUMNS;
		for (size_t i = 0; r->is_swf && i < SWF_COLUMNS; i++)
			r->order[i] = i < COUNT(swf) ? swf[i] : OTHER;
		if (!r->is_swf)
			memcpy(r->order, usual, sizeof(usual));
		r->ncolumns = r->is_swf ? SWF_COLUMNS : COUNT(usual);
		return 0;
	}
	r->ncolumns = n;
	for (size_t i = 0; i < n; i++) {
		int column = column_of(words[i]);

		r->order[i] = column < 0 ? OTHER : (enum column) column;
		has |= BIT(r->order[i]);
	}
	for (size_t i = 0; i < COUNT(needed); i++)
		if (!(has & needed[i].any))
			return line_error(r, "missing column", needed[i].called);
	return 1;
}

/* 0; 1 for a row of sacct that is cut by a line break in a comment; -1. A comment in the last column may have '|'. */
static int read_values(struct reader *r, char *const *words, size_t n)
{
	bool allocated = r->is_swf && n > SWF_COLUMNS && *words[SWF_COLUMNS] == '{';

	if (n > r->ncolumns && (r->is_swf || r->order[r->ncolumns - 1] == COMMENT))
		n = r->ncolumns;
	if (n < r->ncolumns && *r->separators == '|')
		return 1;
	if (n != r->ncolumns)
		return err_set(r->err, "%s:%u: %zu values for %zu columns", r->name, r->line, n, r->ncolumns);
	for (size_t c = 0; c < COLUMN_COUNT; c++)
		r->values[c] = "";
	for (size_t i = 0; i < n; i++)
		r->values[r->order[i]] = r->is_swf && *words[i] == '-' ? "" : words[i];
	if (allocated)
		r->values[NODE_OF_CPU] = words[SWF_COLUMNS];
	return 0;
}

/* --- values --- */

static bool is_digit(char c)
{
	return isdigit((unsigned char) c);
}

/* Seconds as digits, "." and more digits, or a date; in milliseconds. */
static int read_time(struct reader *r, enum column column, long long *ms)
{
	const char *text = r->values[column], *end;
	long long n, unit = MS;
	struct tm tm = {0};

	if (is_digit(*text)) {
		n = strtoll(text, (char **) &end, 10);
		*ms = n * (n <= SECONDS_MAX ? MS : 0);
		if (*end == '.')
			for (end++; is_digit(*end); end++)
				*ms += (*end - '0') * (unit /= 10);
		if (!*end && n <= SECONDS_MAX)
			return 0;
	}
	end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	tm.tm_isdst = -1;
	if (end && !*end && (*ms = mktime(&tm) * MS) >= 0)
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
	if (!is_digit(*text) || *end || n > TASKS_MAX)
		return line_error(r, "invalid count:", text);
	*out = n;
	return 0;
}

/*
 * [DAYS-]HH:MM:SS, DAYS-HH, DAYS-HH:MM, MM:SS, MM (sbatch(1), --time); a word, such as UNLIMITED, is an unknown limit.
 */
static int read_limit_words(struct reader *r, long long *ms)
{
	static const long long units[][3] = { { 60 }, { 60, 1 }, { 3600, 60, 1 } };
	const char *text = r->values[TIME_LIMIT], *dash = strchr(text, '-'), *at = dash ? dash + 1 : text;
	char *end = (char *) dash;
	long long part[3], days = dash ? strtoll(text, &end, 10) : 0;
	bool good = end == dash && days >= 0 && days <= LIMIT_MAX;
	size_t n = 0;

	if (!*text || isalpha((unsigned char) *text))
		return 0;
	for (; good; at = end + 1) {
		good = n < 3 && is_digit(*at) && (part[n++] = strtoll(at, &end, 10)) <= LIMIT_MAX &&
			(*end == ':' || !*end);
		if (good && !*end)
			break;
	}
	if (!good)
		return line_error(r, "invalid time limit:", text);
	*ms = days * 86400 * MS;
	for (size_t i = 0; i < n; i++)
		*ms += part[i] * units[dash ? 2 : n - 1][i] * MS;
	return 0;
}

static int read_limit(struct reader *r, struct past_job *job)
{
	unsigned minutes = 0;

	if (is_digit(*r->values[LIMIT]))
		return read_time(r, LIMIT, &job->limit);
	if (is_digit(*r->values[MINUTES])) {
		if (read_count(r, MINUTES, &minutes))
			return -1;
		job->limit = minutes * 60 * MS;
	}
	return job->limit ? 0 : read_limit_words(r, &job->limit);
}

/* A number and a unit, in MB, rounded up. sacct's ReqMem is "0" or "" where a job requested none. */
static int read_memory(struct reader *r, struct past_job *job)
{
	static const char units[] = "KMGTP";
	bool is_total = !*r->values[MEMORY];
	const char *text = r->values[is_total ? REQ_MEM : MEMORY], *unit;
	char *end = (char *) text;
	double mb;

	if (!*text || !strcmp(text, "-"))
		return 0;
	mb = is_digit(*text) ? strtod(text, &end) : INFINITY;
	if (*end && (unit = strchr(units, toupper((unsigned char) *end)))) {
		mb = ldexp(mb, 10 * (int) (unit - units - 1));
		end++;
	}
	if (mb > MEMORY_MAX || (*end && (!is_total || strspn(end, "nc") != 1 || end[1])))
		return line_error(r, "invalid memory:", text);
	if (is_total && *end != 'n')
		mb = mb * (*end == 'c' ? (double) job->tasks * job->task_cpus : 1) / job->nodes;
	job->memory = ceil(mb);
	return 0;
}

static int read_gpus(struct reader *r, struct past_job *job)
{
	const char *all = r->values[*r->values[ALLOC_TRES] ? ALLOC_TRES : REQ_TRES], *at = strstr(all, "gres/gpu=");
	unsigned long gpus = at ? strtoul(at + strlen("gres/gpu="), NULL, 10) : 0;

	for (const char *typed = at ? NULL : strstr(all, "gres/gpu:"); typed; typed = strstr(typed, "gres/gpu:")) {
		typed += strcspn(typed, "=,");
		gpus += *typed == '=' ? strtoul(typed + 1, NULL, 10) : 0;
	}
	job->gpus = gpus < TASKS_MAX ? (gpus + job->nodes - 1) / job->nodes : TASKS_MAX;
	return is_digit(*r->values[GPUS]) ? read_count(r, GPUS, &job->gpus) : 0;
}

static bool value_given(const char *value)
{
	return *value && strcmp(value, "-");
}

/* A fit without a level, and a level without a fit, are valid, as in sbatch's options. */
static int read_request(struct reader *r, struct past_job *job)
{
	static const struct {
		const char *option;
		enum column column;
	} words[] = { { "topo-fit", FIT }, { "topo-level", LEVEL } };
	struct request *q = &job->request;

	*q = (struct request){ .fit = FIT_PREFER, .level = LEVEL_NODE, .memory = FIT_PREFER };
	if (request_comment(q, r->values[COMMENT], NULL))
		r->values[COMMENT] = "";
	job->asks = q->fit != FIT_PREFER || q->level != LEVEL_NODE || strcasestr(r->values[COMMENT], "topo-fit=");
	job->asks_memory = strcasestr(r->values[COMMENT], "topo-mem=");
	for (size_t i = 0; i < COUNT(words); i++) {
		const char *value = r->values[words[i].column];

		job->asks |= value_given(value);
		if (value_given(value) && request_set(q, words[i].option, value, r->err))
			return err_within(r->err, "%s:%u", r->name, r->line);
	}
	return 0;
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
	if (r->is_swf && r->nodes && r->nodes->cpus) {
		unsigned least = (job->tasks + r->nodes->cpus - 1) / r->nodes->cpus;
		const char *list = r->values[NODE_OF_CPU];
		unsigned long last = 0, is;
		unsigned n = 0;
		char *end;

		/* "{1,1,2}": the node of each CPU, those of a node together. */
		while (*list == '{' || *list == ',') {
			is = strtoul(list + 1, &end, 10);
			n += list + 1 < end && (!n || is != last);
			last = is;
			list = end;
		}
		job->nodes = *list == '}' ? n : 0;
		job->nodes = job->nodes < least ? least : job->nodes > job->tasks ? job->tasks : job->nodes;
	}
	if (!job->nodes || job->tasks < job->nodes)
		return err_set(r->err, "%s:%u: job %s has %u tasks on %u nodes", r->name, r->line, job->name,
			       job->tasks,
			       job->nodes);
	return 0;
}

static int node_check(const char *name, void *user)
{
	const struct reader *r = user;

	return r->nodes->known(r->nodes->user, name) ? 0 :
	       err_set(r->err, "job %s ran on %s, which the snapshot does not have", r->values[JOB], name);
}

/* --- jobs --- */

/* "Unknown" and "None" are times of jobs that did not start or end; sacct's NNodes may be what was only requested. */
static bool job_ran(const struct reader *r)
{
	if (r->is_swf)
		return is_digit(*r->values[RUN]) && (*r->values[ALLOC_CPUS] || *r->values[REQ_CPUS]);
	return is_digit(*r->values[START]) && is_digit(*r->values[END]) && strcmp(r->values[NODES], "0") &&
	       strcmp(r->values[NODE_LIST], "None assigned");
}

static int job_add(struct reader *r, struct jobs *jobs)
{
	const char *id = r->values[JOB], *list = r->values[NODE_LIST];
	long long start = 0, end;
	struct past_job *job;

	if (!*id)
		return line_error(r, "a job without a name:", "");
	if (strchr(id, '.'))	/* a step */
		return 0;
	if (!job_ran(r)) {
		jobs->skipped++;
		return 0;
	}
	if (!(job = array_add(jobs->list, jobs->n)) || !(job->name = strdup(id)))
		return line_error(r, "out of memory at", id);
	if (read_time(r, SUBMIT, &job->submit) || (!r->is_swf && read_time(r, START, &start)) ||
	    read_time(r, r->is_swf ? RUN : END, &end) || read_size(r, job) || read_limit(r, job) ||
	    read_memory(r, job) || read_gpus(r, job) || read_request(r, job))
		return -1;
	if (r->nodes && value_given(list) && hostlist_expand(list, node_check, r, r->err)) {
		if (!r->nodes->leave_out)
			return err_within(r->err, "%s:%u", r->name, r->line);
		jobs_cut(jobs, jobs->n - 1);
		jobs->elsewhere++;
	} else if ((job->run = end - start) < 0) {	/* a clock that was set back */
		jobs_cut(jobs, jobs->n - 1);
		jobs->skipped++;
	}
	return 0;
}

static int line_read(struct reader *r, struct jobs *jobs, char *line)
{
	char *words[COLUMNS_MAX];
	bool first = !r->separators;
	size_t n;
	int rc;

	line[strcspn(line, "\r")] = '\0';
	if (!line[strspn(line, " \t")] || *line == '#' || *line == ';')
		return 0;
	if (first)
		r->separators = strchr(line, '|') ? "|" : " \t";
	n = line_split(r->separators, line, words);
	if (first && (rc = read_head(r, words, n)))
		return rc < 0 ? -1 : 0;
	if ((rc = read_values(r, words, n)))
		jobs->unreadable += rc > 0;
	return rc ? (rc < 0 ? -1 : 0) : job_add(r, jobs);
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
	struct jobs before = *jobs;
	const char *stop, *end = text + len;
	int rc = memchr(text, '\0', len) ? err_set(e, "%s: not a text file", name) : 0;

	for (const char *at = text; !rc && at < end; at = stop + (stop < end)) {
		char *line;

		stop = memchr(at, '\n', end - at) ?: end;
		r.line++;
		line = strndup(at, stop - at);
		rc = line ? line_read(&r, jobs, line) : line_error(&r, "out of memory at", "");
		free(line);
	}
	if (!rc && !r.separators)
		rc = err_set(e, "%s: no jobs in this file", name);
	if (rc) {
		jobs_cut(jobs, before.n);
		before.list = jobs->list;
		*jobs = before;
	}
	return rc;
}

void jobs_free(struct jobs *jobs)
{
	jobs_cut(jobs, 0);
	free(jobs->list);
	*jobs = (struct jobs){0};
}

/* In one array, the address is the order. */
ORDER(submit_compare, struct past_job *const, COMPARE((*x)->submit, (*y)->submit) ?: COMPARE(*x, *y))

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
