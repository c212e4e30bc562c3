/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "client/claim.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

/*
 * The first word is its version. Version 1 had no purpose: it could be taken for any request, so that it is no longer
 * read.
 */
#define CLAIM_FORMAT "topiary2 %s %s %s %" PRIu64 " %" PRIu64 " %s%s%s"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define LOWER_HEX "0123456789abcdef"
#define NODE_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

bool claim_node_valid(const char *name)
{
	size_t len = strlen(name);

	return len && len < sizeof(((struct claim *) 0)->node) && strspn(name, NODE_CHARS) == len &&
		*name != '.' && *name != '-';
}

/*
 * A UUID as Linux writes it (RFC 4122, 8-4-4-4-12): PostgreSQL would refuse another, and all that comes in one batch
 * with it.
 */
static bool boot_id_valid(const char *id)
{
	static const size_t groups[] = { 8, 4, 4, 4, 12 };

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if ((i && *id++ != '-') || strspn(id, LOWER_HEX) != groups[i])
			return false;
		id += groups[i];
	}
	return !*id;
}

static bool claim_valid(const struct claim *c)
{
	return *c->purpose && !c->purpose[strspn(c->purpose, LOWER)] && claim_node_valid(c->node) &&
		boot_id_valid(c->boot_id) && strlen(c->sha256) == HASH_HEX - 1 &&
		strspn(c->sha256, LOWER_HEX) == HASH_HEX - 1 &&
		(!*c->key || (strlen(c->key) == CLAIM_KEY - 1 && strspn(c->key, LOWER_HEX) == CLAIM_KEY - 1));
}

int claim_write(const struct claim *c, char text[static CLAIM_MAX])
{
	if (!claim_valid(c))
		return -1;
	snprintf(text, CLAIM_MAX, CLAIM_FORMAT, c->purpose, c->node, c->boot_id, c->seq, c->length, c->sha256,
		 *c->key ? " " : "", c->key);
	return 0;
}

int claim_parse(const char *text, struct claim *out)
{
	struct claim c = {0};
	char again[CLAIM_MAX];

	/* sscanf forgives signs, blanks and what follows; the one spelling that we write is the one we read. */
	if (sscanf(text, "topiary2 %15s %255s %36s %" SCNu64 " %" SCNu64 " %64s %32s", c.purpose, c.node, c.boot_id,
		   &c.seq, &c.length, c.sha256, c.key) < 6 ||
	    claim_write(&c, again) || strcmp(again, text))
		return -1;
	*out = c;
	return 0;
}

int claim_ack(const struct claim *c, char out[static CLAIM_MAC])
{
	struct claim ack = *c;
	char text[CLAIM_MAX];
	unsigned char mac[HASH_BYTES];
	unsigned len = 0;

	memcpy(ack.purpose, CLAIM_ACK, sizeof(CLAIM_ACK));
	ack.key[0] = '\0';
	if (!*c->key || claim_write(&ack, text) ||
	    !HMAC(EVP_sha256(), c->key, CLAIM_KEY - 1, (const unsigned char *) text, strlen(text), mac, &len) ||
	    len != HASH_BYTES)
		return -1;
	hash_write(mac, out + sprintf(out, CLAIM_MAC_SCHEME));
	return 0;
}

int claim_boot_id(char out[static CLAIM_BOOT_ID], struct err *e)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	FILE *f = fopen(path, "re");
	int n = f ? fscanf(f, "%36s", out) : 0;

	if (f)
		fclose(f);
	return n == 1 && strlen(out) == CLAIM_BOOT_ID - 1 ? 0 : err_set(e, "%s: not a boot ID", path);
}
