/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "proxies.h"

#include <limits.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "mapped.h"
#include "plain.h"
#include "step.h"
#include "task.h"
#include "told.h"

enum { MAX_RANKS = 65536 };

#define BLOCKS "TOPIARY_BLOCK_PLACES"

static void tell_hydra(const struct task *ranks, struct buf *out);
static void tell_intel(const struct task *ranks, struct buf *out);

static const struct proxy {
	const char *program;
	void (*tell)(const struct task *ranks, struct buf *out);	/* NAME=value; or NULL: its launcher reads a rank file */
	const char *option, *value;	/* in its arguments where nothing but Slurm has said how many ranks a node has; or NULL */
	const char *unless[8];		/* where one of these is set, the user has chosen */
} proxies[] = {
	{ "hydra_pmi_proxy", tell_hydra, "--rmk", "slurm", { "HYDRA_BINDING" } },
	/* Where a node's ranks are not as many as we say, it goes by its own rules. */
	{ "hydra_bstrap_proxy", tell_intel, NULL, NULL,
	  { "I_MPI_PIN", "I_MPI_PIN_DOMAIN", "I_MPI_PIN_PROCESSOR_LIST", "I_MPI_PIN_PROCESSOR_EXCLUDE_LIST", "I_MPI_PIN_CELL",
	    "I_MPI_PIN_ORDER", "I_MPI_PIN_RESPECT_CPUSET" } },
	{ "orted", NULL, NULL, NULL, { NULL } },
	{ "prted", NULL, NULL, NULL, { NULL } },
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct proxy *here;
static bool has_map;

static bool has_pair(int argc, char **argv, const char *option, const char *value)
{
	for (int i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], option) && !strcmp(argv[i + 1], value))
			return true;
	return false;
}

static const struct proxy *find(const char *path)
{
	const char *program = strrchr(path, '/');

	program = program ? program + 1 : path;
	for (size_t i = 0; i < COUNT(proxies); i++)
		if (!strcmp(program, proxies[i].program))
			return &proxies[i];
	return NULL;
}

static bool user_chose(spank_t sp, int argc, char **argv)
{
	for (size_t i = 0; i < COUNT(here->unless) && here->unless[i]; i++)
		if (told_has(sp, here->unless[i]))
			return true;
	return here->option && !has_pair(argc, argv, here->option, here->value);
}

/* The map is of this very job: salloc(1) in a batch script hands on what it finds. */
static bool map_is_ours(spank_t sp)
{
	char file[PATH_MAX], folder[64];

	snprintf(folder, sizeof(folder), "/%u.batch/", step.job);
	return told_has(sp, BLOCKS) && !spank_getenv(sp, "TOPIARY_BLOCK_RANKFILE", file, sizeof(file)) && strstr(file, folder);
}

bool proxies_take(spank_t sp)
{
	char **argv = NULL;
	int argc = 0;

	if (step.id < SLURM_MAX_NORMAL_STEP_ID && !spank_get_item(sp, S_JOB_ARGV, &argc, &argv) && argc > 0)
		here = find(argv[0]);
	has_map = here && here->tell && map_is_ours(sp) && !user_chose(sp, argc, argv);
	return has_map;
}

bool proxies_are_here(void)
{
	return here;
}

/* "user:0+16,1+17": of rank after rank the CPUs, by the system's numbers. */
static void tell_hydra(const struct task *ranks, struct buf *out)
{
	for (unsigned i = 0; i < ranks->nlocal; i++) {
		const char *mark = i ? "," : "HYDRA_BINDING=user:";
		unsigned cpu;

		hwloc_bitmap_foreach_begin(cpu, ranks->masks[i])
			buf_printf(out, "%s%u", mark, cpu);
			mark = "+";
		hwloc_bitmap_foreach_end();
	}
}

static void tell_domains(const struct task *ranks, struct buf *out)
{
	char *mask;

	for (unsigned i = 0; i < ranks->nlocal; i++) {
		if (hwloc_bitmap_taskset_asprintf(&mask, ranks->masks[i]) < 0) {
			out->failed = true;
			return;
		}
		buf_printf(out, "%s%s", i ? "," : "I_MPI_PIN_DOMAIN=[", mask);
		free(mask);
	}
	buf_puts(out, "]");
}

/* A list of processors has but one for each rank; where it does not fit, it is dropped without a word, other than domains. */
static void tell_intel(const struct task *ranks, struct buf *out)
{
	for (unsigned i = 0; i < ranks->nlocal; i++)
		if (hwloc_bitmap_weight(ranks->masks[i]) != 1) {
			tell_domains(ranks, out);
			return;
		}
	for (unsigned i = 0; i < ranks->nlocal; i++)
		buf_printf(out, "%s%d", i ? "," : "I_MPI_PIN_PROCESSOR_LIST=", hwloc_bitmap_first(ranks->masks[i]));
}

static int count(void *data, unsigned task, unsigned first, unsigned last, struct err *e)
{
	(void) data, (void) first, (void) last;
	return task < MAX_RANKS ? 0 : err_set(e, "more than %u ranks", MAX_RANKS);
}

static int ranks_make(struct task *ranks, struct err *e)
{
	if (!(ranks->masks = calloc(ranks->nlocal, sizeof(*ranks->masks))))
		return err_set(e, "out of memory");
	for (unsigned i = 0; i < ranks->nlocal; i++)
		if (!(ranks->masks[i] = hwloc_bitmap_alloc()))
			return err_set(e, "out of memory");
	return 0;
}

static void ranks_free(struct task *ranks)
{
	for (unsigned i = 0; ranks->masks && i < ranks->nlocal; i++)
		hwloc_bitmap_free(ranks->masks[i]);
	free(ranks->masks);
}

static int hand_over(const struct task *t, const struct task *ranks, struct err *e)
{
	struct buf words = {0};
	char *value;
	int rc = 0;

	here->tell(ranks, &words);
	if (words.failed || !words.len) {
		rc = err_set(e, "out of memory");
	} else {
		value = strchr(words.data, '=');
		*value++ = '\0';
		told_set(t->sp, words.data, value);
	}
	buf_free(&words);
	return rc;
}

/* The ranks of this node, as if they were the step's tasks. */
static int tell(const struct task *t, const char *places, struct err *e)
{
	struct task ranks = *t;
	char host[256];
	int rc, n;

	if (spank_getenv(t->sp, "SLURMD_NODENAME", host, sizeof(host)))
		return err_set(e, "Slurm does not name this node");
	if ((n = mapped_read(places, host, count, NULL, e)) <= 0)
		return n;
	ranks.nlocal = n;
	rc = ranks_make(&ranks, e);
	if (!rc && (rc = mapped_fill(&ranks, places, e)) > 0)
		rc = hand_over(t, &ranks, e);
	ranks_free(&ranks);
	return rc;
}

static int tell_map(const struct task *t, struct err *e)
{
	char *places = malloc(MAPPED_PLACES);
	int rc;

	if (!places)
		rc = err_set(e, "out of memory");
	else if (!step.here)
		rc = err_set(e, "the topology is another system's");
	else
		rc = spank_getenv(t->sp, BLOCKS, places, MAPPED_PLACES) ? 0 : tell(t, places, e);
	free(places);
	return rc;
}

void proxies_tell(struct task *t)
{
	struct err e;

	for (unsigned i = 0; i < t->nlocal; i++)
		hwloc_bitmap_copy(t->masks[i], hwloc_topology_get_topology_cpuset(t->topology));
	if (has_map && tell_map(t, &e) < 0)
		slurm_spank_log("topiary: step %s: mpiexec does not follow the job's map: %s", step.name, plain(e.text));
}
