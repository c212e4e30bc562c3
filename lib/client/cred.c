/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "client/cred.h"

#include <errno.h>
#include <inttypes.h>
#include <munge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The payload: one line of text, the first word its version. */
#define CLAIM_FORMAT "topiary1 %s %s %" PRIu64 " %" PRIu64 " %s"
#define CLAIM_MAX 512

#define LOWER_HEX "0123456789abcdef"
#define NODE_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

bool claim_node_valid(const char *name)
{
	size_t len = strlen(name);

	return len && len < sizeof(((struct claim *) 0)->node) && strspn(name, NODE_CHARS) == len &&
		*name != '.' && *name != '-';
}

static bool claim_valid(const struct claim *c)
{
	return claim_node_valid(c->node) &&
		strlen(c->boot_id) == 36 && strspn(c->boot_id, LOWER_HEX "-") == 36 &&
		strlen(c->sha256) == HASH_HEX - 1 && strspn(c->sha256, LOWER_HEX) == HASH_HEX - 1;
}

static int claim_parse(const char *text, struct claim *out)
{
	struct claim c;
	char again[CLAIM_MAX];

	if (sscanf(text, "topiary1 %255s %36s %" SCNu64 " %" SCNu64 " %64s",
		   c.node, c.boot_id, &c.seq, &c.length, c.sha256) != 5 || !claim_valid(&c))
		return -1;
	/* sscanf forgives signs, blanks and what follows; the one spelling that we write is the one we read. */
	snprintf(again, sizeof(again), CLAIM_FORMAT, c.node, c.boot_id, c.seq, c.length, c.sha256);
	if (strcmp(again, text))
		return -1;
	*out = c;
	return 0;
}

static munge_ctx_t context_new(const char *socket)
{
	munge_ctx_t ctx = munge_ctx_create();

	if (ctx && socket && *socket && munge_ctx_set(ctx, MUNGE_OPT_SOCKET, socket) != EMUNGE_SUCCESS) {
		munge_ctx_destroy(ctx);
		return NULL;
	}
	return ctx;
}

static const char *reason(munge_ctx_t ctx, munge_err_t rc)
{
	const char *detail = ctx ? munge_ctx_strerror(ctx) : NULL;

	return detail ? detail : munge_strerror(rc);
}

char *cred_sign(const struct claim *c, uid_t reader, const char *socket, struct err *e)
{
	char text[CLAIM_MAX], *cred = NULL;
	munge_err_t rc = EMUNGE_NO_MEMORY;
	munge_ctx_t ctx;

	if (!claim_valid(c)) {
		err_set(e, "%s: no claim can be signed for this node, boot or hash", c->node);
		return NULL;
	}
	snprintf(text, sizeof(text), CLAIM_FORMAT, c->node, c->boot_id, c->seq, c->length, c->sha256);
	if ((ctx = context_new(socket)) &&
	    (rc = munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, reader)) == EMUNGE_SUCCESS)
		rc = munge_encode(&cred, ctx, text, strlen(text));
	if (rc != EMUNGE_SUCCESS) {
		err_set(e, "munge cannot sign: %s", reason(ctx, rc));
		free(cred);
		cred = NULL;
	}
	munge_ctx_destroy(ctx);
	return cred;
}

int cred_check(const char *cred, const char *socket, struct claim *c, uid_t *signer, struct err *e)
{
	munge_err_t rc = EMUNGE_NO_MEMORY;
	munge_ctx_t ctx = context_new(socket);
	void *payload = NULL;
	int len = 0, result = -1;
	uid_t uid;
	gid_t gid;

	if (ctx)
		rc = munge_decode(cred, ctx, &payload, &len, &uid, &gid);
	/* munge gives payload and uid of expired and replayed credentials too. */
	if (rc != EMUNGE_SUCCESS)
		err_set(e, "munge: %s", reason(ctx, rc));
	else if (!payload || memchr(payload, '\0', len) || claim_parse(payload, c))
		err_set(e, "the credential carries no claim of this version");
	else {
		*signer = uid;
		result = 0;
	}
	free(payload);
	munge_ctx_destroy(ctx);
	errno = rc == EMUNGE_SUCCESS || rc >= EMUNGE_BAD_CRED ? EACCES : EHOSTDOWN;
	return result;
}
