/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_FABRIC_RECOGNISE_MAKE_H
#define TOPIARY_FABRIC_RECOGNISE_MAKE_H

#include "fabric/model/fabric.h"
#include "shape/hostlist.h"

/*
 * A fabric under construction: readers add what a file states, in any order and repeatedly, before it becomes a fabric.
 * An end is anything that a cable is plugged into, identified by a key of the reader's choice. A cable stated at both
 * of its ends is one cable.
 */
enum end_kind { END_SWITCH, END_ADAPTER, END_HOST };

struct making;

struct making *making_new(void);
void making_free(struct making *m);

/* The end of this key, created if new: an index, or -1 when memory is short. */
int making_end(struct making *m, enum end_kind kind, const char *key);

/* hostlist_expand, with its limits for all lists of the fabric together. */
int making_each(struct making *m, const char *list, int (*each)(const char *name, void *user), void *user,
		struct err *e);

bool making_is_switch(const struct making *m, unsigned end);
const char *making_key(const struct making *m, unsigned end);

/* The description of an end; text of len bytes. The first is kept. 0 or -1 (memory). */
int making_describe(struct making *m, unsigned end, const char *text, size_t len);
/* The name of an end in the fabric, otherwise derived from its description. 0 or -1 (memory). */
int making_name(struct making *m, unsigned end, const char *name);

void making_guid(struct making *m, unsigned end, uint64_t guid, uint64_t port);

/* A cable between two ends, from port to port; with ports of 0 each call adds a cable. mbps 0: unknown. 0 or -1. */
int making_cable(struct making *m, unsigned a, unsigned port_a, unsigned b, unsigned port_b, unsigned mbps);

/* NULL when memory is short. m remains the caller's. */
struct fabric *making_finish(const struct making *m, const struct fabric_names *names, struct err *e);

#endif
