/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "map/engine/slots.h"
#include "map/matrix/matrix.h"

/*
 * What a mapping does to messages. The time of one is its bytes times the distance, as in the cost, and a latency: that
 * of HALF_SPEED_BYTES at the largest distance, and as the square root of the distance below it. A level that costs ten
 * times another for each byte is about three times as late.
 */
struct traffic {
	double time;			/* of all messages, in total */
	double sent, received;		/* of those of one rank, the rank with most */
	double out[PATHS_LEVELS + 1];	/* by level of slots: bytes exchanged by a domain with others, that with most */
};

/* Of a matrix with messages. 0, or -1 when memory is short. */
int traffic_of(const struct matrix *m, const struct slots *s, const unsigned *slot, struct traffic *out);

/*
 * Whether a program runs faster by the second mapping as far as its messages tell: in the second they take a tenth
 * less time in total, no longer for the rank that sends or receives most, and no more bytes leave the busiest node,
 * switch or other domain. What this leaves open, only the order of the messages in time would tell.
 */
bool traffic_is_less(const struct traffic *from, const struct traffic *to, unsigned levels);
