/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "told.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LIST "TOPIARY_TOLD"

enum {
	MAX_LIST = 4096,
	MAX_VALUE = 65536,	/* a longer one is not known again, and stays */
};

/* "NAME:HASH ", as it stands in the list; FNV-1a, of 64 bits: there is nothing to gain by another value of the same hash. */
static void entry(char *out, size_t size, const char *name, const char *value)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *value; value++)
		hash = (hash ^ (unsigned char) *value) * UINT64_C(0x100000001b3);
	snprintf(out, size, "%s:%016" PRIx64 " ", name, hash);
}

bool told_has(spank_t sp, const char *name)
{
	char none[1];

	return spank_getenv(sp, name, none, sizeof(none)) != ESPANK_ENV_NOEXIST;
}

void told_set(spank_t sp, const char *name, const char *value)
{
	char list[MAX_LIST] = "", one[256];

	if (told_has(sp, name) || spank_setenv(sp, name, value, 0) != ESPANK_SUCCESS)
		return;
	spank_getenv(sp, LIST, list, sizeof(list));
	entry(one, sizeof(one), name, value);
	if (strlen(list) + strlen(one) >= sizeof(list))
		return;
	strcat(list, one);
	spank_setenv(sp, LIST, list, 1);
}

static void drop_one(spank_t sp, const char *said, const char *name)
{
	char value[MAX_VALUE], now[256];

	if (spank_getenv(sp, name, value, sizeof(value)) != ESPANK_SUCCESS)
		return;
	entry(now, sizeof(now), name, value);
	if (!strncmp(said, now, strlen(now) - 1))
		spank_unsetenv(sp, name);
}

void told_drop(spank_t sp)
{
	char list[MAX_LIST], name[128], *save = NULL;

	if (spank_getenv(sp, LIST, list, sizeof(list)) == ESPANK_SUCCESS)
		for (char *one = strtok_r(list, " ", &save); one; one = strtok_r(NULL, " ", &save))
			if (sscanf(one, "%127[A-Za-z0-9_]:", name) == 1)
				drop_one(sp, one, name);
	spank_unsetenv(sp, LIST);
}
