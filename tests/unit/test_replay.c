/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/buf.h"
#include "replay/replay.h"
#include "table.h"

#define COLUMNS "job submit start end nodes tasks cpus_per_task limit fit level\n"

/* --- a cluster and jobs from text --- */

struct stage {
	struct snapshot *snapshot;
	struct cluster *cluster;
	struct jobs jobs;
};

static void stage_open_columns(struct stage *s, const char *nodes, const char *columns, const char *jobs)
{
	FREED(buf_free) struct buf text = {0};

	*s = (struct stage){0};
	buf_printf(&text, "topiary-snapshot 1\n%s\nend\n", nodes);
	assert_ok(!(s->snapshot = snapshot_parse(text.data, text.len, "snapshot", &err)) ||
	    !(s->cluster = cluster_new(s->snapshot, &err)));
	text.len = 0;
	buf_printf(&text, "%s%s", columns, jobs);
	assert_ok(jobs_read(&s->jobs, text.data, text.len, "jobs", NULL, &err));
	assert_int_equal(jobs_sort(&s->jobs), 0);
}

static void stage_open(struct stage *s, const char *nodes, const char *jobs)
{
	stage_open_columns(s, nodes, COLUMNS, jobs);
}

static void stage_close(struct stage *s)
{
	jobs_free(&s->jobs);
	cluster_free(s->cluster);
	snapshot_free(s->snapshot);
}

/* --- what happened, in words: "1@0 cn1:0-5; " --- */

struct story {
	const struct cluster *cluster;
	struct buf text;
	uint64_t *busy;			/* as a room */
};

static bool is_in(const uint64_t *mask, unsigned core)
{
	return mask[core / 64] >> core % 64 & 1;
}

static void tell_cores(struct story *s, const struct cluster_share *seat)
{
	const struct cluster_node *node = &s->cluster->nodes[seat->node];
	unsigned cores = node->kind->shape->cores, count = 0;

	buf_printf(&s->text, " %s:", node->name);
	for (unsigned c = 0, first; c < cores; c++) {
		for (first = c; c < cores && is_in(seat->mask, c); c++)
			;
		if (c == first)
			continue;
		buf_printf(&s->text, count ? ",%u" : "%u", first);
		if (c - first > 1)
			buf_printf(&s->text, "-%u", c - 1);
		count += c - first;
	}
	assert_int_equal(count, seat->cores);
}

static void tell_start(void *user, const struct past_job *job, const struct cluster_shares *seats, long long at)
{
	struct story *s = user;

	buf_printf(&s->text, "%s@%lld", job->name, at / 1000);
	assert_int_equal(seats->n, job->nodes);
	for (size_t i = 0; i < seats->n; i++) {
		const struct cluster_share *seat = &seats->list[i];
		const struct cluster_node *node = &s->cluster->nodes[seat->node];

		tell_cores(s, seat);
		for (unsigned w = 0; w < node->kind->words; w++) {
			if (s->busy[node->word + w] & seat->mask[w])
				fail_msg("job %s has a core of %s that another has", job->name, node->name);
			s->busy[node->word + w] |= seat->mask[w];
		}
	}
	buf_puts(&s->text, "; ");
}

static void tell_end(void *user, const struct past_job *job, const struct cluster_shares *seats, long long at)
{
	struct story *s = user;

	(void) job;
	(void) at;
	for (size_t i = 0; i < seats->n; i++) {
		const struct cluster_node *node = &s->cluster->nodes[seats->list[i].node];

		for (unsigned w = 0; w < node->kind->words; w++)
			s->busy[node->word + w] &= ~seats->list[i].mask[w];
	}
}

static struct replay_result replay(const struct stage *stage, const char *policy, struct buf *told)
{
	struct story story = { .cluster = stage->cluster, .busy = calloc(stage->cluster->words, sizeof(uint64_t)) };
	struct replay_watch watch = { tell_start, tell_end, &story };
	struct replay_result result;
	struct replay_policy p;

	assert_non_null(story.busy);
	assert_ok(replay_policy_parse(policy, &p, &err) ||
		  replay_run(stage->cluster, &stage->jobs, &p, &watch, &result, &err));
	for (size_t w = 0; w < stage->cluster->words; w++)
		assert_int_equal(story.busy[w], 0);
	assert_int_equal(result.jobs + result.refused, stage->jobs.n);
	buf_add(&story.text, "", 0);
	if (told)
		*told = story.text;
	else
		buf_free(&story.text);
	free(story.busy);
	return result;
}

/* Jobs with these columns (NULL: all) are replayed as the story has it. */
static struct replay_result replay_told(size_t row, const char *nodes, const char *columns, const char *jobs,
					const char *policy, const char *story)
{
	struct replay_result result;
	struct stage stage;
	FREED(buf_free) struct buf told;

	stage_open_columns(&stage, nodes, columns ? columns : COLUMNS, jobs);
	result = replay(&stage, policy, &told);
	if (story && strcmp(told.data, story))
		fail_msg("row %zu, %s: %s, not %s", row, policy, told.data, story);
	stage_close(&stage);
	return result;
}

/* --- records --- */

static bool cn_only(const void *user, const char *name)
{
	(void) user;
	return !strncmp(name, "cn", 2);
}

static const struct jobs_nodes cn_nodes = { .known = cn_only, .cpus = 16 };

#define SACCT "JobID|Submit|Start|End|NNodes|NCPUS|State\n"
#define S_TIMES "2026-11-20T10:00:00|2026-11-20T10:00:30|2026-11-20T11:00:30"

