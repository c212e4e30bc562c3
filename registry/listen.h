/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_LISTEN_H
#define TOPIARY_REGISTRY_LISTEN_H

#include "base/err.h"

/* A socket that listens on ADDRESS:PORT, [ADDRESS]:PORT for IPv6, and does not block. -1 with an error. */
int listen_on(const char *address, struct err *e);

#endif
