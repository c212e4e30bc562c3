/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/file.h"
#include "progress.h"
#include "place.h"
#include "table.h"
#include "trace/reader.h"

#define POLICIES_USUAL "stock,block,prefer"

struct args {
	const char *snapshot;
	const char *policies;
	uint64_t limit;			/* 0: none */
	struct cmd_words files;
};

static const struct cmd_option options[] = {
	{ "snapshot", 0, "FILE", CMD_TEXT(snapshot), "The nodes' hardware, instead of SnapshotFile" },
	{ "policies", 0, "LIST", CMD_WORD(policies),
	  "Policies out of stock, block, off, prefer, require and spread, with a level as in require:l3, and "
	  "with TopoMem and TopoWeight as in prefer:mem=off and prefer:weight=job "
	  "(default: " POLICIES_USUAL ")" },
	{ "limit", 0, "N", CMD_NUMBER(limit, 1, SIZE_MAX), "Only the first N jobs by submit time" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "JOBS...",
	"Replay past jobs offline on the nodes of a snapshot under several placement policies, and compare the "
	"results. JOBS is the output of `sacct --parsable2`, or a plain list (topiary(1)); '-' is standard input.",
	CMD_WORDS(files), "at least one file of JOBS", NULL,
};

/* --- inputs --- */

static int read_policies(struct past *s, const char *list, struct err *e)
{
	char word[REPLAY_POLICY_NAME + 1];

	for (size_t len; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (s->npolicies == PAST_POLICIES)
			return err_set(e, "--policies: more than %d policies", PAST_POLICIES);
		snprintf(word, sizeof(word), "%.*s", (int) len, list);
		if (replay_policy_parse(word, &s->policies[s->npolicies], e))
			return err_within(e, "--policies");
		s->npolicies++;
	}
	return s->npolicies ? 0 : err_set(e, "--policies: the list is empty");
}

static bool node_known(const void *cluster, const char *name)
{
	return cluster_has(cluster, name);
}

int past_read(struct past *s, struct buf *text, const char *name, bool leave_out, struct err *e)
{
	const struct cluster_kind *largest = s->cluster->largest;
	const struct jobs_nodes nodes = { node_known, s->cluster, largest->shape->cores * largest->threads, leave_out };
	int rc = jobs_read(&s->jobs, text->data ? text->data : "", text->len, name, &nodes, e);

	buf_free(text);
	return rc;
}

static int inputs_read(struct past *s, const struct cmd *c, const struct args *a, struct snapshot **snapshot,
		       struct cluster **cluster, struct err *e)
{
	const char *path = a->snapshot ? a->snapshot : c->settings.snapshot_file, *name;
	struct buf text = {0};

	/* Before the snapshot is read, whose errors would hide a mistyped name. */
	for (int i = 0; i < a->files.n; i++) {
		const char *file = a->files.list[i];

		if (strcmp(file, "-") && access(file, R_OK))
			return err_set(e, "%s: %s", file, strerror(errno));
		if (strcmp(file, "-") && trace_is_file(file))
			return err_set(e, "%s: a trace of a node, expected past jobs: use topiary trace replay", file);
	}
	if (file_read(path, SNAPSHOT_MAX_BYTES, &text, e))
		return -1;
	*snapshot = snapshot_parse(text.data, text.len, path, e);
	buf_free(&text);
	if (!*snapshot)
		return -1;
	if (!(s->cluster = *cluster = cluster_new(*snapshot, e)))
		return err_within(e, "%s", path);
	for (int i = 0; i < a->files.n; i++)
		if (file_read_input(a->files.list[i], PAST_MAX_BYTES, &name, &text, e) ||
		    past_read(s, &text, name, false, e))
			return -1;
	return s->jobs.n ? 0 : err_set(e, "%s: no job in this file has started and ended", a->files.list[0]);
}

static void job_started(void *progress, const struct past_job *, const struct cluster_shares *, long long)
{
	progress_step(progress, 1);
}

int past_run(struct past *s, uint64_t limit, struct err *e)
{
	struct progress progress;
	const struct replay_watch watch = { .started = job_started, .user = &progress };
	int rc = 0;

	if (!s->npolicies && read_policies(s, POLICIES_USUAL, e))
		return -1;
	if (jobs_sort(&s->jobs))
		return err_set(e, "out of memory");
	if (limit)
		jobs_cut(&s->jobs, limit);
	progress_start(&progress, "replaying jobs", s->jobs.n * s->npolicies);
	for (size_t i = 0; !rc && i < s->npolicies; i++)
		rc = replay_run(s->cluster, &s->jobs, &s->policies[i], &watch, &s->results[i], e);
	progress_end(&progress);
	return rc;
}

/* --- results --- */

/* Of a member of struct replay_result: numbers (size_t), of which three are divided; doubles; milliseconds. */
enum unit { COUNT, OF_JOBS, OF_MEMORY, PER_JOB, RATIO, PERCENT, SECONDS };
#define AT(member) offsetof(struct replay_result, member)

#define CLASS(called, key, nth) \
	{ called ": jobs", key "_jobs", 0, 0, COUNT, AT(waits[nth].jobs) }, \
	{ "  wait, mean, s", key "_wait_mean_seconds", 1, -1, SECONDS, AT(waits[nth].mean) }, \
	{ "  90 % within, s", key "_wait_p90_seconds", 1, -1, SECONDS, AT(waits[nth].p90) }

static const struct row {
	const char *name, *key;
	int decimals;
	int better;			/* -1: less, 1: more, 0: neither */
	enum unit unit;
	size_t at;
} rows[] = {
	{ "jobs", "jobs", 0, 0, COUNT, AT(jobs) },
	{ "rejected: fits no node", "refused", 0, -1, COUNT, AT(refused) },
	{ "backfilled", "backfilled", 0, 0, COUNT, AT(backfilled) },
	{ "placements with a strictly better alternative, %", "dominated_percent", 1, -1, OF_JOBS, AT(dominated) },
	{ "avoidable package splits, % of jobs", "split_package_percent", 1, -1, OF_JOBS,
	 AT(split_any[JUDGED_PACKAGE]) },
	{ "  of NUMA nodes, %", "split_numa_percent", 1, -1, OF_JOBS, AT(split_any[JUDGED_NUMA]) },
	{ "  of L3 caches, %", "split_l3_percent", 1, -1, OF_JOBS, AT(split_any[JUDGED_L3]) },
	{ "on their own nodes: package split, %", "split_package_own_percent", 1, -1, OF_JOBS,
	  AT(split_own[JUDGED_PACKAGE]) },
	{ "  of NUMA nodes, %", "split_numa_own_percent", 1, -1, OF_JOBS, AT(split_own[JUDGED_NUMA]) },
	{ "  of L3 caches, %", "split_l3_own_percent", 1, -1, OF_JOBS, AT(split_own[JUDGED_L3]) },
	{ "whole free packages broken, per job", "broken_per_job", 2, -1, PER_JOB, AT(broken) },
	{ "domains used, relative to the minimum", "touched_to_ideal", 3, -1, RATIO, AT(touched_to_ideal) },
	{ "memory requested, jobs", "memory_jobs", 0, 0, COUNT, AT(with_memory) },
	{ "  not in the NUMA nodes of their cores, %", "memory_far_percent", 1, -1, OF_MEMORY, AT(memory_far) },
	{ "  although other free cores had it near, %", "memory_needless_percent", 1, -1, OF_MEMORY,
	  AT(memory_needless) },
	{ "free cores in partly used packages, %", "loose_package_percent", 1, -1, PERCENT, AT(loose[JUDGED_PACKAGE]) },
	{ "  in partly used NUMA nodes, %", "loose_numa_percent", 1, -1, PERCENT, AT(loose[JUDGED_NUMA]) },
	{ "  in partly used L3 caches, %", "loose_l3_percent", 1, -1, PERCENT, AT(loose[JUDGED_L3]) },
	{ "utilisation, %", "utilisation_percent", 1, 1, PERCENT, AT(utilisation) },
	{ "makespan, s", "makespan_seconds", 0, -1, SECONDS, AT(makespan) },
	{ "wait, mean, s", "wait_mean_seconds", 1, -1, SECONDS, AT(waits[REPLAY_ALL].mean) },
	{ "  median, s", "wait_median_seconds", 1, -1, SECONDS, AT(wait_median) },
	{ "  90 % within, s", "wait_p90_seconds", 1, -1, SECONDS, AT(waits[REPLAY_ALL].p90) },
	CLASS("on a quarter of the largest node at most", "quarter", REPLAY_QUARTER),
	CLASS("on half of it at most", "half", REPLAY_HALF),
	CLASS("on more of one node", "node", REPLAY_NODE),
	CLASS("on several nodes", "nodes", REPLAY_NODES),
	CLASS("with GPUs", "gpu", REPLAY_GPUS),
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static double figure(const struct row *row, const struct replay_result *r)
{
	const void *at = (const char *) r + row->at;
	size_t of = row->unit == OF_MEMORY ? r->with_memory : r->jobs;

	switch (row->unit) {
	case COUNT:
		return *(const size_t *) at;
	case OF_JOBS:
	case OF_MEMORY:
	case PER_JOB:
		return of ? (row->unit == PER_JOB ? 1. : 100.) * *(const size_t *) at / of : 0;
	case SECONDS:
		return *(const long long *) at / 1000.;
	default:
		return *(const double *) at * (row->unit == PERCENT ? 100 : 1);
	}
}

/* The best printed value of a row; none where all are equal. */
static bool is_best(const struct past *s, const struct row *row, double mine)
{
	double step = 0.5 / (row->decimals ? row->decimals > 1 ? row->decimals > 2 ? 1000 : 100 : 10 : 1);
	bool differ = false;

	for (size_t i = 0; i < s->npolicies; i++) {
		double less = (mine - figure(row, &s->results[i])) * row->better;

		if (less < -step)
			return false;
		differ |= less > step;
	}
	return differ;
}

int past_table(const struct past *s, struct err *e)
{
	struct table *t = table_new("POLICY");

	for (size_t i = 0; i < s->npolicies; i++)
		table_column(t, '>', s->policies[i].name);
	for (const struct row *row = rows; row < rows + ROWS; row++) {
		size_t class = (row->at - AT(waits)) / sizeof(struct replay_waits);

		if (!s->results[0].with_memory && (row->unit == OF_MEMORY || row->at == AT(with_memory)))
			continue;
		if (row->at >= AT(waits) && class < REPLAY_CLASSES && !s->results[0].waits[class].jobs)
			continue;
		table_cell(t, "%s", row->name);
		for (size_t i = 0; i < s->npolicies; i++) {
			double mine = figure(row, &s->results[i]);

			table_cell(t, "%.*f", row->decimals, mine);
			if (is_best(s, row, mine))
				table_colour(t, COLOUR_GREEN);
		}
	}
	printf("%zu job%s on %zu node%s with %llu core%s", s->jobs.n, PLURAL(s->jobs.n), s->cluster->n,
	       PLURAL(s->cluster->n), s->cluster->cores, PLURAL(s->cluster->cores));
	if (s->jobs.skipped)
		printf("; %zu more skipped (they never ran, or still run)", s->jobs.skipped);
	if (s->jobs.unreadable)
		printf("; %zu row%s with too few values (line breaks in comments?)", s->jobs.unreadable,
		       PLURAL(s->jobs.unreadable));
	if (s->jobs.elsewhere)
		printf("; %zu left out, which ran on nodes without topology", s->jobs.elsewhere);
	puts("\n");
	return table_finish(t, e);
}

json_t *past_json(const struct past *s)
{
	json_t *policies = json_array();

	for (size_t i = 0; i < s->npolicies; i++) {
		json_t *p = json_pack("{s:s}", "policy", s->policies[i].name);

		for (const struct row *row = rows; row < rows + ROWS; row++) {
			double value = figure(row, &s->results[i]);

			json_object_set_new(p, row->key, row->unit == COUNT ? json_integer(value) : json_real(value));
		}
		json_array_append_new(policies, p);
	}
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "jobs", (json_int_t) s->jobs.n, "skipped",
			 (json_int_t) s->jobs.skipped, "unreadable", (json_int_t) s->jobs.unreadable, "elsewhere",
			 (json_int_t) s->jobs.elsewhere, "nodes", (json_int_t) s->cluster->n, "cores",
			 (json_int_t) s->cluster->cores, "policies", policies);
}

int cmd_replay(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .policies = POLICIES_USUAL };
	struct snapshot *snapshot = NULL;
	struct cluster *cluster = NULL;
	struct past s = {0};
	int rc = cmd_parse(c, &syntax, &a, argc, argv, e) || read_policies(&s, a.policies, e) ||
		inputs_read(&s, c, &a, &snapshot, &cluster, e) || past_run(&s, a.limit, e) ? -1 : 0;

	if (!rc)
		rc = c->json ? cmd_print_new(past_json(&s), e) : past_table(&s, e);
	jobs_free(&s.jobs);
	cluster_free(cluster);
	snapshot_free(snapshot);
	return rc;
}
