/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd.h"
#include "progress.h"
#include "table.h"
#include "replay/replay.h"
#include "trace/reader.h"

#define RECORD_MAX_BYTES (1u << 30)
#define POLICIES_MAX (TABLE_COLUMNS - 1)
#define POLICIES_USUAL "stock,block,prefer"

struct args {
	const char *snapshot;
	const char *policies;
	uint64_t limit;			/* 0: none */
	struct cmd_words files;
};

static const struct cmd_option options[] = {
	{ "snapshot", 0, "FILE", CMD_TEXT(snapshot), "The nodes' hardware, instead of SnapshotFile" },
	{ "policies", 0, "LIST", CMD_TEXT(policies),
	  "Policies out of stock, block, off, prefer, require and spread, with a level as in require:l3, and "
	  "with TopoMem as in prefer:mem=off "
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

struct stage {
	struct snapshot *snapshot;
	struct cluster *cluster;
	struct jobs jobs;
	struct policy policies[POLICIES_MAX];
	struct replay_result results[POLICIES_MAX];
	size_t npolicies;
	struct progress progress;
};

static void stage_free(struct stage *s)
{
	jobs_free(&s->jobs);
	cluster_free(s->cluster);
	snapshot_free(s->snapshot);
}

static int read_policies(struct stage *s, const char *list, struct err *e)
{
	char word[POLICY_NAME + 1];

	for (size_t len; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (s->npolicies == POLICIES_MAX)
			return err_set(e, "--policies: more than %d policies", POLICIES_MAX);
		snprintf(word, sizeof(word), "%.*s", (int) len, list);
		if (policy_parse(word, &s->policies[s->npolicies], e))
			return err_within(e, "--policies");
		s->npolicies++;
	}
	return s->npolicies ? 0 : err_set(e, "--policies: the list is empty");
}

static int read_cluster(struct stage *s, const char *path, struct err *e)
{
	struct buf text;

	if (file_read(path, SNAPSHOT_MAX_BYTES, &text, e))
		return -1;
	s->snapshot = snapshot_parse(text.data, text.len, path, e);
	buf_free(&text);
	if (!s->snapshot)
		return -1;
	return (s->cluster = cluster_new(s->snapshot, e)) ? 0 : err_within(e, "%s", path);
}

static bool node_known(const void *cluster, const char *name)
{
	return cluster_has(cluster, name);
}

static int read_jobs(struct stage *s, const char *path, struct err *e)
{
	const struct jobs_nodes nodes = { node_known, s->cluster };
	const char *name;
	struct buf text;
	int rc;

	if (file_read_input(path, RECORD_MAX_BYTES, &name, &text, e))
		return -1;
	rc = jobs_read(&s->jobs, text.data, text.len, name, &nodes, e);
	buf_free(&text);
	return rc;
}

/* Before the snapshot is read, whose errors would hide a mistyped name. */
static int check_files(const struct cmd_words *files, struct err *e)
{
	for (int i = 0; i < files->n; i++) {
		const char *path = files->list[i];

		if (!strcmp(path, "-"))
			continue;
		if (access(path, R_OK))
			return err_set(e, "%s: %s", path, strerror(errno));
		if (trace_is_file(path))
			return err_set(e, "%s: a trace of a node, expected past jobs: use topiary trace replay", path);
	}
	return 0;
}

static int stage_read(struct stage *s, const struct cmd *c, const struct args *a, struct err *e)
{
	if (read_policies(s, a->policies, e) || check_files(&a->files, e) ||
	    read_cluster(s, a->snapshot ? a->snapshot : c->settings.snapshot_file, e))
		return -1;
	for (int i = 0; i < a->files.n; i++)
		if (read_jobs(s, a->files.list[i], e))
			return -1;
	if (!s->jobs.n)
		return err_set(e, "%s: no job in this file has started and ended", a->files.list[0]);
	if (jobs_sort(&s->jobs))
		return err_set(e, "out of memory");
	if (a->limit)
		jobs_cut(&s->jobs, a->limit);
	return 0;
}

static void job_started(void *user, const struct past_job *job, const struct cluster_shares *seats, long long at)
{
	(void) job;
	(void) seats;
	(void) at;
	progress_step(user, 1);
}

static int stage_run(struct stage *s, struct err *e)
{
	const struct replay_watch watch = { .started = job_started, .user = &s->progress };
	int rc = 0;

	progress_start(&s->progress, "replaying jobs", s->jobs.n * s->npolicies);
	for (size_t i = 0; !rc && i < s->npolicies; i++)
		rc = replay_run(s->cluster, &s->jobs, &s->policies[i], &watch, &s->results[i], e);
	progress_end(&s->progress);
	return rc;
}

/* --- results --- */

enum figure {
	JOBS, REFUSED, BACKFILLED, DOMINATED, ANY_PACKAGE, ANY_NUMA, ANY_L3, OWN_PACKAGE, OWN_NUMA, OWN_L3,
	EXACT_POSSIBLE, EXACT_HAD, BROKEN, TOUCHED, MEMORY_JOBS, MEMORY_FAR, MEMORY_NEEDLESS, LOOSE_PACKAGE, LOOSE_NUMA,
	LOOSE_L3, UTILISATION, WAIT_MEAN, WAIT_MEDIAN, WAIT_P95, MAKESPAN, FIGURES,
};

static const struct {
	const char *name, *key;
	int decimals;
	int better;			/* -1: less, 1: more, 0: neither */
} rows[] = {
	[JOBS] = { "jobs", "jobs", 0, 0 },
	[REFUSED] = { "rejected: fits no node", "refused", 0, -1 },
	[BACKFILLED] = { "backfilled", "backfilled", 0, 0 },
	[DOMINATED] = { "placements with a strictly better alternative, %", "dominated_percent", 1, -1 },
	[ANY_PACKAGE] = { "avoidable package splits, % of jobs", "split_package_percent", 1, -1 },
	[ANY_NUMA] = { "  of NUMA nodes, %", "split_numa_percent", 1, -1 },
	[ANY_L3] = { "  of L3 caches, %", "split_l3_percent", 1, -1 },
	[OWN_PACKAGE] = { "on their own nodes: package split, %", "split_package_own_percent", 1, -1 },
	[OWN_NUMA] = { "  of NUMA nodes, %", "split_numa_own_percent", 1, -1 },
	[OWN_L3] = { "  of L3 caches, %", "split_l3_own_percent", 1, -1 },
	[EXACT_POSSIBLE] = { "exact fits possible, jobs", "exact_possible", 0, 0 },
	[EXACT_HAD] = { "  of these placed so, %", "exact_had_percent", 1, 1 },
	[BROKEN] = { "whole free packages broken, per job", "broken_per_job", 2, -1 },
	[TOUCHED] = { "domains used, relative to the minimum", "touched_to_ideal", 3, -1 },
	[MEMORY_JOBS] = { "memory requested, jobs", "memory_jobs", 0, 0 },
	[MEMORY_FAR] = { "  not in the NUMA nodes of their cores, %", "memory_far_percent", 1, -1 },
	[MEMORY_NEEDLESS] = { "  although other free cores had it near, %", "memory_needless_percent", 1, -1 },
	[LOOSE_PACKAGE] = { "free cores in partly used packages, %", "loose_package_percent", 1, -1 },
	[LOOSE_NUMA] = { "  in partly used NUMA nodes, %", "loose_numa_percent", 1, -1 },
	[LOOSE_L3] = { "  in partly used L3 caches, %", "loose_l3_percent", 1, -1 },
	[UTILISATION] = { "utilisation, %", "utilisation_percent", 1, 1 },
	[WAIT_MEAN] = { "wait, mean, s", "wait_mean_seconds", 1, -1 },
	[WAIT_MEDIAN] = { "  median, s", "wait_median_seconds", 1, -1 },
	[WAIT_P95] = { "  95 % within, s", "wait_p95_seconds", 1, -1 },
	[MAKESPAN] = { "makespan, s", "makespan_seconds", 0, -1 },
};

static double percent(size_t part, size_t whole)
{
	return whole ? 100. * part / whole : 0;
}

static void figures_of(const struct replay_result *r, double f[FIGURES])
{
	f[JOBS] = r->jobs;
	f[REFUSED] = r->refused;
	f[BACKFILLED] = r->backfilled;
	f[DOMINATED] = percent(r->dominated, r->jobs);
	f[EXACT_POSSIBLE] = r->exact_possible;
	f[EXACT_HAD] = percent(r->exact_had, r->exact_possible);
	f[BROKEN] = percent(r->broken, r->jobs) / 100;
	f[TOUCHED] = r->touched_to_ideal;
	f[MEMORY_JOBS] = r->with_memory;
	f[MEMORY_FAR] = percent(r->memory_far, r->with_memory);
	f[MEMORY_NEEDLESS] = percent(r->memory_needless, r->with_memory);
	for (size_t i = 0; i < JUDGED_LEVELS; i++) {
		f[ANY_PACKAGE + i] = percent(r->split_any[i], r->jobs);
		f[OWN_PACKAGE + i] = percent(r->split_own[i], r->jobs);
		f[LOOSE_PACKAGE + i] = 100 * r->loose[i];
	}
	f[UTILISATION] = 100 * r->utilisation;
	f[WAIT_MEAN] = r->wait_mean / 1000.;
	f[WAIT_MEDIAN] = r->wait_median / 1000.;
	f[WAIT_P95] = r->wait_p95 / 1000.;
	f[MAKESPAN] = r->makespan / 1000.;
}

/* The best printed value of a row; none where all are equal. */
static bool is_best(enum figure row, double f[][FIGURES], size_t n, size_t at)
{
	double step = 1, mine = f[at][row] * rows[row].better;
	bool differ = false;

	for (int i = 0; i < rows[row].decimals; i++)
		step /= 10;
	for (size_t i = 0; i < n; i++) {
		double other = f[i][row] * rows[row].better;

		if (other > mine + step / 2)
			return false;
		differ |= other < mine - step / 2;
	}
	return differ;
}

static void print_head(const struct stage *s)
{
	printf("%zu jobs on %zu nodes with %llu cores", s->jobs.n, s->cluster->n, s->cluster->cores);
	if (s->jobs.skipped)
		printf("; %zu more skipped (they never ran, or still run)", s->jobs.skipped);
	if (s->jobs.unreadable)
		printf("; %zu rows with too few values (line breaks in comments?)", s->jobs.unreadable);
	puts("\n");
}

static int print_table(const struct stage *s, double f[][FIGURES], struct err *e)
{
	struct table_column columns[TABLE_COLUMNS + 1] = { { "POLICY", TABLE_LEFT } };
	struct table *t;

	for (size_t i = 0; i < s->npolicies; i++)
		columns[i + 1] = (struct table_column){ s->policies[i].name, TABLE_RIGHT };
	t = table_new(columns);
	for (size_t row = 0; row < FIGURES; row++) {
		if (row >= MEMORY_JOBS && row <= MEMORY_NEEDLESS && !f[0][MEMORY_JOBS])
			continue;
		table_cell(t, "%s", rows[row].name);
		for (size_t i = 0; i < s->npolicies; i++) {
			table_cell(t, "%.*f", rows[row].decimals, f[i][row]);
			if (is_best(row, f, s->npolicies, i))
				table_colour(t, COLOUR_GREEN);
		}
	}
	print_head(s);
	return table_finish(t, e);
}

static int print_json(const struct stage *s, double f[][FIGURES], struct err *e)
{
	json_t *policies = json_array();

	for (size_t i = 0; i < s->npolicies; i++) {
		json_t *p = json_pack("{s:s}", "policy", s->policies[i].name);

		for (size_t row = 0; row < FIGURES; row++)
			json_object_set_new(p, rows[row].key,
					    rows[row].decimals || row == MAKESPAN ? json_real(f[i][row])
										  : json_integer(f[i][row]));
		json_array_append_new(policies, p);
	}
	return cmd_print_new(json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "jobs", (json_int_t) s->jobs.n, "skipped",
				       (json_int_t) s->jobs.skipped, "unreadable",
				       (json_int_t) s->jobs.unreadable, "nodes",
				       (json_int_t) s->cluster->n, "cores",
				       (json_int_t) s->cluster->cores, "policies", policies), e);
}

int cmd_replay(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .policies = POLICIES_USUAL };
	double f[POLICIES_MAX][FIGURES];
	struct stage s = {0};
	int rc = cmd_parse(c, &syntax, &a, argc, argv, e);

	if (!rc)
		rc = stage_read(&s, c, &a, e);
	if (!rc)
		rc = stage_run(&s, e);
	for (size_t i = 0; !rc && i < s.npolicies; i++)
		figures_of(&s.results[i], f[i]);
	if (!rc)
		rc = c->json ? print_json(&s, f, e) : print_table(&s, f, e);
	stage_free(&s);
	return rc;
}
