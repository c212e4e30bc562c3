/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLIENT_CRED_H
#define TOPIARY_CLIENT_CRED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
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

/*
 * The claim as a munge credential that only uid `reader` may decode; socket is munged's, NULL or "" for munge's own.
 * The result is malloc'ed; NULL with an error.
 */
char *cred_sign(const struct claim *c, uid_t reader, const char *socket, struct err *e);

/*
 * Decode a credential. 0 only when munge vouches for it whole: an expired, rewound or replayed one is an error that says so
 * (munge.h, munge_err_t), and nothing of it is given out. *signer is the uid that signed.
 * On -1 errno is EACCES for a credential that is refused, EHOSTDOWN when munged cannot be asked.
 */
int cred_check(const char *cred, const char *socket, struct claim *c, uid_t *signer, struct err *e);

/* A name that a node may have: 1 to 255 of A-Z a-z 0-9 . _ - and not beginning with '.' or '-'. */
bool claim_node_valid(const char *name);

#endif
