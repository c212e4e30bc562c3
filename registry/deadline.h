/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_DEADLINE_H
#define TOPIARY_REGISTRY_DEADLINE_H

#include "base/err.h"

/*
 * A thread that shuts sockets whose time is up: a client that sends or takes a byte now and then is never idle, and would
 * otherwise hold its connection for ever.
 */
struct deadlines;
struct deadline;

struct deadlines *deadlines_start(struct err *e);
/* Accepts NULL. All sockets were removed before. */
void deadlines_stop(struct deadlines *d);

/* Watch a socket; NULL when memory is short. It must be removed before it is closed. */
struct deadline *deadline_add(struct deadlines *d, int fd, unsigned seconds);
/* So many seconds from now; 0: no limit. The functions accept NULL. */
void deadline_set(struct deadlines *d, struct deadline *one, unsigned seconds);
void deadline_remove(struct deadlines *d, struct deadline *one);

#endif
