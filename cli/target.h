/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "cmd.h"
#include "hwxml/tree.h"

#define WHEN_MAX 40
#define WHEN_END "999999"	/* the fraction of a time that was given without one */

/*
 * Parse a time on the command line: "2026-11-20" (midnight), "2026-11-20 14:00", "2026-11-20 14:00:05", in local time,
 * or RFC 3339 with a zone. Without a fraction it is the end of that second, so that times printed by `topiary history`
 * can be used as they are. out is RFC 3339 in UTC. 0 or -1.
 */
int when_parse(const char *words, char out[static WHEN_MAX], struct err *e);

/*
 * Convert the registry's RFC 3339 to local time: "2026-11-20 14:00:05"; "-" for NULL, other text unchanged. Returns
 * out.
 */
const char *when_local(const char *utc, char out[static WHEN_MAX]);

/* NODE or NODE@WHEN. */
struct target {
	char node[256];
	char at[WHEN_MAX];	/* "" for now */
};

int target_parse(const char *text, struct target *out, struct err *e);

/* The XML of a node in the registry: form is "canonical", or NULL for the XML as sent. 0, or -1 with an error. */
int target_read(const struct cmd *c, const struct target *t, const char *form, struct buf *out, struct err *e);

/*
 * The topology of a file, and of a node in the registry. NULL with an error that names it (path, the node).
 */
struct tree *tree_of_file(const char *path, struct err *e);
struct tree *tree_of_target(const struct cmd *c, const struct target *t, struct err *e);
