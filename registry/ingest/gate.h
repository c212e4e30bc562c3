/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_INGEST_GATE_H
#define TOPIARY_REGISTRY_INGEST_GATE_H

#include <arpa/inet.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/queue.h>

/*
 * Admission of documents, for clusters that boot all at once. Bounds the documents in progress, which bounds memory and
 * leaves processors to reads, and tells announcing nodes over how many seconds to spread their documents. A node has
 * one slot, an address at most a quarter, so that nobody takes the slots of others; a host whose documents are refused
 * repeatedly has to wait. Called by topiaryd.c and http.
 */
struct gate;

/* rate: documents per second to be accepted. NULL when out of memory. */
struct gate *gate_new(unsigned at_once, unsigned rate);
void gate_free(struct gate *g);

/* A document in progress; must stay valid from gate_enter to gate_leave. */
struct gate_slot {
	const char *node;			/* borrowed */
	char address[INET6_ADDRSTRLEN];		/* of the sender; empty: shared by many, not limited */
	/* Internal: */
	bool inside;
	sem_t called;
	TAILQ_ENTRY(gate_slot) link;
};

/*
 * Wait for a slot. GATE_DUPLICATE at once when the node has one or waits for one; GATE_FULL when none became free
 * within 20 s.
 */
enum gate_result { GATE_ENTERED, GATE_DUPLICATE, GATE_FULL };
enum gate_result gate_enter(struct gate *g, struct gate_slot *t);
void gate_leave(struct gate *g, struct gate_slot *t);

/* Counts one more announced document: the window, in seconds, over which it and the recent ones arrive at the rate. */
unsigned gate_window(struct gate *g);

/* Records a refused document of the host; seconds until it may send another, 0 when few were refused. */
void gate_refused(struct gate *g, const char *host);
unsigned gate_backoff(struct gate *g, const char *host);

#endif
