/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_BENCH_WIRE_H
#define TOPIARY_BENCH_WIRE_H

#include <netinet/in.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * One HTTP/1.1 exchange on a connection of its own and from an address of its own, as each node has them; libcurl does
 * the same for five times the processor time, and here both ends share one machine.
 */
struct wire_answer {
	int status;
	unsigned retry_after;	/* seconds, 0 when none were said */
	char ack[1024];		/* Topiary-Ack, or empty */
	struct buf body;	/* NUL-terminated; reused by the next exchange, the caller's to free */
};

/* "http://ADDRESS:PORT" of an IPv4 address. 0 or -1 with an error. */
int wire_address(const char *url, struct sockaddr_in *out, struct err *e);

/*
 * Send head, which ends with an empty line, and body (which may be NULL) from the loopback address `from` (host byte
 * order, 0: any). 0 whatever the status, -1 without a whole answer within the seconds.
 */
int wire_exchange(const struct sockaddr_in *to, in_addr_t from, const struct buf *head, const struct buf *body,
		  unsigned seconds, struct wire_answer *a, struct err *e);

#endif
