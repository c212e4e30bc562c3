/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_AGENT_DELIVER_H
#define TOPIARY_AGENT_DELIVER_H

#include <stdbool.h>
#include <time.h>

#include "base/buf.h"
#include "base/settings.h"
#include "client/cred.h"

struct delivery {
	const struct settings *settings;
	const char *node;
	char boot_id[37];
	const struct buf *xml;
	time_t until;			/* of CLOCK_BOOTTIME: nothing is to take longer; 0: no deadline */
	uint64_t seq;			/* of the last attempt: ns since the boot, but above the registry's last */
	bool sent;			/* the document too, not its hash alone */
	unsigned retry_after;		/* seconds, when the registry named some, else 0 */
	char outcome[64];		/* DELIVER_DONE: shape and how it is stored, for the log */
};

enum deliver_result {
	DELIVER_DONE,		/* acknowledged, and the registry signed it */
	DELIVER_AGAIN,		/* worth another attempt */
	DELIVER_REFUSED,	/* it would be refused again */
};

/*
 * One attempt: the hash first; when the document is wanted, it goes at a random time within the window that the
 * registry announces, or within half of what is left until the deadline. All but DELIVER_DONE with an error.
 */
enum deliver_result deliver_document(struct delivery *d, struct err *e);

/* Seconds until the deadline, 0 when it has passed; without one UINT_MAX. */
unsigned deliver_left(const struct delivery *d);

/*
 * After attempt number n (0, 1, ...) has failed, at random: milliseconds from 0 to 1 s doubled each time, at most 300
 * s; where the registry named a time, from that to twice as much.
 */
unsigned deliver_pause(unsigned attempt, unsigned retry_after);

#endif
