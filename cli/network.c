/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "network.h"

#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

#define MAX_BYTES ((size_t) 256 << 20)
#define PATH "/v1/fabric/levels"

struct hierarchy *network_published(const struct cmd *c)
{
	const char *path = c->settings.fabric_file;
	struct hierarchy *h = NULL;
	struct buf text = {0};
	struct err e = {""};
	int rc = 0;

	if (access(path, F_OK) == 0) {
		rc = file_read(path, MAX_BYTES, &text, &e);
	} else if (access(c->settings.snapshot_file, R_OK)) {
		/* A registry that does not answer is reported when the snapshot is requested. */
		path = PATH;
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
