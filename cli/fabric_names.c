/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <ctype.h>
#include <string.h>

#include "fabric.h"
#include "target.h"

/* hwloc's "506b:4b03:003c:eee8"; of a GID the last four groups are the GUID of the port. 0: none. */
static uint64_t guid_of(const char *text)
{
	uint64_t guid = 0;

	for (; *text; text++) {
		if (*text == ':')
			continue;
		if (!isxdigit((unsigned char) *text))
			return 0;
		guid = guid << 4 |
			(isdigit((unsigned char) *text) ? *text - '0' : tolower((unsigned char) *text) - 'a' + 10);
	}
	return guid;
}

/* "Port1GID0" */
static bool is_gid(const char *name)
{
	return !strncmp(name, "Port", 4) && !strcmp(name + 4 + strspn(name + 4, "0123456789"), "GID0");
}

static int learn_object(struct fabric_names *names, const struct tree_object *o, const char *host, struct err *e)
{
	for (size_t i = 0; i < o->ninfos; i++) {
		const struct tree_pair *info = &o->infos[i];
		uint64_t guid = !strcmp(info->name, "NodeGUID") || is_gid(info->name) ? guid_of(info->value) : 0;

		if (guid && fabric_names_add(names, guid, host, e))
			return -1;
	}
	return 0;
}

int fabric_names_learn(struct fabric_names *names, const char *path, struct err *e)
{
	struct tree *t = tree_of_file(path, e);
	const char *host;
	int rc;

	if (!t)
		return -1;
	host = tree_info(&t->objects[0], "HostName");
	rc = host ? 0 : err_set(e, "%s: the XML has no HostName, so its node is not known", path);
	for (size_t i = 0; i < t->n && rc == 0; i++)
		if ((rc = learn_object(names, &t->objects[i], host, e)))
			err_within(e, "%s", path);
	tree_free(t);
	return rc;
}
