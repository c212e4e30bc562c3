/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_SERVICE_H
#define TOPIARY_REGISTRY_SERVICE_H

#include <jansson.h>
#include <sys/socket.h>

#include "base/settings.h"
#include "bases.h"
#include "budget.h"
#include "client/cred.h"
#include "commit.h"
#include "db.h"
#include "parser.h"
#include "publish.h"

struct gate;
struct metrics;
struct peers;
struct upkeep;

/* What every request shares. */
struct service {
	struct settings settings;
	struct db_pool *pool;		/* for exports */
	struct db_pool *readers;	/* for reads, so that neither starves the other */
	struct parser *parser;
	struct bases *bases;
	struct committer *committer;
	struct gate *gate;
	struct publisher *publisher;
	struct upkeep *upkeep;
	/* From here on, server_start makes them. */
	struct metrics *metrics;
	struct peers *peers;
	struct budget bodies, replies;
};

struct reply {
	unsigned status;
	const char *type;	/* a constant */
	struct buf body;
	char *ack;		/* Topiary-Ack, or NULL */
	char sha256[HASH_HEX];	/* Topiary-SHA256, or empty */
	char allow[32];		/* Allow, or empty */
	unsigned retry_after;
};

/* ?NAME=VALUE; both are borrowed from the connection. */
struct param {
	const char *name, *value;
};
#define PARAMS_MAX 8

/* One request, from its headers to its reply. */
struct call {
	struct service *service;
	char node[256];			/* from the path, or empty */
	struct param params[PARAMS_MAX];
	unsigned nparams;
	const char *authorization;	/* borrowed from the connection, or NULL */
	const char *encoding;
	const char *if_none_match;
	const struct sockaddr *peer;
	unsigned busy;			/* open connections */
	struct claim claim;		/* PUT: what was signed, and by whom */
	uid_t signer;
	struct buf body;
	struct reply reply;
};

/* The value of a parameter, NULL when the request has none of this name. */
const char *call_param(const struct call *c, const char *name);

/* Fill the reply. call_json takes the reference. call_fail always returns -1 and logs what is the server's own fault. */
void call_json(struct call *c, unsigned status, json_t *json);
int call_fail(struct call *c, unsigned status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A body that is ready; its bytes are the reply's afterwards. */
void call_body(struct call *c, const char *type, struct buf *body);

/* Read the munge credential into claim and signer: 0, or -1 with the reply filled. Whether that signer may is the caller's question. */
int call_check_credential(struct call *c);

/* A connection to PostgreSQL, or NULL and the reply says why. */
struct db *call_db(struct call *c);
struct db *call_reader(struct call *c);

#endif
