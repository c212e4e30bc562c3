/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <getopt.h>

#include "../../spank_plugin/task/map_places.h"
#include "../../spank_plugin/launch/launch.h"
#include "base/buf.h"
#include "table.h"

static const struct option own[] = {
	{ "topo-place", required_argument, NULL, 0 }, { "topo-report", optional_argument, NULL, 0 }, {0},
};

static bool follows(const char *line, struct err *e)
{
	char *copy = strdup(line), *argv[32], *save = NULL;
	int argc = 0;
	int rc;

	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	argv[argc] = NULL;
	rc = srun_check_options(argc, argv, own, &(int){0}, e);
	free(copy);
	return !rc;
}

TEST(knows_a_plain_srun)
{
	static const struct { const char *line; bool plain; } rows[] = {
		{ "srun ./app", true },
		{ "srun ./app -n 4 -w cn1 --nodes=2", true },
		{ "srun -l ./app", true },
		{ "srun -ul --mpi=pmi2 ./app", true },
		{ "srun --mpi pmi2 ./app -n 2", true },
		{ "srun -J name -o out.%t -t 5 --mem=0 -K --kill-on-bad-exit=1 ./app", true },
		{ "srun --cpu-bind=none ./app", true },
		{ "srun --exact --overlap -O ./app", true },
		{ "srun --async ./app -n4", true },
		{ "srun --mem-update 20@5 ./app -n4", true },
		{ "srun --export=ALL,A=1 ./app", true },
		{ "srun --export ALL ./app", true },
		{ "srun -- ./app -n4", true },
		{ "srun --topo-report python3 -m mod", true },
		{ "srun --topo-report=json python3 -m mod", true },
		{ "srun --topo-place compact python3 -m mod", true },
		{ "srun --topo-place=compact --topo-report -l python3 -w cn1", true },
		{ "srun --topo-report -m cyclic python3", false },
		{ "srun --topo-place compact -n4 ./app", false },
		{ "srun -ln4 ./app", false },
		{ "srun -l -N2 ./app", false },
		{ "srun --ntasks=4 ./app", false },
		{ "srun --ntasks 4 ./app", false },
		{ "srun --mpi pmi2 -n 2 ./app", false },
		{ "srun -N2 --ntasks-per-node=1 prep", false },
		{ "srun --nodelist=cn1 ./app", false },
		{ "srun -x cn1 ./app", false },
		{ "srun -m cyclic ./app", false },
		{ "srun --distribution=block:block ./app", false },
		{ "srun --dist=block ./app", false },
		{ "srun --cpus-per-task=2 ./app", false },
		{ "srun -r 1 ./app", false },
		{ "srun --multi-prog file", false },
		{ "srun --het-group=0 ./app", false },
		{ "srun --jobid=4 ./app", false },
		{ "srun -Z -w cn1 ./app", false },
		{ "srun --export=A=1 ./app", false },
		/* Options that we do not know: with a value of their own, without one, or with the next word. */
		{ "srun --container-image=img ./app", true },
		{ "srun --container-image img ./app -n 4", true },
		{ "srun --foreign ./app", true },
		{ "srun --foreign ./app -n 4", false },
		{ "srun --foreign /bin/sh -n 4", true },
		{ "srun --foreign sh -n 4 -m data", true },
		{ "srun --foreign sh -n 4 sh", false },
		{ "srun -n 4 --foreign sh", false },
		{ "srun --foreign -l ./app -n 4", true },
		{ "srun --foreign -n 4 ./app", false },
		{ "srun --foreign img -n 4 ./app", false },
		{ "srun --foreign=img -n 4 ./app", false },
		/* A value that begins with '-'. */
		{ "srun --foreign=-5 ./app -n 4", true },
		{ "srun --foreign -5 ./app -n 4", true },
		{ "srun --foreign -5 -l ./app", true },
		{ "srun --foreign -5n4 ./app", true },
		{ "srun --foreign -l5 ./app", true },
		{ "srun --foreign - ./app", true },
		{ "srun --foreign -5 -n4 ./app", false },
		{ "srun --foreign=1 -5 ./app", false },
		{ "srun -l -5 ./app", false },
		{ "srun -J", false },
	};

	for (size_t i = 0; i < ROWS(rows); i++)
		if (follows(rows[i].line, NULL) != rows[i].plain)
			fail_msg("'%s' is %splain", rows[i].line, rows[i].plain ? "" : "not ");
}

#define REFUSED "srun of this release of Slurm accepts no --nodes beside a rank map: leave it out"

