/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "published.h"

#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

#define NETWORK_MAX_BYTES ((size_t) 256 << 20)

struct hierarchy *published_network(const struct cmd *c)
{
	const char *path = c->settings.fabric_file;
	struct hierarchy *h = NULL;
	struct buf text = {0};
	struct err e = {""};
	int rc = 0;

	if (access(path, F_OK) == 0) {
		rc = file_read(path, NETWORK_MAX_BYTES, &text, &e);
	} else if (access(c->settings.snapshot_file, R_OK)) {
		/* A registry that does not answer is reported when the snapshot is requested. */
		path = "/v1/fabric/levels";
		if (cmd_get(c, path, &text, &e))
			return NULL;
	} else {
		return NULL;
	}
	if (rc == 0)
		h = hierarchy_parse(text.data ? text.data : "", text.len, path, &e);
	if (!h)
		log_warning("%s: mapping without the network", e.text);
	buf_free(&text);
	return h;
}

struct snapshot *published_snapshot(const struct cmd *c, const char *path, struct err *e)
{
	const char *from = path ? path : c->settings.snapshot_file;
	struct buf text = {0};
	struct snapshot *s;
	struct err file, http;

	if (file_read(from, SNAPSHOT_MAX_BYTES, &text, &file)) {
		from = "/v1/snapshot";
		if (path) {
			err_set(e, "%s", file.text);
			return NULL;
		}
		if (cmd_get(c, from, &text, &http)) {
			err_set(e, "no snapshot, neither from the file (%.200s) nor from the registry (%.200s)",
				file.text, http.text);
			return NULL;
		}
	}
	s = snapshot_parse(text.data, text.len, from, e);
	buf_free(&text);
	return s;
}
