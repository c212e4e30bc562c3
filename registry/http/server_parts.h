/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <microhttpd.h>

#include "deadline.h"
#include "call.h"
#include "workers.h"

struct server {
	struct MHD_Daemon *daemon;
	struct service *service;
	struct deadlines *deadlines;
	struct workers *exports, *others;	/* what waits for anything but the client */
	struct server_budget in_progress[SHARE_COUNT];	/* requests: SHARE_READS to SHARE_CHECKS */
	struct buf certificate, key;	/* PEM, until daemon has them; both empty without TLS */
	int fd;			/* until daemon has it */
	atomic_uint handed;	/* connections that libmicrohttpd has begun to serve, some time after it has them */
	atomic_uint away;	/* requests that a worker or the committer has, their connections suspended */
};

#define IDLE_SECONDS 15		/* of a connection between two requests */
#define REQUEST_SECONDS 30

/* request.c: libmicrohttpd calls them with a request's line, when it goes on, and at its end. user: the server. */
void *request_on_line(void *user, const char *line, struct MHD_Connection *conn);
enum MHD_Result request_on_data(void *user, struct MHD_Connection *conn, const char *path, const char *method,
				const char *version, const char *data, size_t *len, void **state);
void request_on_end(void *user, struct MHD_Connection *conn, void **state, enum MHD_RequestTerminationCode code);

/* The routes: docs/openapi.yaml in C. */
struct route {
	const char *method, *pattern;	/* '*' in the pattern matches one segment of the path: a node's name */
	const char *params;		/* query parameters allowed (query_add_param), or NULL */
	int (*admit)(struct call *);	/* run before the body is read, or NULL */
	void (*handle)(struct call *);
	size_t body_max, signed_max;	/* bytes: of the body, which is zstd, and of the document; 0: there is none */
	/* the credential must be signed for it (client/claim.h); NULL: the route accepts none */
	const char *purpose;
	const char *about;		/* signed in the place of a node, where the path has none, or NULL */
	const char *what;		/* of administrators alone (admin_admit) */
};

/* The route, with the name from the path in c->node; HEAD is routed as GET. NULL with the reply filled. */
const struct route *route_find(struct call *c, const char *method, const char *path);

/* Is it a health check? Those are answered however many other connections there are. */
bool route_is_health(const struct route *r);

/* The i-th route, NULL after the last; the number of a route, the number of all for NULL. */
const struct route *route_at(size_t i);
size_t route_number(const struct route *r);

/*
 * A successful GET carries an ETag, and is answered 304 without a body when If-None-Match names it (RFC 9110, sections
 * 8.8.3 and 13.1.2).
 */
void reply_set_etag(struct call *c);

/* Queue the reply; libmicrohttpd owns its body afterwards. Called by request.c. */
enum MHD_Result reply_send(struct MHD_Connection *conn, struct call *c);
