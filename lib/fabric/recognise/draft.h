/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "fabric/model/fabric.h"
#include "shape/hostlist.h"

/*
 * A fabric under construction: readers add what a file states, in any order and repeatedly, before it becomes a fabric.
 * An end is anything that a cable is plugged into, identified by a key of the reader's choice. A cable stated at both
 * of its ends is one cable.
 */
enum draft_end_kind { END_SWITCH, END_ADAPTER, END_HOST };

struct fabric_draft;

struct fabric_draft *draft_new(void);
void draft_free(struct fabric_draft *m);

/* The end of this key, created if new: an index, or -1 when memory is short. */
int draft_end(struct fabric_draft *m, enum draft_end_kind kind, const char *key);

/* hostlist_expand, with its limits for all lists of the fabric together. */
int draft_each(struct fabric_draft *m, const char *list, int (*each)(const char *name, void *user), void *user,
	       struct err *e);

bool draft_is_switch(const struct fabric_draft *m, unsigned end);
const char *draft_key(const struct fabric_draft *m, unsigned end);

/* The description of an end; text of len bytes. The first is kept. 0 or -1 (memory). */
int draft_describe(struct fabric_draft *m, unsigned end, const char *text, size_t len);
/* The name of an end in the fabric, otherwise derived from its description. 0 or -1 (memory). */
int draft_name(struct fabric_draft *m, unsigned end, const char *name);

/* GUIDs of the adapter and its port, 0: unknown; number: the port's, if each port is an end of its own, else 0. */
void draft_guid(struct fabric_draft *m, unsigned end, uint64_t guid, uint64_t port, unsigned number);

/*
 * The card of an adapter, by its SystemImageGUID; 0: not stated. Adapters of one card are one host's; unknown: it is
 * not named by the description. 0 or -1 (memory).
 */
int draft_system(struct fabric_draft *m, unsigned end, uint64_t system, bool unknown);

/* A cable between two ends, from port to port; with ports of 0 each call adds a cable. mbps 0: unknown. 0 or -1. */
int draft_cable(struct fabric_draft *m, unsigned a, unsigned port_a, unsigned b, unsigned port_b, unsigned mbps);

/* NULL when memory is short. m remains the caller's. */
struct fabric *draft_finish(const struct fabric_draft *m, const struct fabric_names *names, struct err *e);

/* Sets the kind and the levels of every plane, and the rank of every switch. 0 or -1 (memory). */
int fabric_recognise(struct fabric *f);

/* The fabric of levels that a file states: a switch for each group. Takes ownership of h. NULL: memory. */
struct fabric *fabric_given(struct hierarchy *h, struct err *e);
