/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/file.h"
#include "../../node_agent/monitor_metrics.h"
#include "table.h"
#include "topology.h"

/* The node's steps, here by hand: so many jobs of two steps each that have all PUs. */
static unsigned jobs;

void monitor_steps_each(const struct monitor_steps *m,
			void (*each)(void *user, const char *step, hwloc_const_bitmap_t cpus, bool is_recorded),
			void *user)
{
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t all = hwloc_bitmap_alloc_full();
	char name[32];

	(void) m;
	for (unsigned i = 0; i < 2 * jobs; i++) {
		snprintf(name, sizeof(name), "%u.%u", 7 + i / 2, i % 2);
		each(user, name, all, i % 2);
	}
}

struct place {
	char *folder, path[64];
	struct settings settings;
};

static void place_make(struct place *p)
{
	snprintf(p->path, sizeof(p->path), "%s/topiary.prom", p->folder = folder_new());
	p->settings = (struct settings){ .monitor_metrics = p->path, .monitor_metrics_interval = 1,
					 .monitor_metrics_set = (char *) "sw", .monitor_metrics_jobs = (char *) "yes" };
}

static unsigned occurrences(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* Waits for the first values of a machine, and reads them. */
static void metrics_of(const char *machine, struct place *p, struct buf *text)
{
	struct monitor_metrics *m;
	struct stat st;
	int64_t ns;

	setenv("HWLOC_SYNTHETIC", machine, 1);
	m = monitor_metrics_new(&p->settings, &err);
	unsetenv("HWLOC_SYNTHETIC");
	assert_made(m);
	ns = monitor_metrics_tick(m, NULL);
	assert_true(ns > 0 && ns <= 1000000000);
	assert_int_equal(access(p->path, F_OK), -1);
	usleep(ns / 1000 + 1000);
	assert_true(monitor_metrics_tick(m, NULL) > 0);
	assert_int_equal(file_read(p->path, 1 << 20, text, &err), 0);
	assert_true(!stat(p->path, &st) && (st.st_mode & 07777) == 0644);
	monitor_metrics_free(m);
	assert_int_equal(access(p->path, F_OK), -1);
}

/* The rows of a job with all PUs are the domains: those of the smallest level that has room for its values. */
TEST(domains_are_few)
{
	static const struct {
		const char *machine, *first, *last;
		unsigned domains;
	} rows[] = {
		{ "Package:1 [numa] Core:2 PU:1", "numa0", "numa0", 1 },
		{ "Package:2 [numa] Core:4 PU:2", "numa0", "numa1", 2 },
		{ "Package:2 Group:2 [numa] Core:16 PU:2", "numa0", "numa3", 4 },
		/* More values than there is room for, even where busy alone is counted. */
		{ "Package:2 Group:24 [numa] Core:2 PU:1", "package0", "package1", 2 },
		/* Two kinds of memory: each PU is in one package, but near two NUMA nodes. */
		{ "Package:2 [numa] [numa] Core:4 PU:2", "package0", "package1", 2 },
		{ "Package:48 [numa] Core:4 PU:1", "machine", "machine", 1 },
	};
	struct place p;

	place_make(&p);
	jobs = 1;
	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf text = {0};
		char row[128];

		metrics_of(rows[i].machine, &p, &text);
		if (occurrences(text.data, "\ntopiary_node_job_pus{") != rows[i].domains)
			fail_msg("%s: %s", rows[i].machine, text.data);
		snprintf(row, sizeof(row), "\ntopiary_node_job_pus{domain=\"%s\",jobid=\"7\"} ", rows[i].first);
		assert_non_null(strstr(text.data, row));
		snprintf(row, sizeof(row), "\ntopiary_node_job_pus{domain=\"%s\",jobid=\"7\"} ", rows[i].last);
		assert_non_null(strstr(text.data, row));
		assert_int_equal(occurrences(text.data, "\ntopiary_monitor_steps_recorded 1\n"), 1);
		assert_true(occurrences(text.data, "topiary_node_busy_ratio{") <= rows[i].domains);
	}
}

TEST(jobs_are_few_and_only_where_asked)
{
	struct buf text = {0};
	struct place p;

	place_make(&p);
	jobs = 100;
	metrics_of("Package:2 [numa] Core:4 PU:2", &p, &text);
	assert_int_equal(occurrences(text.data, "\ntopiary_node_job_pus{"), 40);
	assert_int_equal(occurrences(text.data, "jobid=\"7\"} 8\n"), 2);
	buf_free(&text);
	p.settings.monitor_metrics_jobs = (char *) "no";
	metrics_of("Package:2 [numa] Core:4 PU:2", &p, &text);
	assert_null(strstr(text.data, "job"));
	assert_non_null(strstr(text.data, "\ntopiary_monitor_steps_recorded 100\n"));
	buf_free(&text);
}

/* What is no file of metrics is not replaced, nor removed. */
TEST(other_paths_are_refused)
{
	static const char *const bad[] = { "topiary.prom", "/etc/passwd", ".prom", "/tmp/x.prom ", "/tmp/x.prom.gz" };
	struct settings s = { .monitor_metrics_interval = 1, .monitor_metrics_set = (char *) "sw",
			      .monitor_metrics_jobs = (char *) "no" };

	for (size_t i = 0; i < ROWS(bad); i++) {
		s.monitor_metrics = (char *) bad[i];
		assert_null(monitor_metrics_new(&s, &err));
		assert_non_null(strstr(err.text, "expected an absolute path that ends in .prom"));
		assert_int_equal(strncmp(err.text, "MonitorMetrics=", 15), 0);
	}
}

TEST(folder_that_is_gone_is_no_end)
{
	struct monitor_metrics *m;
	struct place p;

	place_make(&p);
	rmdir(p.folder);
	assert_non_null(m = monitor_metrics_new(&p.settings, &err));
	for (unsigned i = 0; i < 2; i++) {
		usleep(monitor_metrics_tick(m, NULL) / 1000 + 1000);
		assert_true(monitor_metrics_tick(m, NULL) > 0);
	}
	assert_int_equal(access(p.path, F_OK), -1);
	assert_int_equal(mkdir(p.folder, 0755), 0);
	usleep(monitor_metrics_tick(m, NULL) / 1000 + 1000);
	monitor_metrics_tick(m, NULL);
	assert_int_equal(access(p.path, F_OK), 0);
	monitor_metrics_free(m);
}

TESTS_MAIN(NULL, NULL)
