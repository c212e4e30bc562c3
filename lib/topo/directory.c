/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topo/directory.h"

#include <stdlib.h>

#include "topo/hostlist.h"

struct filling {
	struct directory *directory;
	const struct shape *shape;
	size_t names;			/* told so far, doubles too */
	struct err *err;
};

static int grow(struct directory *d)
{
	size_t room = d->room ? 2 * d->room : 1024;
	const struct shape **bigger;

	if (d->names.count < d->room)
		return 0;
	if (!(bigger = realloc(d->shape, room * sizeof(*bigger))))
		return -1;
	d->shape = bigger;
	d->room = room;
	return 0;
}

static int add(const char *name, void *user)
{
	struct filling *f = user;
	struct directory *d = f->directory;
	size_t known = d->names.count, i;

	if (f->names++ == HOSTLIST_MAX_NAMES)
		return err_set(f->err, "more than %u nodes", HOSTLIST_MAX_NAMES);
	if (grow(d) || (i = roster_add(&d->names, name)) == ROSTER_NONE)
		return err_set(f->err, "out of memory");
	if (i < known && d->shape[i] != f->shape)
		return err_set(f->err, "node %s has two shapes", name);
	d->shape[i] = f->shape;
	return 0;
}

int directory_fill(struct directory *d, const struct snapshot *s, struct err *e)
{
	struct filling f = { .directory = d, .err = e };

	for (size_t i = 0; i < s->nnodes; i++) {
		f.shape = s->nodes[i].shape;
		if (hostlist_expand(s->nodes[i].hosts, add, &f, e))
			return -1;
	}
	return 0;
}

void directory_free(struct directory *d)
{
	roster_free(&d->names);
	free(d->shape);
	*d = (struct directory){0};
}

const struct shape *directory_shape(const struct directory *d, const char *node)
{
	size_t i = roster_find(&d->names, node);

	return i == ROSTER_NONE ? NULL : d->shape[i];
}
