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
#define POOL_1G "/sys/kernel/mm/hugepages/hugepages-1048576kB/"

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

static int has_pool_1g(struct err *e)
{
	unsigned long free_pages = 0, reserved = 0, beyond = 0;

	file_has(POOL_1G "free_hugepages", "", &free_pages);
	file_has(POOL_1G "resv_hugepages", "", &reserved);
	file_has(POOL_1G "nr_overcommit_hugepages", "", &beyond);
	if (free_pages > reserved || beyond)
		return 0;
	return err_set(e, "--topo-hugepages=1G is not applied: no huge pages of 1 GiB are free (" POOL_1G ")");
}

int huge_tunables(enum bind_huge huge, const char *now, char *out, size_t size, struct err *e)
{
	static const struct {
		int (*has)(struct err *e);
		const char *value;	/* of the tunable: a kind, or the size of a page */
	} kinds[] = { [HUGE_THP] = { has_thp, "1" }, [HUGE_TLB] = { has_pool, "2" },
		      [HUGE_1G] = { has_pool_1g, "1073741824" } };
	const char *old = now ? now : "";

	if (strstr(old, TUNABLE "=")) {
		if (strlen(old) >= size)
			return err_set(e, "--topo-hugepages is not applied: " HUGE_VARIABLE " is longer than %zu bytes",
			       size - 1);
		memmove(out, old, strlen(old) + 1);
		return 0;
	}
	if (kinds[huge].has(e))
		return -1;
	if (strlen(old) + sizeof(":" TUNABLE "=") + strlen(kinds[huge].value) > size)
		return err_set(e, "--topo-hugepages is not applied: " HUGE_VARIABLE " is too long to append to");
	snprintf(out, size, "%s%s" TUNABLE "=%s", old, *old ? ":" : "", kinds[huge].value);
	return 0;
}
