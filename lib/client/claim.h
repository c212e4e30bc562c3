/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "base/hash.h"

#define CLAIM_KEY 33		/* bytes of a key of 128 bits in lower-case hexadecimal, with its NUL */
#define CLAIM_BOOT_ID 37	/* bytes of a boot ID, with its NUL */

/*
 * What is signed with munge: what for, which node and which document, at which boot and in which order. The document
 * itself is never inside (munge's limit is 1 MiB). The purpose keeps a credential from being taken for another request
 * than it was made for.
 */
struct claim {
	char purpose[16];	/* one of CLAIM_*, or another word of a-z */
	char node[256];
	char boot_id[CLAIM_BOOT_ID];
	uint64_t seq;		/* grows with each attempt of a boot */
	uint64_t length;	/* bytes of the document, uncompressed */
	char sha256[HASH_HEX];	/* of the document, uncompressed */
	char key[CLAIM_KEY];	/* of an export: with which the acknowledgement is to be authenticated; or empty */
};

#define CLAIM_MAX 512	/* bytes as text, the NUL too */

#define CLAIM_EXPORT "export"	/* by an agent: this is the node's topology */
#define CLAIM_ACK "ack"		/* by the registry: it is kept */
#define CLAIM_ACCEPT "accept"	/* by an administrator: the node is as its class shall be */
#define CLAIM_FORGET "forget"	/* by an administrator: the node is gone */
#define CLAIM_FSCK "fsck"	/* by an administrator: check what is stored */
#define CLAIM_READ "read"	/* by whoever reads what is not for everybody */
#define CLAIM_COSTS "costs"	/* by root of a node, or an administrator: the node was measured */
#define CLAIM_FABRIC "fabric"	/* by an administrator: this is the fabric */

/* The one line of text that is signed. 0, or -1 when the claim is none that can be. */
int claim_write(const struct claim *c, char text[static CLAIM_MAX]);

/* Only the spelling that claim_write has is read, and no claim of another version. 0, or -1 with *out untouched. */
int claim_parse(const char *text, struct claim *out);

/*
 * The acknowledgement of an export whose claim has a key, in the place of a munge credential, which costs munged as
 * much as the export's own: HMAC-SHA256 (RFC 2104) over the claim with the purpose CLAIM_ACK. munge encrypts the key
 * with the export's claim for the registry's user, so that whoever could forge this could sign as that user, too. 0, or
 * -1 when the claim is none.
 */
#define CLAIM_MAC_SCHEME "hmac-sha256 "
#define CLAIM_MAC (sizeof(CLAIM_MAC_SCHEME) - 1 + HASH_HEX)
int claim_ack(const struct claim *c, char out[static CLAIM_MAC]);

/* The id of this boot, from the kernel. 0 or -1. */
int claim_boot_id(char out[static CLAIM_BOOT_ID], struct err *e);

/* A name that a node may have: 1 to 255 of A-Z a-z 0-9 . _ - and not beginning with '.' or '-'. */
bool claim_node_valid(const char *name);
