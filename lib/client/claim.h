/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLIENT_CLAIM_H
#define TOPIARY_CLIENT_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

/*
 * What an agent signs with munge: which node exports which document, at which boot and in which order. The document itself is
 * never inside (munge's limit is 1 MiB).
 */
struct claim {
	char node[256];
	char boot_id[37];	/* /proc/sys/kernel/random/boot_id */
	uint64_t seq;		/* grows with each attempt of a boot */
	uint64_t length;	/* bytes of the document, uncompressed */
	char sha256[HASH_HEX];	/* of the document, uncompressed */
};

#define CLAIM_MAX 512	/* bytes as text, the NUL too */

/* The one line of text that is signed. 0, or -1 when the claim is none that can be. */
int claim_write(const struct claim *c, char text[static CLAIM_MAX]);

/* Only the spelling that claim_write has is read. 0, or -1 with *out untouched. */
int claim_parse(const char *text, struct claim *out);

/* A name that a node may have: 1 to 255 of A-Z a-z 0-9 . _ - and not beginning with '.' or '-'. */
bool claim_node_valid(const char *name);

#endif
