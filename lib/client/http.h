/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "base/settings.h"

struct http_request {
	const char *method;		/* "GET", "PUT" */
	const char *base;		/* "http://HOST:PORT" or "https://HOST:PORT"; NULL: RegistryURL */
	const char *path;		/* "/v1/..." */
	const char *authorization;	/* or NULL */
	const char *content_encoding;	/* or NULL */
	const char *if_none_match;	/* an etag of an earlier answer, or NULL */
	const void *body;		/* or NULL */
	size_t length;
	uid_t owner;			/* of the connection, if root makes it; 0: root */
	unsigned timeout;		/* seconds for the whole exchange */
};

struct http_answer {
	long status;			/* RFC 9110 */
	struct buf body;
	char *ack;			/* the Topiary-Ack header, or NULL */
	char *etag;			/* or NULL */
	time_t date;			/* the server's clock, 0 when it said none */
	unsigned retry_after;		/* seconds, 0 when the server said none */
};

/*
 * One exchange with the registry, whose certificate is checked by TlsCA. 0 whatever the status; -1 when there was no
 * answer. Free with http_free.
 */
int http_do(const struct settings *s, const struct http_request *r, struct http_answer *a, struct err *e);
void http_free(struct http_answer *a);

/* The body as JSON; NULL if it is none. */
static inline json_t *http_json(const struct http_answer *a)
{
	return json_loadb(a->body.data ? a->body.data : "", a->body.len, 0, NULL);
}

/* Why a request failed: the member "error" of the answer, which is borrowed, or what an answer without one means. */
static inline const char *http_why(const json_t *answer)
{
	return json_string_value(json_object_get(answer, "error")) ?:
	       "no reason given: a proxy or another server answered, or what reached topiaryd was no HTTP request,"
	       " since it does not read the PROXY protocol (TrustedProxies in topiary.conf)";
}

/* Escape one path segment (RFC 3986); malloc'ed. */
char *http_escape(const char *segment);
