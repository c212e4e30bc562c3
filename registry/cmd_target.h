/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_TARGET_H
#define TOPIARY_REGISTRY_CMD_TARGET_H

#include "base/buf.h"
#include "base/err.h"

#define WHEN_MAX 40

/*
 * A time in a person's words: "2026-11-20" (as it began), "2026-11-20 14:00", "2026-11-20 14:00:05", in local time, or RFC 3339
 * with its zone. Without a fraction it is the end of that second, so that the times that `topiary history` tells can be
 * given back. out is RFC 3339 in UTC. 0 or -1.
 */
int when_parse(const char *words, char out[static WHEN_MAX], struct err *e);

/* A time as the registry tells it, in local time for people: "2026-11-20 14:00:05". "-" for NULL; what is no time stays. out. */
const char *when_local(const char *utc, char out[static WHEN_MAX]);

/* NODE or NODE@WHEN. */
struct target {
	char node[256];
	char at[WHEN_MAX];	/* "" for now */
};

int target_parse(const char *text, struct target *out, struct err *e);

/* The path of its XML: form is "canonical", or NULL for what the node sent. Appended to out, whose failure tells. */
void target_path(const struct target *t, const char *form, struct buf *out);

#endif
