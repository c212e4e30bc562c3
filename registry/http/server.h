/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "call.h"

/*
 * The HTTP/1.1 server on ADDRESS:PORT ([ADDRESS]:PORT for IPv6). Few threads serve all connections, and workers do what
 * may wait (workers.h); the number of connections, their idle time, the time of a request and the bytes held are
 * bounded.
 */
struct server;

/* Checks the settings and binds the address, before anything is changed anywhere. NULL with an error. */
struct server *server_open(struct service *s, struct err *e);
/* Listens. 0 or -1. */
int server_start(struct server *server, struct err *e);
/*
 * Refuses new connections, and waits until the requests of all others are answered, for a client at most END_SECONDS.
 * readyz is 503 meanwhile, and each reply closes its connection.
 */
void server_drain(struct server *s);
/* Accepts NULL. */
void server_stop(struct server *s);
