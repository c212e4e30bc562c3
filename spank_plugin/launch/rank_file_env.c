/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "rank_file.h"

#include <jansson.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "step/step.h"

/* The batch script's environment. Later steps inherit these variables and need them, so task_env.h does not apply. */

enum { MAX_ENV = 1 << 20, MAX_PATH = 4096, MAX_PLACES = 128 << 10 };

/*
 * Open MPI 4 follows the map by its sequential mapper. It would apply a rank file to spawned ranks, too, which have no
 * line in it, and MPI_Comm_spawn would fail.
 */
#define OPENMPI_POLICY "OMPI_MCA_rmaps_base_mapping_policy"
#define OPENMPI_HOSTS "OMPI_MCA_orte_default_hostfile"
#define OUR_HOSTS "TOPIARY_OPENMPI_HOSTFILE"
#define PLACES "TOPIARY_PLACES"
#define BLOCKS "TOPIARY_BLOCK_PLACES"

/* The variables of `topiary map --env` that are exported, and under which name. */
static const struct exported {
	const char *name, *as;
	bool openmpi;		/* only where the user has not chosen a mapping of Open MPI's */
} exported[] = {
	{ OPENMPI_POLICY, OPENMPI_POLICY, true },
	{ OPENMPI_HOSTS, OPENMPI_HOSTS, true },
	{ OPENMPI_HOSTS, OUR_HOSTS, false },
	{ "TOPIARY_HOSTFILE", "TOPIARY_HOSTFILE", false },
	{ PLACES, PLACES, false },
	{ NULL },
}, exported_blocks[] = {
	{ PLACES, BLOCKS, false },
	{ NULL },
};

/* With one of these the user chose a mapping of Open MPI's. */
static const char *const openmpi_users[] = {
	OPENMPI_POLICY, OPENMPI_HOSTS, "OMPI_MCA_rmaps_base_schedule_policy", "OMPI_MCA_rmaps_rank_file_path",
		"OMPI_MCA_orte_rankfile",
};

static const struct { const char *key, *name; } costs[] = {
	{ "cost", "TOPIARY_RANKFILE_COST" },
	{ "block", "TOPIARY_RANKFILE_COST_BLOCK" },
	{ "cyclic", "TOPIARY_RANKFILE_COST_CYCLIC" },
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool user_maps(spank_t sp)
{
	for (size_t i = 0; i < COUNT(openmpi_users); i++)
		if (task_env_has(sp, openmpi_users[i]))
			return true;
	return false;
}

static void export_line(spank_t sp, const struct exported *list, char *line, bool with_openmpi)
{
	char *value = strchr(line, '=');

	if (!value)
		return;
	*value++ = '\0';
	for (; list->name; list++)
		if (!strcmp(list->name, line) && (with_openmpi || !list->openmpi))
			spank_setenv(sp, list->as, value, 1);
}

static int export_file(spank_t sp, const char *file, const struct exported *list, struct err *e)
{
	bool with_openmpi = !user_maps(sp);
	struct buf text = {0};
	char *save = NULL;

	if (file_read(file, MAX_ENV, &text, e))
		return -1;
	for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		export_line(sp, list, line, with_openmpi);
	buf_free(&text);
	return 0;
}

int rank_file_export_env(spank_t sp, const char *file, struct err *e)
{
	if (export_file(sp, file, exported, e))
		return -1;
	return task_env_has(sp, PLACES) ? 0 :
	       err_set(e,
	       "the rank map does not fit into " PLACES ": srun follows it between nodes, Slurm binds tasks");
}

int rank_file_export_blocks(spank_t sp, const char *file, struct err *e)
{
	if (export_file(sp, file, exported_blocks, e))
		return -1;
	return task_env_has(sp, BLOCKS) ? 0 :
	       err_set(e, "the rank map does not fit into " BLOCKS ": mpiexec does not follow it");
}

bool rank_file_is_one_host(spank_t sp)
{
	char *places = malloc(MAX_PLACES);
	bool one = places && !spank_getenv(sp, PLACES, places, MAX_PLACES) && !strchr(places, '/');

	free(places);
	return one;
}

void rank_file_export_cost(spank_t sp, const char *explain)
{
	json_t *all = json_load_file(explain, 0, NULL), *one;
	char text[32];

	for (size_t i = 0; i < COUNT(costs); i++) {
		if (!json_is_number(one = json_object_get(all, costs[i].key)))
			continue;
		snprintf(text, sizeof(text), "%.15g", json_number_value(one));
		spank_setenv(sp, costs[i].name, text, 1);
	}
	json_decref(all);
}

static bool is_equal(spank_t sp, const char *name, const char *other)
{
	char value[MAX_PATH], wanted[MAX_PATH];

	return !spank_getenv(sp, name, value, sizeof(value)) && !spank_getenv(sp, other, wanted, sizeof(wanted)) &&
	       !strcmp(value, wanted);
}

int rank_file_unset_env(spank_t sp, int argc, char **argv)
{
	(void) argc, (void) argv;
	if (step.id != SLURM_BATCH_SCRIPT)
		return 0;
	if (is_equal(sp, OPENMPI_HOSTS, OUR_HOSTS)) {
		spank_unsetenv(sp, OPENMPI_HOSTS);
		spank_unsetenv(sp, OPENMPI_POLICY);
	}
	spank_unsetenv(sp, OUR_HOSTS);
	spank_unsetenv(sp, "TOPIARY_RANKFILE");
	spank_unsetenv(sp, "TOPIARY_HOSTFILE");
	spank_unsetenv(sp, PLACES);
	spank_unsetenv(sp, "TOPIARY_BLOCK_RANKFILE");
	spank_unsetenv(sp, BLOCKS);
	for (size_t i = 0; i < COUNT(costs); i++)
		spank_unsetenv(sp, costs[i].name);
	return 0;
}
