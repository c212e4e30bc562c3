/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_SERVER_H
#define TOPIARY_REGISTRY_SERVER_H

#include "service.h"

/*
 * HTTP/1.1 on ADDRESS:PORT ([ADDRESS]:PORT for IPv6). Each connection has a thread, because munged and PostgreSQL may keep one
 * waiting for seconds; their number, their idleness, the time a request may take and the bytes that they hold are bounded.
 */
struct server;

struct server *server_start(struct service *s, const char *listen, struct err *e);
/* Finish the requests under way. Accepts NULL. */
void server_stop(struct server *s);

#endif
