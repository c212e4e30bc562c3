/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "shape/hostlist.h"

#define NAMES_MAX 2000		/* more only take time */

static int count_name(const char *name, void *user)
{
	size_t len = strlen(name);

	if (!len || len > HOSTLIST_MAX_NAME || strpbrk(name, "[], \n"))
		abort();
	return ++*(unsigned *)user > NAMES_MAX ? -1 : 0;
}

static int find_name(const char *name, void *user)
{
	if (!hostset_has(user, name))
		abort();
	return 0;
}

/* What is folded is a list of no more names, and folds to itself; the set of a list has all of them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf folded = {0}, again = {0};
	struct hostset *set;
	unsigned given = 0, kept = 0;
	char *list = begin_with("", data, &size);
	struct err e;

	if (hostlist_expand(list, count_name, &given, &e) == 0 && hostlist_fold(list, &folded, &e) == 0) {
		if (hostlist_expand(folded.data ? folded.data : "", count_name, &kept, &e) && given)
			abort();
		if (kept > given || !kept != !given)
			abort();
		if (kept && (hostlist_fold(folded.data, &again, &e) || strcmp(folded.data, again.data)))
			abort();
		if (!(set = hostset_parse(list, &e)) || hostset_names(set) != given ||
		    hostlist_expand(list, find_name, set, &e))
			abort();
		hostset_free(set);
	}
	buf_free(&folded);
	buf_free(&again);
	free(list);
	return 0;
}
