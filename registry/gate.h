/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_GATE_H
#define TOPIARY_REGISTRY_GATE_H

/*
 * A cluster that boots comes all at once. The gate lets so many documents be worked on at a time, which bounds the memory and leaves
 * the processors to reads too, and tells those who announce a document over how many seconds to spread.
 */
struct gate;

/* rate: documents a second that the registry is to take. NULL when memory is short. */
struct gate *gate_new(unsigned at_once, unsigned rate);
void gate_free(struct gate *g);

/* Wait for a turn: 0, or -1 when none came within 20 s. */
int gate_enter(struct gate *g);
void gate_leave(struct gate *g);

/* One more document is announced: the window, in seconds, over which it and those announced lately come at the rate. */
unsigned gate_window(struct gate *g);

#endif
