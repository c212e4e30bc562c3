/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_PLACES_PLACES_ROOM_H
#define TOPIARY_MAP_PLACES_PLACES_ROOM_H

#include "map/places/places.h"

/* Storage of the places of a host, for the files places*.c. */

/* Adds a host, which must be new; 0 or -1. */
int places_host_new(struct places *p, const char *name, struct err *e);
/* Removes the last host with everything added after it. */
void places_host_drop(struct places *p, unsigned nplaces, unsigned nleaves);

/*
 * places_room: makes room for so many more. The other appends one for the last host; the caller fills in its path and
 * leaves.
 */
int places_room(struct places *p, unsigned nplaces, unsigned nleaves);
struct place *places_append(struct places *p, unsigned kind, unsigned takes);

/* The index of a kind, added if new; -1 when memory is short. */
int places_kind_find(struct places *p, const struct places_kind *kind);

/* Begins a kind with the levels of the network; returns their number. */
unsigned places_above(const struct places *p, struct places_kind *kind);

#endif