/* In a job of 4 tasks on 2 nodes, two of them on each, and of so many CPUs as told. */
TEST(accepts_the_jobs_own_numbers)
{
	static const struct { const char *cpus, *line, *says; } rows[] = {
		{ NULL, "srun -n4 ./app", NULL },
		{ NULL, "srun -n 4 -N2 ./app", SRUN_REFUSES_NODES ? REFUSED : NULL },
		{ NULL, "srun --ntasks=4 --nodes=2-2 --ntasks-per-node=2 ./app", SRUN_REFUSES_NODES ? REFUSED : NULL },
		{ NULL, "srun --tasks-per-node=2 ./app", NULL },
		{ NULL, "srun -c1 ./app", NULL },
		{ "2", "srun -lc2 ./app", NULL },
		{ NULL, "srun -n1 ./app", "--ntasks=1, but the job has 4" },
		{ NULL, "srun -n 4x ./app", "--ntasks=4x, but the job has 4" },
		{ NULL, "srun -N1-2 ./app", SRUN_REFUSES_NODES ? REFUSED : "--nodes=1-2, but the job has 2" },
		{ NULL, "srun --nodes=1 ./app", SRUN_REFUSES_NODES ? REFUSED : "--nodes=1, but the job has 2" },
		{ NULL, "srun -c2 ./app", "--cpus-per-task=2, but the job has 1" },
		{ "2", "srun -c1 ./app", "--cpus-per-task=1, but the job has 2" },
		{ NULL, "srun -w cn1 ./app", "--nodelist changes the layout of the tasks" },
		{ NULL, "srun --export=NONE ./app", "--export=NONE does not pass the rank map to the tasks" },
		{ NULL, "srun ./app : ./app", "the step has several components (:)" },
		{ NULL, "srun --ntasks-per=4 ./app", "--ntasks-per=4 is ambiguous: it may be --ntasks-per-core" },
		{ NULL, "srun --foreign -n5 ./app",
		  "-n5 may be srun's or the value of --foreign: write = before a value" },
		{ NULL, "srun --foreign -5 -n5 ./app", "--ntasks=5, but the job has 4" },
		{ NULL, "srun -y ./app", "-y: unknown srun option, or its value is missing" },
	};

	setenv("SLURM_NTASKS", "4", 1);
	setenv("SLURM_NNODES", "2", 1);
	setenv("SLURM_NTASKS_PER_NODE", "2", 1);
	for (size_t i = 0; i < ROWS(rows); i++) {
		unsetenv("SLURM_CPUS_PER_TASK");
		if (rows[i].cpus)
			setenv("SLURM_CPUS_PER_TASK", rows[i].cpus, 1);
		if (follows(rows[i].line, &err) != !rows[i].says || (rows[i].says && strcmp(err.text, rows[i].says)))
			fail_msg("'%s': %s", rows[i].line, rows[i].says ? err.text : "not plain");
	}
	unsetenv("SLURM_NTASKS");
	unsetenv("SLURM_NNODES");
	unsetenv("SLURM_NTASKS_PER_NODE");
	unsetenv("SLURM_CPUS_PER_TASK");
}

/* srun reads its line after us. */
TEST(leaves_getopt_as_it_was)
{
	optind = 7;
	opterr = 1;
	assert_false(follows("srun -n4 ./app", NULL));
	assert_int_equal(optind, 7);
	assert_int_equal(opterr, 1);
}

static int tell(void *data, unsigned task, unsigned first, unsigned last, struct err *e)
{
	(void) e;
	buf_printf(data, "%u:%u-%u ", task, first, last);
	return 0;
}

TEST(reads_places)
{
	static const struct { const char *places, *host; int tasks; const char *told; } rows[] = {
		{ "cn1:2,1,0,3/cn2:0,1,2,3", "cn1", 4, "0:2-2 1:1-1 2:0-0 3:3-3 " },
		{ "cn1:2,1,0,3/cn2:0,1", "cn2", 2, "0:0-0 1:1-1 " },
		{ "cn1:0-3+7,4-6", "cn1", 2, "0:0-3 0:7-7 1:4-6 " },
		{ "cn1:0/cn11:1", "cn11", 1, "0:1-1 " },
		{ "cn11:1/cn1:0", "cn1", 1, "0:0-0 " },
		{ "cn1:0", "cn2", 0, "" },
		{ "", "cn1", 0, "" },
		{ "cn1:", "cn1", -1, "the rank map (TOPIARY_PLACES) ends in a syntax error" },
		{ "cn1:0,", "cn1", -1, "the rank map (TOPIARY_PLACES) ends in a syntax error" },
		{ "cn1:3-1", "cn1", -1, "the rank map (TOPIARY_PLACES) ends in a syntax error" },
		{ "cn1:0;1", "cn1", -1, "the rank map (TOPIARY_PLACES) has a syntax error at ';1'" },
		{ "cn1:-1", "cn1", -1, "the rank map (TOPIARY_PLACES) has a syntax error at '-1'" },
		{ "cn1:99999999999999999999", "cn1", -1, "the rank map (TOPIARY_PLACES) has a syntax error at"
		  " '99999999999999999999'" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf told = {0};
		struct err e = {""};

		assert_int_equal(map_places_parse(rows[i].places, rows[i].host, tell, &told, &e), rows[i].tasks);
		assert_string_equal(rows[i].tasks < 0 ? e.text : told.data ? told.data : "", rows[i].told);
	}
}

TESTS_MAIN(NULL, NULL)
