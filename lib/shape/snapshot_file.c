/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "shape/snapshot.h"

/* A file that is damaged may be one with nodes: slurmctld still has what it read before. */
static bool may_have_nodes(const char *path, const struct buf *now)
{
	struct snapshot *s = snapshot_parse(now->data ? now->data : "", now->len, path, NULL);
	bool empty = s && !s->nnodes;

	snapshot_free(s);
	return !empty;
}

/* The identity of its database; false if it states none. */
static bool database_read(const struct buf *text, char out[static 64])
{
	const char *at = text->len ? memmem(text->data, text->len, "\n" SNAPSHOT_DATABASE,
					    strlen("\n" SNAPSHOT_DATABASE)) : NULL;

	return at && sscanf(at, " " SNAPSHOT_DATABASE "%63s", out) == 1;
}

int snapshot_replace(const char *path, const struct buf *text, bool force, struct err *e)
{
	struct snapshot *new = snapshot_parse(text->data ? text->data : "", text->len, "the new snapshot", e);
	struct buf now = {0};
	char old[64], other[64];
	bool there, empty;
	int rc = 1;

	if (!new)
		return -1;
	empty = !new->nnodes;
	snapshot_free(new);
	there = file_read(path, SNAPSHOT_MAX_BYTES, &now, NULL) == 0;
	if (there && now.len == text->len && (!now.len || !memcmp(now.data, text->data, now.len)))
		rc = 0;
	else if (empty && !force && (there ? may_have_nodes(path, &now) : access(path, F_OK) == 0))
		rc = err_set(e,
			     "%s: not replaced by a snapshot without nodes; is the registry's database empty, or "
			     "another one? If it is meant: topiary snapshot --force -o %s", path, path);
	else if (!force && database_read(&now, old) && database_read(text, other) && strcmp(old, other))
		rc = err_set(e,
			     "%s: not replaced by a snapshot of another database, %s; the file is of %s. Is topiaryd's "
			     "Database right? If it is meant: topiary snapshot --force -o %s", path, other, old, path);
	else if (file_replace(path, text->data, text->len, 0644, e))
		rc = -1;
	buf_free(&now);
	return rc;
}
