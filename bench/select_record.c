/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * Preloaded into a real slurmctld, in front of whatever select plugin it has: writes down, in the order of things, each
 * job that gets cores and each that gives them back, so that what was free at any decision can be reckoned exactly. A
 * line each:
 *	start TIME JOB offered=NODE,... NODE:CORES ...	offered: the nodes to choose from; abstract core indices
 *	gpus TIME JOB NODE:GPUS ...			before start, of a job with GPUs: their indices
 *	end TIME JOB
 */
#include "base/std.h"
#include "../select_plugin/slurm_glue.h"

#include <dlfcn.h>

#define MINE __attribute__((visibility("default")))

/* Of the last decision for a start now; slurmctld decides and starts under one lock. */
static bitstr_t *offered;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Opened late: slurmctld begins with closing all files. */
static FILE *record(void)
{
	static FILE *file;

	if (!file && !(file = fopen(getenv("RECORD_FILE"), "w")))
		abort();
	return file;
}

static void *next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		abort();
	return found;
}

MINE int select_g_job_test JOB_TEST_PARMS
{
	static slurm_job_test_t real;
	bitstr_t *before = bit_copy(nodes);
	int rc;

	if (!real)
		real = next("select_g_job_test");
	rc = real JOB_TEST_ARGS;
	if (mode == SELECT_MODE_RUN_NOW) {
		FREE_NULL_BITMAP(offered);
		offered = before;
	} else {
		FREE_NULL_BITMAP(before);
	}
	return rc;
}

/* ":0,1,5" of n bits from the first on. */
static void write_bits(bitstr_t *bits, unsigned first, unsigned n)
{
	const char *between = ":";

	for (unsigned i = 0; i < n; i++)
		if (bit_test(bits, first + i)) {
			fprintf(record(), "%s%u", between, i);
			between = ",";
		}
}

static void write_offered(void)
{
	const char *between = " offered=";

	for (int i = 0; offered && i < node_record_count; i++)
		if (bit_test(offered, i)) {
			fprintf(record(), "%s%s", between, node_record_table_ptr[i]->name);
			between = ",";
		}
}

static void write_cores(const job_resources_t *r)
{
	unsigned at = 0;

	for (int i = 0; i < node_record_count; i++)
		if (bit_test(r->node_bitmap, i)) {
			fprintf(record(), " %s", node_record_table_ptr[i]->name);
			write_bits(r->core_bitmap, at, node_record_table_ptr[i]->tot_cores);
			at += node_record_table_ptr[i]->tot_cores;
		}
}

static int has_name(void *gres, void *name)
{
	return !xstrcmp(((gres_state_t *) gres)->gres_name, name);
}

static void write_gpus(const job_record_t *job)
{
	gres_state_t *gpus = job->gres_list_alloc ? list_find_first(job->gres_list_alloc, has_name, "gpu") : NULL;
	const gres_job_state_t *g = gpus ? gpus->gres_data : NULL;
	int nth = 0;

	if (!g || !g->gres_bit_alloc)
		return;
	fprintf(record(), "gpus %.6f %s", now(), job->name);
	for (int i = 0; i < node_record_count; i++)
		if (bit_test(job->job_resrcs->node_bitmap, i)) {
			bitstr_t *mine = g->gres_bit_alloc[nth++];

			fprintf(record(), " %s", node_record_table_ptr[i]->name);
			if (mine)
				write_bits(mine, 0, bit_size(mine));
		}
	fprintf(record(), "\n");
}

MINE int select_g_select_nodeinfo_set(job_record_t *job)
{
	static int (*real)(job_record_t *);
	int rc;

	if (!real)
		real = next("select_g_select_nodeinfo_set");
	rc = real(job);
	if (IS_JOB_RUNNING(job) && job->job_resrcs) {
		write_gpus(job);
		fprintf(record(), "start %.6f %s", now(), job->name);
		write_offered();
		write_cores(job->job_resrcs);
		fprintf(record(), "\n");
	}
	return rc;
}

MINE int select_g_job_fini(job_record_t *job)
{
	static int (*real)(job_record_t *);

	if (!real)
		real = next("select_g_job_fini");
	fprintf(record(), "end %.6f %s\n", now(), job->name);
	fflush(record());
	return real(job);
}

__attribute__((constructor)) static void record_start(void)
{
	/* None of slurmctld's children is to have this. */
	unsetenv("LD_PRELOAD");
}
