/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "shape/hostlist.h"
#include "shape/snapshot.h"

#define MAX_NAMES 1000u

static int limited(const char *name, void *user)
{
	if (!*name || strlen(name) > HOSTLIST_MAX_NAME)
		abort();
	return ++*(unsigned *)user > MAX_NAMES ? -1 : 0;
}

/* What is folded is a host list that folds to itself. */
static void fold_twice(const char *list)
{
	struct buf once = {0}, twice = {0};
	unsigned names = 0;

	if (hostlist_expand(list, limited, &names, NULL))
		return;
	if (hostlist_fold(list, &once, NULL) || hostlist_fold(once.data, &twice, NULL) || strcmp(once.data, twice.data))
		abort();
	buf_free(&once);
	buf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e;
	struct snapshot *s = snapshot_parse((const char *)data, size, "fuzz", &e);

	for (size_t i = 0; s && i < s->nnodes; i++) {
		if (!s->nodes[i].shape || !s->nodes[i].shape->cores)
			abort();
		fold_twice(s->nodes[i].hosts);
	}
	snapshot_free(s);
	return 0;
}
