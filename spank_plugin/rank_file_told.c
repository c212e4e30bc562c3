/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "rank_file.h"
#include "told.h"

/* What the batch script finds in its environment. Later steps inherit it and need it there, so told.h is not for these. */

enum { MAX_ENV = 1 << 20, MAX_PATH = 4096, MAX_PLACES = 128 << 10 };

#define OPENMPI "OMPI_MCA_rmaps_rank_file_path"
#define PLACES "TOPIARY_PLACES"
#define BLOCKS "TOPIARY_BLOCK_PLACES"

/* What `topiary map --env` says and we hand on, by which name; a launcher's own only where the user has said nothing of it. */
static const struct handed {
	const char *name, *as, *unless[2];
} handed[] = {
	{ OPENMPI, OPENMPI, { OPENMPI, "OMPI_MCA_orte_rankfile" } },
	{ "TOPIARY_HOSTFILE", "TOPIARY_HOSTFILE", { NULL } },
	{ PLACES, PLACES, { NULL } },
	{ NULL },
}, handed_blocks[] = {
	{ PLACES, BLOCKS, { NULL } },
	{ NULL },
};

static const struct { const char *key, *name; } costs[] = {
	{ "cost", "TOPIARY_RANKFILE_COST" },
	{ "block", "TOPIARY_RANKFILE_COST_BLOCK" },
	{ "cyclic", "TOPIARY_RANKFILE_COST_CYCLIC" },
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool is_users(spank_t sp, const struct handed *h)
{
	for (size_t i = 0; i < COUNT(h->unless) && h->unless[i]; i++)
		if (told_has(sp, h->unless[i]))
			return true;
	return false;
}

static void hand_on(spank_t sp, const struct handed *list, char *line)
{
	char *value = strchr(line, '=');

	if (!value)
		return;
	*value++ = '\0';
	for (; list->name; list++)
		if (!strcmp(list->name, line) && !is_users(sp, list))
			spank_setenv(sp, list->as, value, 1);
}

static int tell(spank_t sp, const char *file, const struct handed *list, struct err *e)
{
	struct buf text = {0};
	char *save = NULL;

	if (file_read(file, MAX_ENV, &text, e))
		return -1;
	for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		hand_on(sp, list, line);
	buf_free(&text);
	return 0;
}

int rank_file_tell_env(spank_t sp, const char *file, struct err *e)
{
	if (tell(sp, file, handed, e))
		return -1;
	return told_has(sp, PLACES) ? 0 :
	       err_set(e, "there are more ranks than fit into " PLACES ": srun follows the map from node to node only");
}

int rank_file_tell_blocks(spank_t sp, const char *file, struct err *e)
{
	if (tell(sp, file, handed_blocks, e))
		return -1;
	return told_has(sp, BLOCKS) ? 0 : err_set(e, "there are more ranks than fit into " BLOCKS ": mpiexec does not follow the map");
}

bool rank_file_is_of_one(spank_t sp)
{
	char *places = malloc(MAX_PLACES);
	bool one = places && !spank_getenv(sp, PLACES, places, MAX_PLACES) && !strchr(places, '/');

	free(places);
	return one;
}

void rank_file_tell_cost(spank_t sp, const char *explain)
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

static bool same(spank_t sp, const char *name, const char *other)
{
	char value[MAX_PATH], wanted[MAX_PATH];

	return !spank_getenv(sp, name, value, sizeof(value)) && !spank_getenv(sp, other, wanted, sizeof(wanted)) &&
	       !strcmp(value, wanted);
}

void rank_file_drop(spank_t sp)
{
	if (same(sp, OPENMPI, "TOPIARY_RANKFILE"))
		spank_unsetenv(sp, OPENMPI);
	spank_unsetenv(sp, "TOPIARY_RANKFILE");
	spank_unsetenv(sp, "TOPIARY_HOSTFILE");
	spank_unsetenv(sp, PLACES);
	spank_unsetenv(sp, "TOPIARY_BLOCK_RANKFILE");
	spank_unsetenv(sp, BLOCKS);
	for (size_t i = 0; i < COUNT(costs); i++)
		spank_unsetenv(sp, costs[i].name);
}