TEST(reads_records)
{
	static const struct {
		const char *text;
		size_t n, skipped;	/* skipped: unreadable ones, too */
		struct past_job last;	/* of which 0 is a CPU a task, and a fit that is preferred */
	} rows[] = {
		/* ours, with a line of names and without, in seconds and parts of them */
		{ "7 10 20.5 30.25 2 8 3 prefer l3\n", 1, 0,
		  { .name = "7", .submit = 10000, .run = 9750, .nodes = 2, .tasks = 8, .task_cpus = 3, .asks = true,
		    .request.level = LEVEL_L3 } },
		{ "# a comment\n\n7\t10\t20\t30\t1\t2\t1\t-\t-\r\n", 1, 0,
		  { .name = "7", .submit = 10000, .run = 10000, .nodes = 1, .tasks = 2 } },
		{ "end start submit job nodes tasks limit\n30 20 10 a 1 4 90\n31 20 11 b 2 4 60.5\n", 2, 0,
		  { .name = "b", .submit = 11000, .run = 11000, .limit = 60500, .nodes = 2, .tasks = 4 } },
		/* sacct's; steps, what never started, what still runs */
		{ SACCT "12|" S_TIMES "|2|8|COMPLETED\n12.batch|" S_TIMES "|1|4|COMPLETED\n12.0|"
		  S_TIMES "|2|8|COMPLETED\n", 1, 0,
		  { .name = "12", .run = 3600000, .nodes = 2, .tasks = 8 } },
		{ SACCT "12_3|" S_TIMES "|1|4|TIMEOUT\n13|2026-11-20T10:00:00|Unknown|Unknown|1|1|PENDING\n"
		  "14|2026-11-20T10:00:00|2026-11-20T10:00:00|Unknown|1|1|RUNNING\n"
		  "15|2026-11-20T10:00:00|None|2026-11-20T10:00:00|1|1|CANCELLED by 0\n", 1, 3,
		  { .name = "12_3", .run = 3600000, .nodes = 1, .tasks = 4 } },
		/* each state, and a comment with a line break, one with '|' and one that slurmctld ignores */
		{ "JobID|State|Submit|Start|End|NNodes|NCPUS|ReqMem|Timelimit|NodeList|Comment\n"
		  "1|FAILED|" S_TIMES "|0|0|0|UNLIMITED|None assigned|refused\n"
		  "2|CANCELLED by 1000|2026-11-20T10:00:00|None|2026-11-20T10:00:01|4|4|4G|01:00:00|None assigned|\n"
		  "3|CANCELLED by 0|" S_TIMES "|4|4|4G|01:00:00|None assigned|Start = End in 22.05\n"
		  "4_[1-9%2]|PENDING|2026-11-20T10:00:00|Unknown|Unknown|1|1|4G|Partition_Limit|None assigned|\n"
		  "5|RUNNING|2026-11-20T10:00:00|2026-11-20T10:00:00|Unknown|1|1|0|01:00:00|cn1|\n"
		  "6|SUSPENDED|2026-11-20T10:00:00|2026-11-20T10:00:00|Unknown|1|1|0|01:00:00|cn1|\n"
		  "7|NODE_FAIL|2026-11-20T10:00:00|2026-11-20T11:00:00|2026-11-20T10:00:00|1|1|0|01:00:00|cn1|\n"
		  "8|REQUEUED|" S_TIMES "|1|1|0|01:00:00|cn1|\n9|PREEMPTED|" S_TIMES "|1|1|0|01:00:00|cn1|a\nb\n"
		  "10|OUT_OF_MEMORY|" S_TIMES "|1|1|0|01:00:00|cn1|a|b|c\n11|DEADLINE|" S_TIMES "|1|1|0|1:0:0|cn1|\n"
		  "12|BOOT_FAIL|" S_TIMES "|1|1|0|01:00:00|cn1|\n"
		  "15|REVOKED|Unknown|Unknown|Unknown|1|1|0|1:0:0|None assigned|\n"
		  "16|REQUEUE_HOLD|2026-11-20T10:00:00|Unknown|Unknown|1|1|0|1:0:0|None assigned|\n"
		  "17|SPECIAL_EXIT|" S_TIMES "|1|1|0|01:00:00|cn1|\n18|COMPLETING|" S_TIMES "|1|1|0|01:00:00|cn1|\n"
		  "19|CONFIGURING|2026-11-20T10:00:00|2026-11-20T10:00:00|Unknown|1|1|0|01:00:00|cn1|\n"
		  "13+0|TIMEOUT|" S_TIMES "|1|1|0|01:00:00|cn1|\n"
		  "14|RESIZING|" S_TIMES "|2|1|0|01:00:00|cn[1-2]|topo-level=x\n", 9, 11,
		  { .name = "14", .run = 3600000, .limit = 3600000, .nodes = 2, .tasks = 2 } },
		{ SACCT "12|" S_TIMES "|2K|2048|COMPLETED\n", 1, 0,
		  { .name = "12", .run = 3600000, .nodes = 2048, .tasks = 2048 } },
		{ "JobIDRaw|Start|End|Submit|AllocCPUS|ReqCPUS|NTasks|NNodes|Timelimit|NodeList|Comment|\n"
		  "12|100|200|90|0|12|4|2|1-02:03:04|cn[1-2]|run 7, topo-fit=require topo-level=numa|\n", 1, 0,
		  { .name = "12", .submit = 90000, .run = 100000, .limit = 93784000, .nodes = 2, .tasks = 4,
		    .task_cpus = 3, .asks = true, .request = { FIT_REQUIRE, LEVEL_NUMA, {0} } } },
		{ "job|submit|start|end|nodes|ncpus|ntasks|timelimit\n1|0|0|1|1|8|3|10:30\n", 1, 0,
		  { .name = "1", .run = 1000, .limit = 630000, .nodes = 1, .tasks = 8 } },
		{ "job|submit|start|end|nodes|ncpus|timelimit|timelimitraw\n1|0|0|1|1|8|2-00|7\n", 1, 0,
		  { .name = "1", .run = 1000, .limit = 420000, .nodes = 1, .tasks = 8 } },
		{ "job|submit|start|end|nodes|ncpus|timelimit\n1|0|0|1|1|8|2-12\n", 1, 0,
		  { .name = "1", .run = 1000, .limit = 60 * 3600000, .nodes = 1, .tasks = 8 } },
		/* memory: MB on each node, whatever the column's unit */
		{ "job submit start end nodes tasks memory\n7 0 0 1 2 8 1.5G\n", 1, 0,
		  { .name = "7", .run = 1000, .nodes = 2, .tasks = 8, .memory = 1536 } },
		{ "job|submit|start|end|nodes|ncpus|reqmem\n1|0|0|1|2|8|3000M\n", 1, 0,
		  { .name = "1", .run = 1000, .nodes = 2, .tasks = 8, .memory = 1500 } },
		{ "job|submit|start|end|nodes|ncpus|reqmem|comment\n1|0|0|1|2|8|500Mc|topo-mem=require\n", 1, 0,
		  { .name = "1", .run = 1000, .nodes = 2, .tasks = 8, .memory = 2000,
		    .asks_memory = true, .request.memory = FIT_REQUIRE } },
		{ "job|submit|start|end|nodes|ncpus|reqmem\n1|0|0|1|2|8|2Gn\n2|0|0|1|1|1|0\n", 2, 0,
		  { .name = "2", .run = 1000, .nodes = 1, .tasks = 1 } },
		/* GPUs on each node; of swf the processors allocated, else requested, on as few nodes as have them */
		{ "job submit start end nodes tasks gpus\n1 0 0 1 2 8 -\n7 0 0 1 2 8 3\n", 2, 0,
		  { .name = "7", .run = 1000, .nodes = 2, .tasks = 8, .gpus = 3 } },
		{ "job|submit|start|end|nodes|ncpus|reqtres|alloctres\n"
		  "1|0|0|1|2|8|gres/gpu=8|billing=8,cpu=8,gres/gpu:a100=5,gres/gpu=5,node=2\n", 1, 0,
		  { .name = "1", .run = 1000, .nodes = 2, .tasks = 8, .gpus = 3 } },
		{ "job|submit|start|end|nodes|ncpus|reqtres\n1|0|0|1|1|8|gres/gpu:a=1,gres/gpu:b,gres/gpu:c=2\n", 1, 0,
		  { .name = "1", .run = 1000, .nodes = 1, .tasks = 8, .gpus = 3 } },
		{ "; Version: 2.2\n1 5 7 60 40 -1 -1 32 90 -1 1 4 1 -1 1 -1 -1 -1\n"
		  "2 6 -1 61 -1 -1 -1 16 -1 -1 1 4 1 -1 1 -1 -1 -1\n3 9 1 -1 8 -1 -1 8 90 -1 5 4 1 -1 1 -1 -1 -1\n"
		  "4 7 2 62 33 -1 -1 32 90 -1 1 4 1 -1 1 -1 -1 -1 {12,13} more\n", 3, 1,
		  { .name = "4", .submit = 7000, .run = 62000, .limit = 90000, .nodes = 3, .tasks = 33 } },
		{ "5 7 2 62 4 -1 -1 4 90 -1 1 4 1 -1 1 -1 -1 -1 {7,7,9,11}\n", 1, 0,
		  { .name = "5", .submit = 7000, .run = 62000, .limit = 90000, .nodes = 3, .tasks = 4 } },
		{ "5 7 2 62 4 -1 -1 4 90 -1 1 4 1 -1 1 -1 -1 -1 {7,8,9,10,11}\n", 1, 0,
		  { .name = "5", .submit = 7000, .run = 62000, .limit = 90000, .nodes = 4, .tasks = 4 } },
		{ "5 7 2 62 4 -1 -1 4 90 -1 1 4 1 -1 1 -1 -1 -1 {7,7,9,11\n", 1, 0,
		  { .name = "5", .submit = 7000, .run = 62000, .limit = 90000, .nodes = 1, .tasks = 4 } },
		{ "job|submit|start|end|nodes|ncpus|timelimit|comment\n1|0|0|1|1|8|UNLIMITED|topo-fit=prefer\n", 1, 0,
		  { .name = "1", .run = 1000, .nodes = 1, .tasks = 8, .asks = true } },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		const struct past_job *want = &rows[i].last, *job;
		FREED(jobs_free) struct jobs jobs = {0};

		if (jobs_read(&jobs, rows[i].text, strlen(rows[i].text), "file", &cn_nodes, &err))
			fail_msg("row %zu: %s", i, err.text);
		if (jobs.n != rows[i].n || jobs.skipped + jobs.unreadable != rows[i].skipped)
			fail_msg("row %zu: %zu jobs, %zu skipped, %zu unreadable", i, jobs.n, jobs.skipped,
				 jobs.unreadable);
		job = &jobs.list[jobs.n - 1];
		assert_string_equal(job->name, want->name);
		if (job->run != want->run || job->limit != want->limit || job->nodes != want->nodes ||
		    job->tasks != want->tasks || job->task_cpus != (want->task_cpus ?: 1) || job->gpus != want->gpus)
			fail_msg("row %zu: ran %lld of %lld ms, %u nodes, %u tasks, %u CPUs each, %u GPUs", i, job->run,
				 job->limit, job->nodes, job->tasks, job->task_cpus, job->gpus);
		if (job->memory != want->memory || job->asks_memory != want->asks_memory ||
		    (want->asks_memory && job->request.memory != want->request.memory))
			fail_msg("row %zu: %llu MB, asks %d: %s", i, job->memory, job->asks_memory,
				 fit_name(job->request.memory));
		if (want->submit && job->submit != want->submit)
			fail_msg("row %zu: submitted at %lld", i, job->submit);
		if (job->asks != want->asks || job->request.fit != (want->request.fit ?: FIT_PREFER) ||
		    job->request.level != want->request.level)
			fail_msg("row %zu: asks %d, %s, %s", i, job->asks, fit_name(job->request.fit),
				 level_name(job->request.level));
	}
}

