/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "client/cred.h"

#include <munge.h>

static munge_ctx_t context_new(const char *socket)
{
	munge_ctx_t ctx = munge_ctx_create();

	if (ctx && socket && *socket && munge_ctx_set(ctx, MUNGE_OPT_SOCKET, socket) != EMUNGE_SUCCESS) {
		munge_ctx_destroy(ctx);
		return NULL;
	}
	return ctx;
}

static const char *munge_reason(munge_ctx_t ctx, munge_err_t rc)
{
	const char *detail = ctx ? munge_ctx_strerror(ctx) : NULL;

	return detail ? detail : munge_strerror(rc);
}

char *cred_sign(const struct claim *c, uid_t reader, const char *socket, struct err *e)
{
	char text[CLAIM_MAX], *cred = NULL;
	munge_err_t rc = EMUNGE_NO_MEMORY;
	munge_ctx_t ctx;

	if (claim_write(c, text))
		return err_null(e, "%s: invalid node name, boot ID or hash: nothing was signed", c->node);
	if ((ctx = context_new(socket)) &&
	    (rc = munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, reader)) == EMUNGE_SUCCESS &&
	    (!*c->key || (rc = munge_ctx_set(ctx, MUNGE_OPT_CIPHER_TYPE, MUNGE_CIPHER_AES128)) == EMUNGE_SUCCESS))
		rc = munge_encode(&cred, ctx, text, strlen(text));
	if (rc != EMUNGE_SUCCESS) {
		err_set(e, "munge cannot sign: %s%s", munge_reason(ctx, rc), rc == EMUNGE_SOCKET ?
			"; munged must run on this host, also where Slurm uses auth/slurm" : "");
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
	if (rc == EMUNGE_CRED_UNAUTHORIZED)
		err_set(e, "munge: %s: the credential is restricted to another user; RegistryUser must be uid %u on "
			"every host", munge_reason(ctx, rc), (unsigned) geteuid());
	else if (rc == EMUNGE_CRED_EXPIRED || rc == EMUNGE_CRED_REWOUND)
		err_set(e, "munge: %s: the clocks of this host and the sender's differ by minutes: synchronize them",
			munge_reason(ctx, rc));
	else if (rc != EMUNGE_SUCCESS)
		err_set(e, "munge: %s", munge_reason(ctx, rc));
	else if (!payload || memchr(payload, '\0', len) || claim_parse(payload, c))
		err_set(e, "the credential has an unsupported payload: topiaryd, topiary-agent and topiary must be of "
			"the same release");
	else {
		*signer = uid;
		result = 0;
	}
	free(payload);
	munge_ctx_destroy(ctx);
	errno = rc == EMUNGE_SUCCESS || rc >= EMUNGE_BAD_CRED ? EACCES : EHOSTDOWN;
	return result;
}

int cred_test(const char *purpose, const char *socket, struct err *e)
{
	struct claim claim = { .boot_id = "00000000-0000-0000-0000-000000000000", .seq = time(NULL) }, got;
	char *cred;
	uid_t signer;
	int rc;

	snprintf(claim.purpose, sizeof(claim.purpose), "%s", purpose);
	snprintf(claim.node, sizeof(claim.node), "%s", purpose);
	hash_hex("", 0, claim.sha256);
	if (!(cred = cred_sign(&claim, geteuid(), socket, e)))
		return -1;
	rc = cred_check(cred, socket, &got, &signer, e);
	free(cred);
	return rc;
}
