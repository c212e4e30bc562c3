/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "bind/huge.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"

#define TUNABLE "glibc.malloc.hugetlb"
#define THP "/sys/kernel/mm/transparent_hugepage/enabled"
#define POOL "/proc/meminfo"
#define BEYOND_POOL "/proc/sys/vm/nr_overcommit_hugepages"

static bool file_has(const char *file, const char *word, unsigned long *number)
{
	struct buf text = {0};
	const char *at;
	bool found;

	if (file_read(file, 1 << 16, &text, NULL))
		return false;
	at = strstr(text.data, word);
	found = at;
	if (found && number)
		*number = strtoul(at + strlen(word), NULL, 10);
	buf_free(&text);
	return found;
}

static int has_thp(struct err *e)
{
	if (file_has(THP, "[always]", NULL) || file_has(THP, "[madvise]", NULL))
		return 0;
	return err_set(e, "--topo-hugepages=thp is not applied: transparent huge pages are disabled (" THP ")");
}

static int has_pool(struct err *e)
{
	unsigned long free_pages = 0, reserved = 0, beyond = 0;

	file_has(POOL, "HugePages_Free:", &free_pages);
	file_has(POOL, "HugePages_Rsvd:", &reserved);
	file_has(BEYOND_POOL, "", &beyond);
	if (free_pages > reserved || beyond)
		return 0;
	return err_set(e,
	       "--topo-hugepages=hugetlb is not applied: no huge pages are free (HugePages_Free in " POOL ")");
}

int huge_tunables(enum bind_huge huge, const char *now, char *out, size_t size, struct err *e)
{
	static int (*const has[])(struct err *e) = { [HUGE_THP] = has_thp, [HUGE_TLB] = has_pool };
	const char *old = now ? now : "";

	if (strstr(old, TUNABLE "=")) {
		if (strlen(old) >= size)
			return err_set(e, "--topo-hugepages is not applied: " HUGE_VARIABLE " is longer than %zu bytes",
			       size - 1);
		memmove(out, old, strlen(old) + 1);
		return 0;
	}
	if (has[huge](e))
		return -1;
	if (strlen(old) + sizeof(":" TUNABLE "=1") > size)
		return err_set(e, "--topo-hugepages is not applied: " HUGE_VARIABLE " is too long to append to");
	snprintf(out, size, "%s%s" TUNABLE "=%d", old, *old ? ":" : "", huge == HUGE_TLB ? 2 : 1);
	return 0;
}