static void records_refused(const char *text, const char *says)
{
	FREED(jobs_free) struct jobs jobs = {0};

	if (!jobs_read(&jobs, text, strlen(text), "file", &cn_nodes, &err))
		fail_msg("taken: %s", text);
	if (strncmp(err.text, says, strlen(says)))
		fail_msg("\"%s\", not \"%s\"", err.text, says);
	assert_int_equal(jobs.n, 0);
}

TEST(refuses_bad_records)
{
	cases_each("refused/jobs.txt", records_refused);
}

TEST(sorts_by_submission)
{
	static const char text[] = "a 5 5 6 1 1 1 - -\nb 3 5 6 1 1 1 - -\nc 5 5 6 1 1 1 - -\nd 1 5 6 1 1 1 - -\n";
	FREED(jobs_free) struct jobs jobs = {0};

	assert_int_equal(jobs_read(&jobs, text, strlen(text), "file", NULL, NULL), 0);
	assert_int_equal(jobs_sort(&jobs), 0);
	for (size_t i = 0; i < jobs.n; i++)
		assert_int_equal(*jobs.list[i].name, "dbac"[i]);
	jobs_cut(&jobs, 3);
	assert_int_equal(jobs.n, 3);
}

/* --- where jobs go --- */

#define SMALL_AND_LARGE "shape A Package:2 Core:4 PU:1\nshape B Package:2 Core:6 PU:1\nnodes cn1 A\nnodes cn2 B"
#define ONE(text) "shape A " text "\nnodes cn1 A"
#define TWINS "shape A Package:2 [NUMANode] L3Cache:2 Core:4 PU:1\nnodes cn[1-4] A"

