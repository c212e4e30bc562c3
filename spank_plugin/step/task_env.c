/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "task_env.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LIST "TOPIARY_TASK_ENV"

enum {
	MAX_LIST = 4096,
	MAX_VALUE = 65536,	/* a longer one is not recognised, and stays */
};

/* "NAME:HASH ", an entry of the list. 64-bit FNV-1a: a forged collision gains nothing. */
static void format_entry(char *out, size_t size, const char *name, const char *value)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *value; value++)
		hash = (hash ^ (unsigned char) *value) * UINT64_C(0x100000001b3);
	snprintf(out, size, "%s:%016" PRIx64 " ", name, hash);
}

bool task_env_has(spank_t sp, const char *name)
{
	char none[1];

	return spank_getenv(sp, name, none, sizeof(none)) != ESPANK_ENV_NOEXIST;
}

void task_env_set(spank_t sp, const char *name, const char *value)
{
	char list[MAX_LIST] = "", one[256];

	if (task_env_has(sp, name) || spank_setenv(sp, name, value, 0) != ESPANK_SUCCESS)
		return;
	spank_getenv(sp, LIST, list, sizeof(list));
	format_entry(one, sizeof(one), name, value);
	if (strlen(list) + strlen(one) >= sizeof(list))
		return;
	strcat(list, one);
	spank_setenv(sp, LIST, list, 1);
}

static void drop_one(spank_t sp, const char *listed, const char *name)
{
	char value[MAX_VALUE], now[256];

	if (spank_getenv(sp, name, value, sizeof(value)) != ESPANK_SUCCESS)
		return;
	format_entry(now, sizeof(now), name, value);
	if (!strncmp(listed, now, strlen(now) - 1))
		spank_unsetenv(sp, name);
}

void task_env_drop(spank_t sp)
{
	char list[MAX_LIST], name[128], *save = NULL;

	if (spank_getenv(sp, LIST, list, sizeof(list)) == ESPANK_SUCCESS)
		for (char *one = strtok_r(list, " ", &save); one; one = strtok_r(NULL, " ", &save))
			if (sscanf(one, "%127[A-Za-z0-9_]:", name) == 1)
				drop_one(sp, one, name);
	spank_unsetenv(sp, LIST);
}
