/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_MAP_PLACES_PLACES_ROOM_H
#define TOPIARY_MAP_PLACES_PLACES_ROOM_H

#include "map/places/places.h"

/* How the places of a host are put down, whoever knows what it is: for the files places*.c. */

/* A host that is not there yet; 0 or -1. */
int places_host_new(struct places *p, const char *name, struct err *e);
/* The last host goes again, with all that was put after it. */
void places_host_drop(struct places *p, unsigned nplaces, unsigned nleaves);

/* Make room for so many more, then put one down for the last host; its path and leaves are the caller's to fill in. */
int places_room(struct places *p, unsigned nplaces, unsigned nleaves);
struct place *places_append(struct places *p, unsigned kind, unsigned takes);

/* The index of a kind, new or known; -1 when memory is short. */
int places_kind_find(struct places *p, const struct places_kind *kind);

/* Begin a kind with the network's levels; how many they are. */
unsigned places_above(const struct places *p, struct places_kind *kind);

#endif
