/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "client/claim.h"

/*
 * The claim as a munge credential that only uid `reader` may decode; socket is munged's, NULL or "" for munge's own.
 * The result is malloc'ed; NULL with an error.
 */
char *cred_sign(const struct claim *c, uid_t reader, const char *socket, struct err *e);

/*
 * Decode a credential. 0 only when munge vouches for it whole: an expired, rewound or replayed one is an error that
 * says so (munge.h, munge_err_t), and nothing of it is given out. *signer is the uid that signed. On -1 errno is EACCES
 * for a credential that is refused, EHOSTDOWN when munged cannot be asked.
 */
int cred_check(const char *cred, const char *socket, struct claim *c, uid_t *signer, struct err *e);

/* Signs and verifies a credential of the caller's own, for this purpose: does munged work? 0 or -1. */
int cred_test(const char *purpose, const char *socket, struct err *e);
