/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <glob.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include "base/file.h"
#include "base/order.h"
#include "child.h"
#include "cmd.h"
#include "cores.h"
#include "now.h"
#include "shape/hostlist.h"
#include "slurm_asked.h"
#include "verdict.h"

/*
 * `topiary why`: the verdict of a job, beside what else is known of it: how long it waited and ran, what Slurm did not
 * keep of its request, what its tasks reported, what `topiary advise` found; of a job that waits, the cores that it
 * waits for and who has them. `topiary why --pending`: the latter of all jobs in the queue.
 */
#define ADVICE_SECONDS 20
#define ACCOUNTING_SECONDS 30
#define REPORT_MAX (1u << 20)	/* bytes of a job's output that are searched */
#define OUTPUT_MAX (64u << 20)	/* of a command */

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
	bool all, pending;
};

static void check_job(void *args, struct argp_state *state)
{
	struct args *a = args;

	if (!a->text != a->pending)
		argp_error(state, a->pending ? "--pending is about all jobs" : "expected a JOBID");
	if (a->text && which_parse(a->text, &a->which))
		argp_error(state, "'%s' is not a job ID: expected 12, 12_3 (an array task) or 12+1 (a component of a "
			   "heterogeneous job)", a->text);
}

static const struct cmd_option options[] = {
	{ "verbose", 'v', NULL, CMD_FLAG(all), "Also how its cores and nodes were chosen" },
	{ "pending", 0, NULL, CMD_FLAG(pending), "Explain what each job in the queue waits for" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "JOBID\n--pending",
	"Explain which cores a job has and why, what it cost, or why it waits, from the verdict that slurmctld's "
	"plugin recorded and what else is known of the job.",
	CMD_TEXT(text), NULL, check_job,
};

/* A job, array task or component that slurmctld or accounting knows, and its verdict. */
struct record {
	char name[64];		/* "12", "12_3", "12_[4-9]", "12+1" */
	const char *state;
	uint32_t task, id;	/* the order of those of slurmctld */
	int rc;			/* of verdict_read: 1 when there is none */
	struct verdict verdict;
	struct err why;
	json_t *more;		/* rows beside the verdict: heading to words, which may have lines */
};

/* In the order of `topiary why`. */
struct records {
	struct record *list;
	size_t n;
};

static struct record *record_add(struct records *all, struct err *e)
{
	struct record *list = reallocarray(all->list, all->n + 1, sizeof(*list));

	if (!list)
		return err_null(e, "out of memory");
	all->list = list;
	list[all->n] = (struct record){ .more = json_object() };
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
		!strcmp(t->state, "ended") && !started ? "it ended before it started" :
		"Slurm placed it when the site's TopoMode was observe or off, when TopoPartitions, TopoQos or"
		" TopoAccounts did not have it, when TopoFit or TopoVerdicts was off, when slurmctld had not loaded"
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

ORDER(record_compare, struct record, COMPARE(x->task, y->task) ?: COMPARE(x->id, y->id))

/* --- beside the verdict --- */

static void __attribute__((format(printf, 3, 4))) row_add(json_t *rows, const char *head, const char *fmt, ...)
{
	json_t *text;
	va_list ap;

	va_start(ap, fmt);
	text = json_vsprintf(fmt, ap);
	va_end(ap);
	if (json_string_length(text))
		json_object_set(rows, head, text);
	json_decref(text);
}

/* "3 s", "12 min", "1 h 20 min", "2 d 3 h" */
static const char *duration(time_t seconds, char text[static 48])
{
	long s = seconds > 0 ? seconds : 0;

	if (s < 120)
		snprintf(text, 48, "%ld s", s);
	else if (s < 3600)
		snprintf(text, 48, "%ld min", s / 60);
	else if (s < 86400)
		snprintf(text, 48, "%ld h %ld min", s / 3600, s / 60 % 60);
	else
		snprintf(text, 48, "%ld d %ld h", s / 86400, s / 3600 % 24);
	return text;
}

static void cost_add(json_t *rows, time_t since, time_t start, time_t ran, bool ended, unsigned cpus)
{
	char waited[48], had[48];

	row_add(rows, "cost", "waited %s, %s %u CPU%s for %s: %.2f CPU hours", duration(start - since, waited),
		ended ? "had" : "has had", cpus, PLURAL(cpus), duration(ran, had), cpus * (double) ran / 3600);
}

/* Whether the job has, or had at its end, as many nodes as the verdict describes: scontrol update changes them. */
static bool has_its_nodes(const struct record *t, const char *nodes)
{
	struct hostset *set = t->verdict.outcome == VERDICT_PLACED ? hostset_parse(nodes, NULL) : NULL;
	bool has = !set || hostset_names(set) == t->verdict.nodes;

	hostset_free(set);
	if (!has)
		row_add(t->more, "resized", "to %s: all else describes its start", nodes);
	return has;
}

/* now: by slurmctld's clock, here and below. */
static void join_cost(json_t *rows, const job_info_t *j, time_t now)
{
	bool ended = !(j->job_state & JOB_COMPLETING) && (j->job_state & JOB_STATE_BASE) > JOB_SUSPENDED;
	time_t until = ended || j->end_time < now ? j->end_time : now, ran = until - j->start_time;
	bool suspended = (j->job_state & JOB_STATE_BASE) == JOB_SUSPENDED;

	/* A job that was suspended had its cores for less; Slurm counts that apart. */
	if (j->suspend_time && j->pre_sus_time)
		ran = j->pre_sus_time + (suspended ? 0 : until - j->suspend_time);
	if (j->start_time && j->start_time <= now && j->nodes && *j->nodes)
		cost_add(rows, j->eligible_time > j->submit_time ? j->eligible_time : j->submit_time, j->start_time,
			 ran, ended, j->num_cpus);
}

/* The topology of the job's partition (25.05); NULL: that of the cluster. */
static const char *topology_name(const job_info_t *j, const partition_info_msg_t *partitions)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
	for (uint32_t i = 0; i < partitions->record_count; i++)
		if (j->partition && !strcmp(partitions->partition_array[i].name, j->partition))
			return partitions->partition_array[i].topology_name;
#else
	(void) j, (void) partitions;
#endif
	return NULL;
}

/* What scontrol prints of it, nothing if it is flat; NULL: not known. The caller frees it. */
static char *topology_read(const char *name)
{
	const char *const argv[] = { "scontrol", "-o", "show", "topology", name, NULL };
	struct buf out = {0};

	if (cmd_program(argv, STDERR_TOO, ADVICE_SECONDS, OUTPUT_MAX, &out, NULL) == 0)
		buf_puts(&out, "\n");
	if (out.failed || (out.data && strstr(out.data, "slurm_load_topo error")))
		buf_free(&out);
	return out.data;
}

static struct slurm_asked asked_of(const job_info_t *j)
{
	struct slurm_asked asked = { .nodes = j->nodes, .switches = j->req_switch == NO_VAL ? 0 : j->req_switch };

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
	asked.segment = j->segment_size == NO_VAL16 ? 0 : j->segment_size;
#endif
	return asked;
}

static void join_slurm(json_t *rows, const job_info_t *j)
{
	struct slurm_asked asked = asked_of(j);
	partition_info_msg_t *partitions = NULL;
	char *topology = NULL;
	struct buf out = {0};

	if (j->num_nodes > 1 && j->nodes && !slurm_load_partitions(0, &partitions, SHOW_ALL))
		topology = topology_read(topology_name(j, partitions));
	if (topology)
		slurm_asked_check(&asked, topology, &out);
	if (out.len && !out.failed)
		row_add(rows, "Slurm", "%.*s", (int) out.len - 1, out.data);
	buf_free(&out);
	free(topology);
	if (partitions)
		slurm_free_partition_info_msg(partitions);
}

/* The lines of --topo-report among the job's messages, "rank 0  node cn1  CPUs ...". */
static void join_report(json_t *rows, const job_info_t *j)
{
	char path[PATH_MAX] = "", *first = NULL;
	struct buf text = {0};
	unsigned tasks = 0, rank;

	if (j->batch_flag)
		slurm_get_job_stderr(path, sizeof(path), (job_info_t *) j);
	if (*path != '/' || file_read(path, REPORT_MAX, &text, NULL) || !text.len)
		return buf_free(&text);
	for (char *rest = text.data, *line; (line = strsep(&rest, "\n"));)
		if (sscanf(line, "rank %9u  node ", &rank) == 1 && strstr(line, "  CPUs L#")) {
			first = first ? first : line;
			tasks++;
		}
	if (first)
		row_add(rows, "report", "%s%s", first, tasks > 1 ? "; of the other tasks see the job's messages" : "");
	buf_free(&text);
}

static void join_advice(json_t *rows, const job_info_t *j)
{
	char job[16], pattern[2][PATH_MAX];
	const char *const argv[] = { "/proc/self/exe", "advise", "--brief", job, NULL };
	glob_t found = {0};

	snprintf(job, sizeof(job), "%u", j->job_id);
	snprintf(pattern[0], sizeof(pattern[0]), "topiary-%u.*", j->job_id);
	snprintf(pattern[1], sizeof(pattern[1]), "%s/topiary-%u.*", j->work_dir ? j->work_dir : ".", j->job_id);
	if (glob(pattern[0], 0, NULL, &found) == 0 || glob(pattern[1], 0, NULL, &found) == 0) {
		struct buf out = {0};

		if (cmd_program(argv, STDERR_DROPPED, ADVICE_SECONDS, OUTPUT_MAX, &out, NULL) || !out.len)
			buf_free(&out);
		while (out.len && out.data[out.len - 1] == '\n')
			out.data[--out.len] = '\0';
		row_add(rows, "advice", "%s", out.len ? out.data : "");
		buf_free(&out);
	}
	globfree(&found);
}

/* --- jobs that wait --- */

static const struct {
	enum job_state_reason reason;
	const char *words;
} reasons[] = {
	{ WAIT_NO_REASON, "Slurm has not considered it yet" },
	{ WAIT_PRIORITY, "jobs with a higher priority are first" },
	{ WAIT_RESOURCES, "what it needs is not available now" },
	{ WAIT_DEPENDENCY, "a job that it depends on has not ended as it must" },
	{ WAIT_HELD, "an administrator holds it" },
	{ WAIT_HELD_USER, "its user holds it: scontrol release" },
	{ WAIT_TIME, "its time to begin has not come" },
	{ WAIT_LICENSES, "licences are in use" },
	{ WAIT_RESERVATION, "its reservation has not begun" },
	{ WAIT_PART_NODE_LIMIT, "it requests more nodes than its partition allows" },
	{ WAIT_PART_TIME_LIMIT, "it requests more time than its partition allows" },
	{ WAIT_PART_DOWN, "its partition is down" },
	{ WAIT_NODE_NOT_AVAIL, "nodes that it needs are not available" },
	{ WAIT_PART_INACTIVE, "its partition is inactive" },
	{ WAIT_DEP_INVALID, "a job that it depends on has ended otherwise than it must: this one never starts" },
	{ FAIL_BAD_CONSTRAINTS, "Slurm cannot meet its request, and holds it: scontrol update and release it" },
	{ WAIT_ARRAY_TASK_LIMIT, "its array has as many running tasks as it may" },
};

static void reason_words(const job_info_t *j, time_t now, struct buf *out)
{
	char at[32];
	size_t i = 0;

	while (i < sizeof(reasons) / sizeof(reasons[0]) && reasons[i].reason != j->state_reason)
		i++;
	if (j->state_desc)	/* more than the reason: which nodes, or who holds it */
		buf_printf(out, "Slurm says '%s'", j->state_desc);
	else if (i < sizeof(reasons) / sizeof(reasons[0]))
		buf_puts(out, reasons[i].words);
	else
		buf_printf(out, "Slurm's reason is number %u: squeue -j %u prints its name", (unsigned) j->state_reason,
			   j->job_id);
	/* Without a plan it is the time before which the job may not begin. */
	if (j->start_time > now && j->state_reason != WAIT_HELD && j->state_reason != WAIT_HELD_USER)
		buf_printf(out, "; %s %s", j->state_reason == WAIT_TIME ? "it may begin at" : "planned by Slurm for",
			   now_time(j->start_time, at));
}

/*
 * The nodes that a job waits for, each with one domain and the cores in it, or whole; false if it waits for something
 * else. Of a job with a requirement, their number and that of the cores are in the verdict's reason
 * (select_plugin/steer.c).
 */
static bool waits_for(const job_info_t *j, const struct verdict *v, struct now_need *need)
{
	const struct request_path *path;
	unsigned tasks, each;
	int used = 0;

	if (!v || v->outcome != VERDICT_WAITS) {
		*need = (struct now_need){ .nodes = j->num_nodes, .level = LEVEL_NODE };
		need->cpus = need->nodes ? (j->num_cpus + need->nodes - 1) / need->nodes : 0;
		return j->shared == JOB_SHARED_NONE && j->num_nodes > 1 && j->num_nodes == j->max_nodes &&
			(j->state_reason == WAIT_RESOURCES || j->state_reason == WAIT_PRIORITY) && !j->state_desc;
	}
	/* Of tasks that are not divided evenly, the larger number of cores. */
	if (sscanf(v->reason, "it requires %9u nodes with up to %9u core%n", &need->nodes, &need->cores, &used) == 2) {
		tasks = j->num_tasks == NO_VAL ? 0 : j->num_tasks;
		each = need->nodes ? tasks / need->nodes : 0;
		if (!each || tasks % need->nodes == 0 || need->cores % (each + 1))
			return false;
		need->fewer_nodes = need->nodes - tasks % need->nodes;
		need->fewer = need->cores / (each + 1) * each;
	} else if (sscanf(v->reason, "it requires %9u nodes with %9u core%n", &need->nodes, &need->cores, &used) != 2 &&
		   sscanf(v->reason, "it requires %9u node with %9u core%n", &need->nodes, &need->cores, &used) != 2)
		return false;
	need->level = v->request.level;
	path = &v->request.path;
	if (!used || !need->nodes || !need->cores || path->kind ||
	    (path->steps && (path->steps != 2 || path->step[0].count != 1 || path->step[1].level != LEVEL_CORE)))
		return false;
	if (path->steps)
		need->level = path->step[0].level;
	return true;
}

/*
 * Which of its nodes must be together: on a leaf switch, in a block, on a ring; in words. 1 if where that is first is
 * not known, -1 if the rest is not known either.
 */
static int network_need(struct now *n, const job_info_t *j, struct now_need *need, struct slurm_parts *parts,
			struct buf *words)
{
	const char *name = topology_name(j, n->partitions);
	struct slurm_asked asked = asked_of(j);
	int rc = 0;

	if (need->nodes == 1)
		return 0;
	if (strchr(j->partition ? j->partition : "", ','))
		return -1;
	if (!n->topology || strcmp(name ? name : "", n->topology_name ? n->topology_name : "")) {
		free(n->topology);
		n->topology = topology_read(name);
		n->topology_name = name;
	}
	if (!n->topology)
		return -1;
	if (strstr(n->topology, "TorusName=")) {
		need->unit = asked.segment && asked.segment <= need->nodes ? asked.segment : need->nodes;
		buf_printf(words, need->unit < need->nodes ? ", in boxes of %u of a torus" : ", in one box of a torus",
			   need->unit);
		return 1;
	}
	if (strstr(n->topology, "RingName=")) {
		need->unit = asked.segment && asked.segment <= need->nodes ? asked.segment : need->nodes;
		rc = need->nodes % need->unit ? -1 : slurm_parts_read(parts, &n->names, n->topology, need->unit);
		if (rc == 0 && need->unit < need->nodes)
			buf_printf(words, ", %u beside each other on each of %u rings", need->unit,
				   need->nodes / need->unit);
		else if (rc == 0)
			buf_puts(words, ", beside each other on one ring");
	} else if (strstr(n->topology, "BlockName=")) {
		need->unit = asked.segment && asked.segment <= need->nodes ? asked.segment : need->nodes;
		rc = need->nodes % need->unit ? -1 : slurm_parts_read(parts, &n->names, n->topology, need->unit);
		if (rc == 0 && need->unit < need->nodes)
			buf_printf(words, ", in segments of %u within one block", need->unit);
		else if (rc == 0)
			buf_puts(words, ", within one block");
	} else if (asked.switches) {
		need->unit = need->nodes;
		rc = asked.switches > 1 ? -1 : slurm_parts_read(parts, &n->names, n->topology, 0);
		if (rc == 0)
			buf_puts(words, ", on one leaf switch");
	}
	need->parts = parts->n ? parts : NULL;
	return rc < 0 || words->failed ? -1 : need->parts && need->fewer_nodes;
}

/* Where they are first, and until when whose they are. */
static void first_words(const struct now_need *need, const struct now_wait *w, struct buf *first, struct buf *held)
{
	const struct now_domain *d = w->list;
	struct buf names = {0};
	char at[32], name[64];

	if (!w->n) {
		buf_printf(first, need->nodes > 1 ? "none are known: too few nodes that it may have and whose cores "
			   "are known will have so many by the limits of jobs" :
			   "none is known: no node that it may have and whose cores are known has %u such core%s that "
			   "will be free by the limits of jobs", need->cores, PLURAL(need->cores));
		return;
	}
	if (need->nodes > 1) {
		for (size_t i = 0; i < w->n; i++)
			buf_printf(&names, "%s%s", i ? "," : "", d[i].node->info->name);
		if (names.failed || hostlist_fold(names.data, first, NULL))
			buf_puts(first, "nodes");
		buf_puts(first, need->cores ? " have them" : " are free");
		buf_free(&names);
	} else if (d->level == LEVEL_NODE)
		buf_printf(first, "%s has %u free core%s", d->node->info->name, need->cores, PLURAL(need->cores));
	else
		buf_printf(first, "%s %u of %s (cores %u-%u) has %u free core%s", level_noun(d->level, 1), d->number,
			   d->node->info->name, d->first, d->first + d->cores - 1, need->cores,
			   PLURAL(need->cores));
	if (!w->at) {
		buf_puts(first, " now: it waits for something else");
		return;
	}
	buf_printf(first, " at %s at the latest", now_time(w->at, at));
	for (size_t i = 0; i < w->nholders && i < sizeof(w->holders) / sizeof(w->holders[0]); i++) {
		const job_info_t *j = w->holders[i];

		buf_printf(held, "%sjob %s", i ? ", " : "", now_job_name(j, name));
		buf_printf(held, " of %s", now_user(j, name));
		buf_printf(held, " until %s", now_time(j->end_time, at));
	}
	if (w->nholders > sizeof(w->holders) / sizeof(w->holders[0]))
		buf_printf(held, " and %zu more", w->nholders - sizeof(w->holders) / sizeof(w->holders[0]));
}

/* Rows about a job that waits, with the verdict that it has. n: NULL if it is not known. */
static void join_wait(struct now *n, const job_info_t *j, time_t now, const struct verdict *v, json_t *rows)
{
	struct buf first = {0}, held = {0}, reason = {0}, where = {0};
	struct slurm_parts parts = {0};
	struct now_need need = {0};
	struct now_wait w = {0};
	int known;

	reason_words(j, now, &reason);
	known = n && waits_for(j, v, &need) ? network_need(n, j, &need, &parts, &where) : -1;
	if (known >= 0 && (known || now_first(n, j, &need, &w) == 0)) {
		const char *in = where.len ? where.data : "";
		unsigned all = need.nodes * need.cores - need.fewer_nodes * (need.cores - need.fewer);

		if (!need.cores)
			row_add(rows, "waits for", "%u nodes without other jobs%s", need.nodes, in);
		else if (need.fewer_nodes)
			row_add(rows, "waits for", "%u free cores on %u nodes, those of each node in one %s%s", all,
				need.nodes, level_noun(need.level, 1), in);
		else if (need.nodes == 1)
			row_add(rows, "waits for", "one %s with %u free core%s", level_noun(need.level, 1), need.cores,
				PLURAL(need.cores));
		else if (need.level == LEVEL_NODE)
			row_add(rows, "waits for", "%u nodes, each with %u free core%s%s", need.nodes, need.cores,
				PLURAL(need.cores), in);
		else
			row_add(rows, "waits for", "%u nodes, each with one %s with %u free core%s%s", need.nodes,
				level_noun(need.level, 1), need.cores, PLURAL(need.cores), in);
		if (!known)
			first_words(&need, &w, &first, &held);
		row_add(rows, "first", "%s", first.failed || !first.len ? "" : first.data);
		row_add(rows, "held by", "%s", held.len && !held.failed ? held.data : "");
	}
	row_add(rows, "queue", "%s", reason.failed ? "" : reason.data);
	free(w.list);
	slurm_parts_free(&parts);
	buf_free(&first);
	buf_free(&held);
	buf_free(&reason);
	buf_free(&where);
}

static int record_of_job(const job_info_t *j, time_t now, struct records *all, struct err *e)
{
	const char *const comments[] = { j->admin_comment, j->system_comment };
	static const char *const states[] = {
		[JOB_PENDING] = "pending", [JOB_RUNNING] = "running", [JOB_SUSPENDED] = "suspended",
	};
	struct record *t = record_add(all, e);
	uint32_t base = j->job_state & JOB_STATE_BASE;
	size_t start, len;

	if (!t)
		return -1;
	t->state = base < sizeof(states) / sizeof(states[0]) ? states[base] : "ended";
	t->task = j->array_task_id;
	t->id = j->job_id;
	now_job_name(j, t->name);
	record_read(t, comments[verdict_find(comments[0], &start, &len)], j->nodes && *j->nodes);
	/* What it had before it was resized is not in its record. */
	if (t->rc == 0 && has_its_nodes(t, j->nodes ? j->nodes : ""))
		join_cost(t->more, j, now);
	if (t->rc > 0 && !strcmp(t->state, "pending")) {
		struct buf reason = {0};

		reason_words(j, now, &reason);
		err_set(&t->why, "no verdict: it is pending, since %s; a verdict is written when it starts, or when it "
			"waits for what it requires", reason.data ? reason.data : "?");
		buf_free(&reason);
	}
	return 0;
}

/* Returns 0, 1 if slurmctld does not know the job, or -1. */
static int records_of_slurmctld(const struct cmd *c, const struct which *w, struct records *all, struct err *e)
{
	job_info_msg_t *m = NULL;
	int rc = 0;

	slurm_init(NULL);
	if (cores_load(w->job, &m))
		return errno == ESLURM_INVALID_JOB_ID ? 1 : err_set(e, "%s", slurm_strerror(errno));
	for (uint32_t i = 0; rc == 0 && i < m->record_count; i++)
		if (is_selected(&m->job_array[i], w))
			rc = record_of_job(&m->job_array[i], m->last_update, all, e);
	/* What takes requests, commands and files of the job: not for a thousand array tasks. */
	for (uint32_t i = 0; rc == 0 && all->n == 1 && all->list->rc >= 0 && i < m->record_count; i++) {
		const job_info_t *j = &m->job_array[i];
		struct err unheard;
		struct now now;

		if (!is_selected(j, w))
			continue;
		if ((j->job_state & JOB_STATE_BASE) == JOB_PENDING) {
			join_wait(now_load(c, &now, &unheard) ? NULL : &now, j, m->last_update,
				  all->list->rc ? NULL : &all->list->verdict, all->list->more);
			now_free(&now);
			continue;
		}
		if (all->list->rc)
			continue;
		join_slurm(all->list->more, j);
		join_report(all->list->more, j);
		join_advice(all->list->more, j);
	}
	slurm_free_job_info_msg(m);
	if (all->n)
		qsort(all->list, all->n, sizeof(*all->list), record_compare);
	return rc || all->n ? rc : err_set(e, "slurmctld has this job, but not this task or component");
}

/* --- from accounting --- */

/*
 * A line of sacct: the job, its nodes ("None assigned"), when it could start and started (or "Unknown"), for how many
 * seconds it ran, its CPUs, comments, which may have bars and lines of their own. Times are seconds since 1970, since a
 * local clock shows the last hour of summer time twice.
 */
enum { NODES, ELIGIBLE, START, RAN, CPUS, COMMENTS, FIELDS };
#define FIELD_NAMES "JobID,NodeList,Eligible,Start,ElapsedRaw,AllocCPUS,AdminComment,SystemComment"

static int record_of_line(char *line, struct records *all, struct err *e)
{
	char *field[FIELDS], *comments = line;
	struct record *t;

	for (int i = 0; i < FIELDS; i++) {
		if (!(comments = strchr(comments, '|')))
			return 0;
		*comments++ = '\0';
		field[i] = comments;
	}
	if (!(t = record_add(all, e)))
		return -1;
	for (char *c = comments; (c = strchr(c, '|')); )
		*c = ' ';
	snprintf(t->name, sizeof(t->name), "%s", line);
	t->state = "ended";
	record_read(t, comments, strcmp(field[NODES], "None assigned"));
	if (t->rc == 0 && has_its_nodes(t, field[NODES]) && atol(field[ELIGIBLE]) && atol(field[START]))
		cost_add(t->more, atol(field[ELIGIBLE]), atol(field[START]), atol(field[RAN]), true, atol(field[CPUS]));
	return 0;
}

static bool begins_record(const char *line, unsigned job)
{
	char id[16];
	size_t digits = snprintf(id, sizeof(id), "%u", job);

	return !strncmp(line, id, digits) && line[digits] && strchr("|_+", line[digits]);
}

/* By sacct(1), whose records are those of any release of slurmdbd. */
static int records_of_accounting(const struct which *w, struct records *all, struct err *e)
{
	const char *const argv[] = { "env", "SLURM_TIME_FORMAT=%s", "sacct", "-nPX", "-j", w->text, "-o", FIELD_NAMES,
		NULL };
	const char *said = "";
	struct buf out = {0};
	int rc = cmd_program(argv, STDERR_TOO, ACCOUNTING_SECONDS, OUTPUT_MAX, &out, e);

	rc = rc < 0 ? err_within(e, "sacct") : 0;
	for (char *line = out.data, *next; rc == 0 && line && *line; line = next) {
		/* A record goes on in the lines that do not begin with the job. */
		for (next = strchr(line, '\n'); next && next[1] && !begins_record(next + 1, w->job);
		     next = strchr(next, '\n'))
			*next = ' ';
		if (next)
			*next++ = '\0';
		if (begins_record(line, w->job))
			rc = record_of_line(line, all, e);
		else
			said = line;
	}
	if (rc == 0 && !all->n)
		rc = err_set(e, "slurmctld does not know this job, or no longer, and neither does accounting%s%s",
			     *said ? ": " : "", said);
	buf_free(&out);
	return rc;
}

/* --- output --- */

static int print_one(const struct record *record, bool all, struct err *e)
{
	bool waited = record->verdict.outcome == VERDICT_WAITS && !strcmp(record->state, "ended");
	struct table *t = table_new("|");
	const char *head;
	json_t *words;

	table_label(t, "job");
	table_cell(t, "%s, %s%s%s", record->name, record->state, record->rc ? "" : ": ",
		   record->rc ? "" : waited ? "waited" : verdict_outcome(&record->verdict));
	table_colour(t, COLOUR_BOLD);
	if (!record->rc)
		verdict_add_rows(&record->verdict, all, t);
	json_object_foreach(record->more, head, words)
		for (const char *line = json_string_value(words), *label = head; line && *line; label = "") {
			table_label(t, label);
			table_cell(t, "%.*s", (int) strcspn(line, "\n"), line);
			line += strcspn(line, "\n");
			line += *line == '\n';
		}
	return table_finish(t, e);
}

static int print_table(const struct records *all, struct err *e)
{
	struct table *t = table_new("JOB|STATE|VERDICT|ASKED|~WHERE OR WHY");

	for (const struct record *r = all->list; r < all->list + all->n; r++) {
		const struct verdict *v = &r->verdict;
		const char *resized = json_string_value(json_object_get(r->more, "resized"));
		struct buf asked = {0};

		verdict_asked(v, &asked);
		table_cell(t, "%s|%s|%s|%s|%s%s", r->name, r->state, r->rc ? "-" : outcome_name(v->outcome),
			   r->rc ? "-" : asked.failed ? "?" : asked.data, resized ? "resized " : "",
			   r->rc ? r->why.text : resized ? resized : *v->cores ? v->cores : v->reason);
		buf_free(&asked);
	}
	return table_finish(t, e);
}

static int print_records(const struct cmd *c, const struct records *all, bool details, struct err *e)
{
	json_t *jobs;
	size_t with = 0;

	while (with < all->n && all->list[with].rc)
		with++;
	if (with == all->n && !(all->n == 1 && json_object_get(all->list->more, "waits for")))
		return err_set(e, "%s", all->list->why.text);
	if (!c->json)
		return all->n == 1 ? print_one(all->list, details, e) : print_table(all, e);
	jobs = json_array();
	for (const struct record *r = all->list; r < all->list + all->n; r++)
		json_array_append_new(jobs, json_pack("{s:s, s:s, s:o, s:O, s:s?}", "job", r->name, "state", r->state,
						      "verdict", r->rc ? json_null() : verdict_json(&r->verdict),
						      "more", r->more, "error", r->rc ? r->why.text : NULL));
	return cmd_print_new(json_pack("{s:o}", "jobs", jobs), e);
}

/* --- the queue --- */

ORDER(job_compare, job_info_t *const, COMPARE((*y)->priority, (*x)->priority) ?:
      COMPARE((*x)->job_id, (*y)->job_id))

/* All jobs that wait, in the order of their priority. */
static int print_pending(const struct cmd *c, struct err *e)
{
	static const char *const parts[] = { "first", "held by", "queue" };
	json_t *list = json_array(), *job, *word;
	const job_info_t **jobs = NULL;
	struct now now = {0};
	size_t n = 0, i;
	int rc = now_load(c, &now, e);

	if (rc == 0 && !(jobs = calloc(now.jobs->record_count + 1, sizeof(*jobs))))
		rc = err_set(e, "out of memory");
	for (uint32_t k = 0; rc == 0 && k < now.jobs->record_count; k++)
		if ((now.jobs->job_array[k].job_state & JOB_STATE_BASE) == JOB_PENDING)
			jobs[n++] = &now.jobs->job_array[k];
	if (n)
		qsort(jobs, n, sizeof(*jobs), job_compare);
	for (i = 0; i < n; i++) {
		struct verdict v;
		char name[64], user[64];
		bool has = verdict_read(jobs[i]->admin_comment, &v, NULL) == 0 ||
			verdict_read(jobs[i]->system_comment, &v, NULL) == 0;

		job = json_pack("{s:s, s:s}", "job", now_job_name(jobs[i], name), "user",
				now_user(jobs[i], user));
		join_wait(&now, jobs[i], now.jobs->last_update, has ? &v : NULL, job);
		json_array_append_new(list, job);
	}
	free(jobs);
	now_free(&now);
	if (rc == 0 && !c->json && !json_array_size(list)) {
		json_decref(list);
		puts("No job is pending.");
		return 0;
	}
	if (rc == 0 && !c->json) {
		struct table *t = table_new("JOB|USER|WAITS FOR|WHERE OR WHY");

		json_array_foreach(list, i, job) {
			struct buf words = {0};

			for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
				if ((word = json_object_get(job, parts[k])) && (k != 2 || !words.len))
					buf_printf(&words, "%s%s%s", words.len ? "; " : "", k == 1 ? "held by " : "",
						   json_string_value(word));
			table_cell(t, "%s|%s|%s|%s", cmd_text(job, "job"), cmd_text(job, "user"),
				   cmd_text(job, "waits for"), words.failed || !words.len ? "" : words.data);
			buf_free(&words);
		}
		json_decref(list);
		return table_finish(t, e);
	}
	if (rc == 0)
		return cmd_print_new(json_pack("{s:o}", "pending", list), e);
	json_decref(list);
	return rc;
}

int cmd_why(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct records all = {0};
	struct args a = {0};
	int rc;

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	if (a.pending)
		return print_pending(c, e);
	rc = records_of_slurmctld(c, &a.which, &all, e);
	if (rc > 0)
		rc = records_of_accounting(&a.which, &all, e);
	if (rc == 0)
		rc = print_records(c, &all, a.all, e);
	for (size_t i = 0; i < all.n; i++)
		json_decref(all.list[i].more);
	free(all.list);
	return rc ? err_within(e, "job %s", a.text) : 0;
}