TEST(places_jobs)
{
	static const struct {
		const char *nodes, *jobs, *policy, *story;
	} rows[] = {
		/* six cores: a whole package of six, and not the tightest node */
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 - - -", "stock", "1@0 cn1:0-2,4-6; " },
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 - - -", "block", "1@0 cn1:0-5; " },
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 - - -", "prefer", "1@0 cn2:0-5; " },
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 - - -", "prefer:weight=queue", "1@0 cn1:0-5; " },
		/* three days, and a minute more */
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 259200 - -", "prefer", "1@0 cn2:0-5; " },
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 259260 - -", "prefer", "1@0 cn1:0-5; " },
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 259260 - -", "prefer:weight=job", "1@0 cn2:0-5; " },
		/* with 4, 2, 3 and all 8 cores free: one node fills the second, several are the last in use */
		{ "shape A Package:2 Core:4 PU:1\nnodes cn[1-4] A", "1 0 0 9 1 4 1 - - -\n2 0 0 9 1 6 1 - - -\n"
		  "3 0 0 9 1 5 1 - - -\n4 0 0 9 2 4 1 - - -\n5 0 0 9 2 4 1 - - -\n6 0 0 9 1 1 1 - - -", "prefer",
		  "1@0 cn1:0-3; 2@0 cn2:0-5; 3@0 cn3:0-4; 4@0 cn1:4-5 cn3:5-6; 5@0 cn1:6-7 cn2:6-7; 6@0 cn3:7; " },
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 - - -", "off", "1@0 cn1:0-2,4-6; " },
		{ SMALL_AND_LARGE, "1 0 0 9 1 3 1 - - -", "prefer", "1@0 cn1:0-2; " },
		/* what a job asks for goes before the policy, and counts for nothing without Topiary */
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 - off -", "prefer", "1@0 cn1:0-2,4-6; " },
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 - prefer -", "off", "1@0 cn2:0-5; " },
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 - - package", "off", "1@0 cn2:0-5; " },
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 - require package", "stock", "1@0 cn1:0-2,4-6; " },
		/* Slurm: a core of each socket in turn; tasks of several CPUs by sockets; the best socket */
		{ ONE("Package:2 Core:32 PU:1"), "1 0 0 9 1 4 1 - - -", "stock", "1@0 cn1:0-1,32-33; " },
		{ ONE("Package:2 Core:8 PU:1"), "1 0 0 9 1 2 3 - - -", "stock", "1@0 cn1:0-5; " },
		{ ONE("Package:2 Core:8 PU:1"), "1 0 0 9 1 3 3 - - -", "stock", "1@0 cn1:0-5,8-10; " },
		{ ONE("Package:2 Core:8 PU:1"), "1 0 0 9 1 3 5 - - -", "stock", "1@0 cn1:0-14; " },
		{ ONE("Package:2 Core:8 PU:2"), "1 0 0 9 1 5 1 - - -", "stock", "1@0 cn1:0-1,8; " },
		{ ONE("Package:2 Core:8 PU:2"), "1 0 0 9 1 3 4 - - -", "stock", "1@0 cn1:0-5; " },
		{ ONE("Package:2 Core:8 PU:1"), "1 0 0 9 1 3 1 - - -\n2 0 0 9 1 4 1 - - -\n3 0 0 9 1 5 1 - - -",
		  "block", "1@0 cn1:0-2; 2@0 cn1:3-6; 3@0 cn1:8-12; " },
		/*
		 * Slurm: of rows of neighbours the smallest that is enough, in it the first nodes, the tightest for the
		 * last one
		 */
		{ TWINS, "1 0 0 9 1 2 1 - - -\n2 0 0 9 1 2 1 - - -", "block", "1@0 cn1:0-1; 2@0 cn1:2-3; " },
		{ TWINS, "1 0 0 9 1 16 1 - - -\n2 0 0 9 2 32 1 - - -\n3 0 0 9 1 1 1 - - -", "block",
		  "1@0 cn1:0-15; 2@0 cn2:0-15 cn3:0-15; 3@0 cn4:0; " },
		{ TWINS, "1 0 0 5 2 32 1 - - -\n2 0 0 9 1 16 1 - - -\n3 6 6 9 2 8 1 - - -", "block",
		  "1@0 cn1:0-15 cn2:0-15; 2@0 cn3:0-15; 3@6 cn1:0-3 cn2:0-3; " },
		/* the least cut on each of several nodes */
		{ TWINS, "1 0 0 9 3 12 1 - - -\n2 0 0 9 2 16 1 - - -", "prefer",
		  "1@0 cn1:0-3 cn2:0-3 cn3:0-3; 2@0 cn1:8-15 cn2:8-15; " },
		{ TWINS, "1 0 0 9 2 5 1 - - -", "prefer", "1@0 cn1:0-2 cn2:0-1; " },
		{ TWINS, "1 0 0 9 1 2 3 - - -", "prefer", "1@0 cn1:0-2,4-6; " },
		{ TWINS, "1 0 0 9 1 4 1 - - -", "spread", "1@0 cn1:0,4,8,12; " },
		{ TWINS, "1 0 0 9 1 6 1 - - -", "prefer:l3", "1@0 cn1:0-5; " },
		/* no L3 cache has six cores; two jobs do not have one at once */
		{ TWINS, "1 0 0 9 1 6 1 - - -", "require:l3", "" },
		{ ONE("L3Cache:2 Core:4 PU:1"), "1 0 0 9 1 3 1 - - -\n2 0 0 9 1 3 1 - - -\n3 0 0 9 1 2 1 - - -",
		  "require:l3", "1@0 cn1:0-2; 2@0 cn1:4-6; 3@9 cn1:0-1; " },
		{ ONE("L3Cache:2 Core:4 PU:1"), "1 0 0 9 1 3 1 - - -\n2 0 0 9 1 3 1 - - -\n3 0 0 9 1 2 1 - - -",
		  "prefer:l3", "1@0 cn1:0-2; 2@0 cn1:4-6; 3@0 cn1:3,7; " },
		/* more nodes, or more cores, than there are */
		{ TWINS, "1 0 0 9 5 5 1 - - -\n2 0 0 9 1 17 1 - - -\n3 0 0 9 1 1 1 - - -", "stock", "3@0 cn1:0; " },
	};

	for (size_t i = 0; i < ROWS(rows); i++)
		replay_told(i, rows[i].nodes, NULL, rows[i].jobs, rows[i].policy, rows[i].story);
}

