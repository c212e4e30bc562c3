/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_AGENT_DELIVER_H
#define TOPIARY_AGENT_DELIVER_H

#include "base/buf.h"
#include "base/settings.h"
#include "client/cred.h"

struct delivery {
	const struct settings *settings;
	const char *node;
	char boot_id[37];
	const struct buf *xml;
	uint64_t seq;			/* of the last attempt */
	unsigned retry_after;		/* seconds, when the registry named some */
	char outcome[64];		/* DELIVER_DONE: shape and how it is stored, for the log */
};

enum deliver_result {
	DELIVER_DONE,		/* acknowledged, and the registry signed it */
	DELIVER_AGAIN,		/* worth another attempt */
	DELIVER_REFUSED,	/* it would be refused again */
};

/* One attempt: the hash first, the document when it is wanted. All but DELIVER_DONE with an error. */
enum deliver_result deliver(struct delivery *d, struct err *e);

/* Before attempt number n (0, 1, ...), at random: milliseconds from 0 to 1 s doubled each time, at most 300 s. */
unsigned deliver_pause(unsigned attempt);

#endif
