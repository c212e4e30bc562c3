/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/hash.h"

/* OpenSSL 3 prefers a call that links all of its ciphers, 3 MB of them, into a static program. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

void hash_write(const unsigned char digest[static HASH_BYTES], char out[static HASH_HEX])
{
	for (size_t i = 0; i < HASH_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

void hash_hex(const void *data, size_t len, char out[static HASH_HEX])
{
	unsigned char md[HASH_BYTES];
	SHA256_CTX sha;

	SHA256_Init(&sha);
	SHA256_Update(&sha, data, len);
	SHA256_Final(md, &sha);
	hash_write(md, out);
}
