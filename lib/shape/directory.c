/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "shape/directory.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "shape/hostlist.h"

struct filling {
	struct directory *directory;
	const struct shape *shape;
	struct err *err;
};

static int directory_add_name(const char *name, void *user)
{
	struct filling *f = user;
	struct directory *d = f->directory;
	size_t known = d->names.count, i;

	if (array_reserve(d->shape, known, 1) || (i = string_map_add(&d->names, name)) == STRING_MAP_NONE)
		return err_set(f->err, "out of memory");
	if (i < known && d->shape[i] != f->shape)
		return err_set(f->err, "node %s has two shapes", name);
	d->shape[i] = f->shape;
	return 0;
}

int directory_fill(struct directory *d, const struct snapshot *s, struct err *e)
{
	struct filling f = { .directory = d, .err = e };
	struct hostlist_usage usage = {0};

	for (size_t i = 0; i < s->nnodes; i++) {
		f.shape = s->nodes[i].shape;
		if (hostlist_expand_more(s->nodes[i].hosts, &usage, directory_add_name, &f, e))
			return -1;
	}
	return 0;
}

void directory_free(struct directory *d)
{
	string_map_free(&d->names);
	free(d->shape);
	*d = (struct directory){0};
}

const struct shape *directory_shape(const struct directory *d, const char *node)
{
	size_t i = string_map_find(&d->names, node);
	char name[HOSTLIST_MAX_NAME + 1];

	/* The registry has lower case, and usually no domain, whatever slurm.conf has. */
	for (int domain = 1; i == STRING_MAP_NONE && domain >= 0; domain--) {
		snprintf(name, sizeof(name), "%s", node);
		if (hostlist_name_canonical(name, domain))
			i = string_map_find(&d->names, name);
	}
	return i == STRING_MAP_NONE ? NULL : d->shape[i];
}
