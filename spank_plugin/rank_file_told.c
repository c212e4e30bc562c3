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

enum { MAX_ENV = 1 << 20, MAX_PATH = 4096 };

/* What `topiary map --env` says and we hand on; a launcher's own only where the user has said nothing of it. */
static const struct handed {
	const char *name, *unless[2];
} handed[] = {
	{ "OMPI_MCA_rmaps_rank_file_path", { "OMPI_MCA_rmaps_rank_file_path", "OMPI_MCA_orte_rankfile" } },
	{ "TOPIARY_HOSTFILE", { NULL } },
	{ "TOPIARY_PLACES", { NULL } },
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

static void hand_on(spank_t sp, char *line)
{
	char *value = strchr(line, '=');

	if (!value)
		return;
	*value++ = '\0';
	for (size_t i = 0; i < COUNT(handed); i++)
		if (!strcmp(handed[i].name, line) && !is_users(sp, &handed[i]))
			spank_setenv(sp, line, value, 1);
}

int rank_file_tell_env(spank_t sp, const char *file, struct err *e)
{
	struct buf text = {0};
	char *save = NULL;

	if (file_read(file, MAX_ENV, &text, e))
		return -1;
	for (char *line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		hand_on(sp, line);
	buf_free(&text);
	return told_has(sp, "TOPIARY_PLACES") ? 0 :
	       err_set(e, "there are more ranks than fit into TOPIARY_PLACES: srun follows the map from node to node only");
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
	if (same(sp, "OMPI_MCA_rmaps_rank_file_path", "TOPIARY_RANKFILE"))
		spank_unsetenv(sp, "OMPI_MCA_rmaps_rank_file_path");
	spank_unsetenv(sp, "TOPIARY_RANKFILE");
	spank_unsetenv(sp, "TOPIARY_HOSTFILE");
	spank_unsetenv(sp, "TOPIARY_PLACES");
	for (size_t i = 0; i < COUNT(costs); i++)
		spank_unsetenv(sp, costs[i].name);
}
