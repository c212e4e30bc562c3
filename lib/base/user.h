/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BASE_USER_H
#define TOPIARY_BASE_USER_H

#include <sys/types.h>

#include "base/err.h"

/*
 * The uid of RegistryUser: name is an account's, or the uid itself in digits, which needs no account on this host.
 * 0, or -1 with e set and *uid untouched.
 */
int user_uid(const char *name, uid_t *uid, struct err *e);

#endif
