/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/std.h"

#define HASH_BYTES 32
#define HASH_HEX (2 * HASH_BYTES + 1)

/* SHA-256 (FIPS 180-4) as lower-case hexadecimal, NUL-terminated. Never fails. */
void hash_hex(const void *data, size_t len, char out[static HASH_HEX]);

/* The same of a digest of HASH_BYTES that was computed otherwise. */
void hash_write(const unsigned char digest[static HASH_BYTES], char out[static HASH_HEX]);