/* --- memory --- */

#define MEMORY_COLUMNS "job submit start end nodes tasks memory\n"
#define HALVES "shape A Package:2 [NUMANode(memory=8GiB)] Core:4 PU:1\n"
#define GPUS "shape A Package:2 [NUMANode] Core:4 PU:1\nshape B Package:2 [NUMANode] Core:4 PU:1 + GPU@0-3 GPU@4-7\n"

TEST(places_jobs_by_memory)
{
	static const struct {
		const char *nodes, *jobs, *policy, *story;
		unsigned far, needless;
	} rows[] = {
		/* a NUMA node has 8 GiB: four cores with 12 GiB are two and two, unless memory does not matter */
		{ "cn1", "1 0 0 9 1 4 12G", "prefer", "1@0 cn1:0-1,4-5; ", 0, 0 },
		{ "cn1", "1 0 0 9 1 4 12G", "prefer:mem=off", "1@0 cn1:0-3; ", 1, 1 },
		{ "cn1", "1 0 0 9 1 4 12G", "block", "1@0 cn1:0-3; ", 1, 1 },
		{ "cn1", "1 0 0 9 1 4 8G", "prefer", "1@0 cn1:0-3; ", 0, 0 },
		/* another node has it near */
		{ "cn[1-2]", "1 0 0 9 1 1 6G\n2 0 0 9 1 1 6G\n3 0 0 9 1 1 4G", "prefer",
		  "1@0 cn1:0; 2@0 cn1:4; 3@0 cn2:0; ", 0, 0 },
		{ "cn[1-2]", "1 0 0 9 1 1 6G\n2 0 0 9 1 1 6G\n3 0 0 9 1 1 4G", "prefer:mem=off",
		  "1@0 cn1:0; 2@0 cn1:1; 3@0 cn1:2; ", 2, 2 },
		/* one core cannot have more than its NUMA node has: preferred it runs, required it never does */
		{ "cn1", "1 0 0 9 1 1 9G", "prefer", "1@0 cn1:0; ", 1, 0 },
		{ "cn1", "1 0 0 9 1 1 9G", "prefer:mem=require", "", 0, 0 },
		{ "cn1", "1 0 0 9 1 1 6G\n2 0 0 9 1 1 6G\n3 1 1 4 1 1 4G", "prefer:mem=require",
		  "1@0 cn1:0; 2@0 cn1:4; 3@9 cn1:0; ", 0, 0 },
		/* no node has more than it has */
		{ "cn1", "1 0 0 9 1 1 10G\n2 0 0 9 1 1 7G\n3 0 0 5 1 1 17G", "stock", "1@0 cn1:0; 2@9 cn1:0; ", 1, 0 },
		{ "cn1", "1 0 0 9 1 1 10G\n2 0 0 9 1 1 5G", "stock", "1@0 cn1:0; 2@0 cn1:1; ", 2, 1 },
		/* each node of a job has its own */
		{ "cn[1-2]", "1 0 0 9 2 8 12G", "prefer", "1@0 cn1:0-1,4-5 cn2:0-1,4-5; ", 0, 0 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct replay_result r;
		char nodes[256];

		snprintf(nodes, sizeof(nodes), HALVES "nodes %s A", rows[i].nodes);
		r = replay_told(i, nodes, MEMORY_COLUMNS, rows[i].jobs, rows[i].policy, rows[i].story);
		/* What has less memory near is no better choice. */
		if (r.memory_far != rows[i].far || r.memory_needless != rows[i].needless || r.dominated)
			fail_msg("row %zu: %zu, %zu, %zu", i, r.memory_far, r.memory_needless, r.dominated);
		assert_int_equal(r.with_memory, r.jobs);
	}
}

/* Half a package on the GPU's node is as good as elsewhere; of two jobs with all its GPUs one waits, for any policy. */
TEST(places_jobs_by_gpus)
{
	static const struct {
		const char *nodes, *jobs, *policy, *story;
	} rows[] = {
		{ GPUS "nodes cn1 B\nnodes cn2 A", "1 0 0 9 1 2 -", "prefer", "1@0 cn2:0-1; " },
		{ GPUS "nodes cn1 B\nnodes cn2 A", "1 0 0 9 1 2 -", "block", "1@0 cn1:0-1; " },
		{ GPUS "nodes cn1 A\nnodes cn2 B", "1 0 0 9 1 2 2\n2 0 0 9 1 2 1\n3 0 0 9 1 2 -", "prefer",
		  "1@0 cn2:0-1; 3@0 cn2:2-3; 2@9 cn2:0-1; " },
		{ GPUS "nodes cn1 A\nnodes cn2 B", "1 0 0 9 1 2 1\n2 0 0 9 1 2 1\n3 0 0 9 1 1 3", "stock",
		  "1@0 cn2:0,4; 2@0 cn2:1,5; " },
		/* with none of its GPUs free the node is as any other, and in use */
		{ GPUS "nodes cn1 A\nnodes cn2 B", "1 0 0 9 1 1 2\n2 0 0 9 1 3 -", "prefer",
		  "1@0 cn2:0; 2@0 cn2:1-3; " },
		{ GPUS "nodes cn1 A\nnodes cn2 B", "1 0 0 9 1 1 1\n2 0 0 9 1 3 -", "prefer",
		  "1@0 cn2:0; 2@0 cn1:0-2; " },
		/* without a GPU in the snapshot they are not counted */
		{ GPUS "nodes cn1 A", "1 0 0 9 1 2 2\n2 0 0 9 1 2 1", "prefer", "1@0 cn1:0-1; 2@0 cn1:2-3; " },
	};

	for (size_t i = 0; i < ROWS(rows); i++)
		replay_told(i, rows[i].nodes, "job submit start end nodes tasks gpus\n", rows[i].jobs, rows[i].policy,
			    rows[i].story);
}

/* --- who goes first --- */

TEST(backfills_without_delay)
{
	static const struct {
		const char *what, *nodes, *jobs, *story;
		unsigned backfilled;
	} rows[] = {
		{ "first come, first served", ONE("Core:4 PU:1"),
		  "a 0 0 10 1 4 1 - - -\nb 1 1 3 1 4 1 - - -\nc 2 2 3 1 4 1 - - -",
		  "a@0 cn1:0-3; b@10 cn1:0-3; c@12 cn1:0-3; ", 0 },
		{ "what ends before the first can start", ONE("Core:4 PU:1"),
		  "a 0 0 100 1 3 1 100 - -\nb 1 0 10 1 4 1 10 - -\nc 2 0 50 1 1 1 50 - -",
		  "a@0 cn1:0-2; c@2 cn1:3; b@100 cn1:0-3; ", 1 },
		{ "what may last longer than that", ONE("Core:4 PU:1"),
		  "a 0 0 100 1 3 1 100 - -\nb 1 0 10 1 4 1 10 - -\nc 2 0 50 1 1 1 200 - -",
		  "a@0 cn1:0-2; b@100 cn1:0-3; c@110 cn1:0; ", 0 },
		{ "without limits the run times count", ONE("Core:4 PU:1"),
		  "a 0 0 100 1 3 1 - - -\nb 1 0 10 1 4 1 - - -\nc 2 0 98 1 1 1 - - -\nd 2 0 99 1 1 1 - - -",
		  "a@0 cn1:0-2; c@2 cn1:3; b@100 cn1:0-3; d@110 cn1:0; ", 1 },
		{ "beside the first, for as long as it likes", "shape A Core:4 PU:1\nnodes cn[1-2] A",
		  "a 0 0 100 1 3 1 100 - -\nx 0 0 100 1 3 1 100 - -\nb 1 0 10 1 4 1 10 - -\nc 2 0 500 1 1 1 500 - -\n"
		  "d 2 0 500 1 1 1 500 - -",
		  "a@0 cn1:0-2; x@0 cn2:0-2; c@2 cn2:3; b@100 cn1:0-3; d@100 cn2:0; ", 1 },
		{ "but not on the node planned for the first, of which Slurm keeps all", ONE("Core:4 PU:1"),
		  "a 0 0 100 1 3 1 100 - -\nb 1 0 10 1 3 1 10 - -\nc 2 0 500 1 1 1 500 - -",
		  "a@0 cn1:0-2; b@100 cn1:0-2; c@100 cn1:3; ", 0 },
		{ "who ends early lets the first start early", ONE("Core:4 PU:1"),
		  "a 0 0 20 1 3 1 100 - -\nb 1 0 10 1 4 1 10 - -\nc 2 0 50 1 1 1 60 - -",
		  "a@0 cn1:0-2; c@2 cn1:3; b@52 cn1:0-3; ", 1 },
		{ "who overruns its limit is to end at any moment", ONE("Core:4 PU:1"),
		  "a 0 0 100 1 3 1 10 - -\nb 1 0 10 1 4 1 10 - -\nc 20 0 5 1 1 1 5 - -\nd 30 0 1 1 1 1 1 - -",
		  "a@0 cn1:0-2; b@100 cn1:0-3; c@110 cn1:0; d@110 cn1:1; ", 0 },
	};

	for (size_t i = 0; i < ROWS(rows); i++)
		assert_int_equal(replay_told(i, rows[i].nodes, NULL, rows[i].jobs, "block", rows[i].story).backfilled,
				 rows[i].backfilled);
}

/* --- how good that was --- */

static bool is_near(double a, double b)
{
	return a > b - 1e-9 && a < b + 1e-9;
}

TEST(judges_placements)
{
	static const struct {
		const char *nodes, *jobs, *policy;
		unsigned own[JUDGED_LEVELS], any[JUDGED_LEVELS], dominated, broken;
		double touched_to_ideal;
	} rows[] = {
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 - - -", "stock", {0}, { 1, 1, 0 }, 1, 2, 10. / 8 },
		{ SMALL_AND_LARGE, "1 0 0 9 1 6 1 - - -", "prefer", {0}, {0}, 0, 0, 1 },
		/* on its own node, too, four cores fit into a package, which is one of four */
		{ SMALL_AND_LARGE, "1 0 0 9 1 4 1 - - -", "stock", { 1, 1, 0 }, { 1, 1, 0 }, 1, 2, 8. / 6 },
		/* the rest of a package is an exact fit as well */
		{ SMALL_AND_LARGE, "1 0 0 9 1 2 1 - - -\n2 0 0 9 1 2 1 - - -", "prefer", {0}, {0}, 0, 1, 1 },
		{ SMALL_AND_LARGE, "1 0 0 9 1 2 1 - - -\n2 0 0 9 1 4 1 - - -", "block", {0}, {0}, 0, 1, 1 },
		/* no smaller domain is free any more */
		{ ONE("Package:2 L3Cache:2 Core:2 PU:1"), "1 0 0 9 1 1 1 - - -\n2 0 0 9 1 1 1 - - -\n"
		  "3 0 0 9 1 2 1 - - -", "stock",
		  { 1, 1, 1 }, { 1, 1, 1 }, 1, 2, (1 + 1 + 6. / 3) / 3 },
		/* two tasks of three cores, each whole in an L3 cache of four; in one package */
		{ TWINS, "1 0 0 9 1 2 3 - - -", "prefer", {0}, {0}, 0, 1, 1 },
		{ TWINS, "1 0 0 9 1 2 3 - - -", "stock", {0}, {0}, 0, 1, 1 },
		/* each part of a job of several nodes may stand elsewhere */
		{ TWINS, "1 0 0 9 2 8 1 - - -", "stock", { 1, 1, 1 }, { 1, 1, 1 }, 1, 4, 2 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct replay_result r = replay_told(i, rows[i].nodes, NULL, rows[i].jobs, rows[i].policy, NULL);

		for (size_t k = 0; k < JUDGED_LEVELS; k++)
			if (r.split_own[k] != rows[i].own[k] || r.split_any[k] != rows[i].any[k])
				fail_msg("row %zu: split %zu, %zu of %s", i, r.split_own[k], r.split_any[k],
					 level_name(judged_level(k)));
		if (r.dominated != rows[i].dominated || r.broken != rows[i].broken)
			fail_msg("row %zu: dominated %zu, broken %zu", i, r.dominated, r.broken);
		if (!is_near(r.touched_to_ideal, rows[i].touched_to_ideal))
			fail_msg("row %zu: %f over the ideal", i, r.touched_to_ideal);
	}
}

/* Of four cores in two packages one is taken for ten seconds, in the sixth the one beside it, too; then all are. */
TEST(sums_times)
{
	struct replay_result r = replay_told(0, ONE("Package:2 Core:2 PU:1"), NULL, "a 0 0 10 1 1 1 - - -\n"
					     "b 0 0 10 1 4 1 - - -\nc 5 5 6 1 1 1 - - -", "block", NULL);

	assert_int_equal(r.makespan, 20000);
	assert_true(is_near(r.utilisation, 51. / 80));
	assert_true(is_near(r.loose[JUDGED_PACKAGE], 9. / 29));
	assert_int_equal(r.waits[REPLAY_ALL].mean, 10000 / 3);
	assert_int_equal(r.wait_median, 0);
	assert_int_equal(r.waits[REPLAY_ALL].p90, 10000);
}

/* Of four cores: a, c and d wait for 0, 0 and 8 s, b for more than half of the node for 10 s, e for two nodes. */
TEST(counts_waits_by_class)
{
	static const struct replay_waits want[REPLAY_CLASSES] = {
		[REPLAY_QUARTER] = { 2, 4000, 8000 }, [REPLAY_HALF] = { 1, 0, 0 }, [REPLAY_NODE] = { 1, 10000, 10000 },
		[REPLAY_NODES] = { 1, 18000, 18000 }, [REPLAY_GPUS] = { 1, 0, 0 }, [REPLAY_ALL] = { 6, 6000, 18000 },
	};
	struct replay_result r = replay_told(0, "shape A Core:4 PU:1\nnodes cn[1-2] A",
					     "job submit start end nodes tasks gpus\na 0 0 10 1 1 -\nc 0 0 10 1 2 -\n"
					     "g 0 0 10 1 4 1\n",
					     "b 0 0 10 1 3 -\nd 2 2 11 1 1 -\ne 2 2 9 2 8 -", "block", NULL);

	for (size_t i = 0; i < REPLAY_CLASSES; i++)
		if (memcmp(&r.waits[i], &want[i], sizeof(want[i])))
			fail_msg("class %zu: %zu jobs, mean %lld, p90 %lld", i, r.waits[i].jobs, r.waits[i].mean,
				 r.waits[i].p90);
}

/* --- any trace --- */

static unsigned chance(unsigned *seed, unsigned below)
{
	*seed = *seed * 1103515245u + 12345;
	return (*seed >> 16) % below;
}

#define CLUSTER \
	"shape A Package:2 [NUMANode] Core:6 PU:1\nshape B Package:4 [NUMANode] L3Cache:1 Core:4 PU:2\n" \
	"shape C Package:2 [NUMANode] L3Cache:4 Core:2 PU:1\nshape D Package:1 L3Cache:2 L2Cache:4 Core:2 PU:1\n" \
	"shape E { Package:1 [NUMANode] L3Cache:1 Core:6 PU:1 | Package:1 [NUMANode] L3Cache:2 Core:3 PU:1 }\n" \
	"nodes cn[1-4] A\nnodes cn[5-7,12] B\nnodes cn[8-10] C\nnodes cn11 D\nnodes cn13 E"

static struct buf random_jobs(unsigned seed, unsigned n)
{
	static const unsigned sizes[] = { 1, 1, 1, 2, 2, 3, 4, 4, 6, 6, 8, 12, 16 };
	struct buf b = {0};
	long long at = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned cpus = sizes[chance(&seed, ROWS(sizes))], nodes = chance(&seed, 6) ? 1 : 2, each = 1;
		unsigned run = 20 + chance(&seed, 300), tasks;

		if (cpus % 3 == 0 && chance(&seed, 2))
			each = 3;
		else if (cpus % 4 == 0 && chance(&seed, 2))
			each = 4;
		else if (cpus % 2 == 0 && chance(&seed, 2))
			each = 2;	/* a core where cores have two threads, two where they have one */
		tasks = nodes * cpus / each;
		tasks -= tasks > nodes && !chance(&seed, 4);	/* shares that are not equal */
		at += chance(&seed, 24);
		buf_printf(&b, "%u %lld %lld %lld %u %u %u %u - -\n", i, at, at, at + run, nodes, tasks, each,
			   run + chance(&seed, 100));
	}
	return b;
}

/* Three nodes of HALVES, counted without the replay's code: MB of each core that has any, and who is far. */
struct recount {
	double core[3][8];
	size_t far;
};

static double half_used(const double *core, unsigned half)
{
	return core[4 * half] + core[4 * half + 1] + core[4 * half + 2] + core[4 * half + 3];
}

static void recount_start(void *user, const struct past_job *job, const struct cluster_shares *seats, long long at)
{
	struct recount *r = user;
	bool is_far = false;

	(void) at;
	for (size_t i = 0; i < seats->n; i++) {
		double *core = r->core[seats->list[i].node], used[2] = { half_used(core, 0), half_used(core, 1) };
		unsigned in[2] = {0};

		for (unsigned c = 0; c < 8; c++)
			if (is_in(seats->list[i].mask, c)) {
				assert_true(core[c] == 0);
				core[c] = (double) job->memory / seats->list[i].cores;
				in[c / 4]++;
			}
		assert_true(half_used(core, 0) + half_used(core, 1) <= 16384.1);
		for (unsigned half = 0; half < 2; half++) {
			double over = used[!half] > 8192 ? used[!half] - 8192 : 0;

			is_far |= in[half] && used[half] + over +
				(double) job->memory * in[half] / seats->list[i].cores > 8192 + 1;
		}
	}
	r->far += is_far;
}

static void recount_end(void *user, const struct past_job *job, const struct cluster_shares *seats, long long at)
{
	struct recount *r = user;

	(void) job;
	(void) at;
	for (size_t i = 0; i < seats->n; i++)
		for (unsigned c = 0; c < 8; c++)
			if (is_in(seats->list[i].mask, c))
				r->core[seats->list[i].node][c] = 0;
}

TEST(memory_is_counted)
{
	static const char *const policies[] = { "stock", "block", "prefer", "prefer:mem=off", "prefer:mem=require" };
	unsigned seed = 7;
	FREED(buf_free) struct buf jobs = {0};
	FREED(stage_close) struct stage stage;

	for (unsigned i = 0; i < 2000; i++)
		buf_printf(&jobs, "%u %u %u %u 1 %u %u\n", i, 2 * i, 2 * i, 2 * i + 5 + chance(&seed, 15),
			   1 + chance(&seed, 4), 1 + chance(&seed, 5000));
	stage_open_columns(&stage, HALVES "nodes cn[1-3] A", MEMORY_COLUMNS, jobs.data);
	for (size_t i = 0; i < ROWS(policies); i++) {
		struct recount count = {0};
		struct replay_watch watch = { recount_start, recount_end, &count };
		struct replay_result r;
		struct replay_policy p;

		if (replay_policy_parse(policies[i], &p, &err) ||
		    replay_run(stage.cluster, &stage.jobs, &p, &watch, &r, &err))
			fail_msg("%s: %s", policies[i], err.text);
		print_message("# %s: of %zu jobs %zu far, %zu needlessly, utilisation %.3f\n", policies[i], r.jobs,
			      r.memory_far, r.memory_needless, r.utilisation);
		assert_int_equal(r.memory_far, count.far);
		assert_int_equal(r.jobs, stage.jobs.n);
		if (p.kind == POLICY_FIT && p.request.memory != FIT_OFF)
			assert_int_equal(r.memory_needless + r.dominated, 0);
		else
			assert_true(r.memory_needless > 50);
		assert_true(p.request.memory != FIT_REQUIRE || !r.memory_far);
	}
}

/* Nothing touches less than the least cost, and stock placements are judged worse. */
TEST(least_cost_is_never_worse)
{
	for (unsigned seed = 1; seed <= 4; seed++) {
		FREED(buf_free) struct buf jobs = random_jobs(seed, 400);
		struct replay_result stock, prefer;
		FREED(stage_close) struct stage stage;

		stage_open(&stage, CLUSTER, jobs.data);
		stock = replay(&stage, "stock", NULL);
		prefer = replay(&stage, "prefer", NULL);
		assert_int_equal(prefer.dominated, 0);
		assert_in_range(stock.dominated, 100, 400);
		assert_true(prefer.touched_to_ideal < stock.touched_to_ideal);
	}
}

/* Slurm gives whole cores to the tasks of a node together, so that tasks of an odd number of CPUs share some. */
TEST(tasks_share_cores)
{
	static const struct {
		unsigned tasks, cpus, threads, each, cores;
	} rows[] = {
		{ 1, 7, 2, 4, 4 }, { 2, 7, 2, 4, 7 }, { 8, 7, 2, 4, 28 }, { 3, 1, 2, 1, 2 }, { 3, 3, 1, 3, 9 },
		{ 2, 5, 4, 2, 3 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		const struct cluster_kind kind = { .threads = rows[i].threads };
		const struct past_job job = { .task_cpus = rows[i].cpus };

		assert_int_equal(cluster_job_task_cores(&job, &kind), rows[i].each);
		assert_int_equal(cluster_job_cores(&job, rows[i].tasks, &kind), rows[i].cores);
	}
}

TESTS_MAIN(NULL, NULL)
