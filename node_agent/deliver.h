/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/settings.h"
#include "client/cred.h"

struct delivery {
	const struct settings *settings;
	const char *node;
	char boot_id[CLAIM_BOOT_ID];
	const struct buf *xml;
	time_t until;			/* in CLOCK_BOOTTIME: everything must end by then; 0: no deadline */
	uint64_t seq;			/* of the last attempt: ns since the boot, but above the registry's last */
	bool sent;			/* the document was sent, not only its hash */
	unsigned retry_after;		/* seconds, if the registry stated a time, else 0 */
	char outcome[64];		/* DELIVER_DONE: shape and how it is stored, for the log */
};

enum deliver_result {
	DELIVER_DONE,		/* acknowledged, signed by the registry */
	DELIVER_AGAIN,		/* worth another attempt */
	DELIVER_REFUSED,	/* it would be refused again */
};

/*
 * One attempt: sends the hash first; if the registry asks for the document, sends that at a random time within the
 * window that the registry announces, or within half of the time left until the deadline. All results but DELIVER_DONE
 * have an error.
 */
enum deliver_result deliver_document(struct delivery *d, struct err *e);

/* Seconds until the deadline, 0 after it; without one UINT_MAX. */
unsigned deliver_left(const struct delivery *d);

/*
 * The pause after failed attempt n (0, 1, ...), random: in milliseconds, between 0 and 1 s doubled each time, at most
 * 300 s; if the registry stated a time, between that and twice as much.
 */
unsigned deliver_pause(unsigned attempt, unsigned retry_after);
