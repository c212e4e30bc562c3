/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <assert.h>
#include <jansson.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/settings.h"
#include "client/cred.h"
#include "ingest/commit.h"
#include "ingest/parser.h"
#include "store/bases.h"
#include "store/db.h"
#include "upkeep/publish.h"

/* An amount that all connections share: bytes, or requests in progress. */
struct server_budget {
	atomic_size_t used;
	size_t max;
};

/* Acquire the whole amount or none. */
static inline bool server_budget_acquire(struct server_budget *b, size_t amount)
{
	size_t used = atomic_load(&b->used);

	do {
		if (amount > b->max || used > b->max - amount)
			return false;
	} while (!atomic_compare_exchange_weak(&b->used, &used, used + amount));
	return true;
}

static inline void server_budget_release(struct server_budget *b, size_t amount)
{
	size_t used = atomic_fetch_sub(&b->used, amount);

	assert(used >= amount);
}

struct gate;
struct pg_servers;
struct identity;
struct metrics;
struct migrations;
struct peers;
struct readiness;
struct upkeep;

/* Shared by all requests. */
struct service {
	struct settings settings;
	struct db_pool *pool;		/* for exports */
	struct db_pool *readers;	/* for reads of one node */
	struct db_pool *lists;		/* for lists */
	struct db_pool *checks;		/* for health checks: separate pools, so that none starves another */
	struct db_pool *read_checks;	/* for those of ReadDatabase; NULL without it */
	struct migrations *migrations;
	struct pg_servers *hosts;
	struct identity *identity;
	struct parser *parser;
	struct bases *bases;
	struct verified_cache *verified;
	struct committer *committer;
	struct gate *gate;
	struct publisher *publisher;
	struct upkeep *upkeep;
	struct readiness *readiness;
	/* From here on: made by server_open. */
	struct metrics *metrics;
	struct peers *peers;
	/* bytes of each; documents: exports that wait for their commit */
	struct server_budget bodies, documents, replies;
	atomic_bool ending;	/* topiaryd finishes what it has, and is not ready for more */
	sem_t parsing_reads;	/* one fewer than parser workers: exports always find one */
};

#define ETAG_DIGITS 32
struct call_reply {
	unsigned status;
	const char *type;	/* a constant */
	struct buf body;
	char ack[CLAIM_MAC];	/* Topiary-Ack, or empty */
	char sha256[HASH_HEX];	/* Topiary-SHA256, or empty */
	char allow[32];		/* Allow, or empty */
	char etag[ETAG_DIGITS + 3];	/* with its quotes, or empty */
	unsigned retry_after;
	bool close;		/* the connection, too */
};

/* ?NAME=VALUE; both are borrowed from the connection. */
struct call_parameter {
	const char *name, *value;
};
#define PARAMS_MAX 8

/* What a reader may see (access_admit). */
enum call_access { ACCESS_ANYONE, ACCESS_USER, ACCESS_ADMIN };

/* A request, from its headers to its reply. */
struct call {
	struct service *service;
	char node[256];			/* from the path, or empty */
	struct call_parameter params[PARAMS_MAX];
	unsigned nparams;
	const char *authorization;	/* borrowed from the connection, or NULL */
	const char *encoding;
	const char *if_none_match;
	const struct sockaddr *peer;	/* of the connection, or of the client behind a proxy (peer_behind_proxy) */
	struct sockaddr_storage client;
	bool proxied;			/* peer is what a trusted proxy says, in client */
	int fd;				/* of the connection */
	const char *purpose, *what;	/* of the credential that the route requires, or NULL (struct route) */
	unsigned busy;			/* open connections */
	struct claim claim;		/* the verified claim, with the node's name as in `node`, and who signed it */
	char signed_name[256];		/* the node's name as it was signed */
	uid_t signer;
	enum call_access reader;
	struct buf body;
	/*
	 * For handlers of exports, which return before the reply is filled: done, from any thread, is then the last
	 * that they call, and run continues in a worker: false if there is none.
	 */
	void (*done)(struct call *c);
	bool (*run)(struct call *c, void (*next)(struct call *c));
	void (*next)(struct call *c);
	void *state;
	struct call_reply reply;
};

/* The value of a parameter, NULL when the request does not have it. */
const char *call_param(const struct call *c, const char *name);

/*
 * Fill the reply. call_json takes the reference. call_fail always returns -1 and logs 5xx; the caller of 429 sets
 * retry_after.
 */
void call_json(struct call *c, unsigned status, json_t *json);
int call_fail(struct call *c, unsigned status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Logs it, once a minute for all nodes of which it is the same behind the name that it begins with. */
void call_log_failure(const char *node, const char *text);
/* Sets the body, which the reply owns afterwards. */
void call_body(struct call *c, const char *type, struct buf *body);

/* A node's name as the registry stores it (NodeDomain). False if it is none. */
bool call_node_canonical(const struct call *c, char *name);

/*
 * Verify the munge credential into claim and signer: 0, or -1 with the reply filled, also when it was signed for
 * another purpose than the route's. Whether that signer is permitted is the caller's check.
 */
int call_check_credential(struct call *c);

/* Refuse a body that is not zstd, and a signed document longer than max. Each 0, or -1 with the reply filled. */
int call_check_zstd(struct call *c);
int call_check_length(struct call *c, size_t max);

/*
 * The document that the verified claim was signed for, from a zstd body: decompression stops at the signed length. 0,
 * or -1 with the reply filled. call_body_json: NULL with the reply filled.
 */
int call_body_text(struct call *c, struct buf *out);
json_t *call_body_json(struct call *c);

/*
 * A connection to PostgreSQL for writing, or for reads: lists have a pool of their own and do not delay reads of one
 * node. NULL with the reply filled.
 */
struct db *call_acquire_writer(struct call *c);
struct db *call_acquire_reader(struct call *c);
