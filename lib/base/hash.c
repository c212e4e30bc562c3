/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "base/hash.h"

#include <openssl/sha.h>

void hash_write(const unsigned char digest[static HASH_BYTES], char out[static HASH_HEX])
{
	for (size_t i = 0; i < HASH_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

void hash_hex(const void *data, size_t len, char out[static HASH_HEX])
{
	unsigned char md[HASH_BYTES];

	SHA256(data, len, md);
	hash_write(md, out);
}
