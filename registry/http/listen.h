/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_LISTEN_H
#define TOPIARY_REGISTRY_HTTP_LISTEN_H

#include <stdbool.h>

#include "base/err.h"

/* A non-blocking listening socket on ADDRESS:PORT ([ADDRESS]:PORT for IPv6). -1 with an error. */
int listen_on(const char *address, struct err *e);

/* Is it bound to a loopback address? */
bool listen_is_loopback(int fd);

#endif
