/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_SERVICE_H
#define TOPIARY_REGISTRY_SERVICE_H

#include <jansson.h>

#include "base/settings.h"
#include "client/cred.h"
#include "db.h"
#include "parser.h"
#include "publish.h"

/* What every request shares. */
struct service {
	struct settings settings;
	struct db_pool *pool;
	struct parser *parser;
	struct publisher *publisher;
};

struct reply {
	unsigned status;
	const char *type;	/* a constant */
	struct buf body;
	char *ack;		/* Topiary-Ack, or NULL */
	unsigned retry_after;
};

/* One request, from its headers to its reply. */
struct call {
	struct service *service;
	char node[256];			/* from the path, or empty */
	const char *authorization;	/* borrowed from the connection, or NULL */
	const char *encoding;
	unsigned busy;			/* open connections */
	struct claim claim;		/* PUT: what was signed, and by whom */
	uid_t signer;
	struct buf body;
	struct reply reply;
};

/* Fill the reply. call_json takes the reference. call_fail always returns -1 and logs what is the server's own fault. */
void call_json(struct call *c, unsigned status, json_t *json);
int call_fail(struct call *c, unsigned status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A connection to PostgreSQL, or NULL and the reply says why. */
struct db *call_db(struct call *c);

#endif
