/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SPANK_CONFINE_H
#define TOPIARY_SPANK_CONFINE_H

#include "base/err.h"

/*
 * For the image worker (image_worker.c), whose output serves all users: restrict the calling process to its memory and
 * its open descriptors. It keeps root's uid: with any other, a user of that uid could stop it, trace it or set its
 * limits. But it has no capability, can gain none, and the kernel refuses it all system calls that name a file, a
 * process or an address (EACCES). 0, or -1 with an error.
 */
int confine_self(struct err *e);

#endif
