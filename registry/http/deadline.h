/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <sys/socket.h>

#include "base/err.h"

/*
 * Deadlines of connections that wait for their clients; a thread shuts them down when they expire. A client that sends
 * or reads one byte now and then is never idle and would otherwise keep its connection for ever.
 *
 * Also keeps a few clients from occupying all connections. One source (peer_source) has at most SOURCE_CONNECTIONS;
 * above CONNECTIONS in total the source with most loses one for each new connection, down to FAIR_CONNECTIONS: the one
 * that has waited longest for its client. A connection whose request is being processed, or whose export was admitted,
 * is never shut down.
 */
#define CONNECTIONS 1024u
#define SOURCE_CONNECTIONS (CONNECTIONS / 2)
#define FAIR_CONNECTIONS (CONNECTIONS / 16)

struct deadlines;
struct deadline;

/* Bytes of request bodies and of replies; GET requests in progress: of a node, of lists, of health. */
enum deadline_share { SHARE_BODIES, SHARE_REPLIES, SHARE_READS, SHARE_LISTS, SHARE_CHECKS, SHARE_COUNT };

struct deadlines *deadlines_start(struct err *e);
/* Accepts NULL. All sockets must have been removed. */
void deadlines_stop(struct deadlines *d);

/* Connections watched, without those shut down and not closed yet. */
unsigned deadlines_count(struct deadlines *d);

/* Watch a socket; NULL when out of memory. Must be removed before it is closed. */
struct deadline *deadline_add(struct deadlines *d, int fd, const struct sockaddr *peer, unsigned seconds);
/* Set the deadline, in seconds from now; 0: none, it does not wait for its client. These functions accept NULL. */
void deadline_set(struct deadlines *d, struct deadline *one, unsigned seconds);
/* Is it between two requests, or before the first? Those that have been for so many seconds can be shut down. */
void deadline_idle(struct deadlines *d, struct deadline *one, bool idle);
void deadlines_shut_idle(struct deadlines *d, double seconds);
/* Exempt it from being shut down to make room. */
void deadline_keep(struct deadlines *d, struct deadline *one, bool keep);
/*
 * What its source has of something that all share: false if that would be more than `max`, unless it is the first.
 * Loopback addresses, which many share, have no limit. Release as much as was acquired, before it is removed.
 */
bool deadline_acquire(struct deadlines *d, struct deadline *one, enum deadline_share which, size_t amount, size_t max);
void deadline_release(struct deadlines *d, struct deadline *one, enum deadline_share which, size_t amount);
/* False if it was not shut down here and has never had a request. */
bool deadline_remove(struct deadlines *d, struct deadline *one);
