/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "delta/pack.h"

#define MAX (1u << 20)

static void pack_both_ways(const char *base, size_t base_len, const char *doc, size_t len)
{
	struct pack p;
	struct buf out;

	if (pack_make(base, base_len, doc, len, &p, NULL))
		abort();
	if (pack_open(p.kind, p.bytes.data, p.bytes.len, base, base_len, len, &out, NULL) || out.len != len ||
	    memcmp(out.data, doc, len))
		abort();
	buf_free(&out);
	buf_free(&p.bytes);
}

static void open_anything(const char *base, size_t base_len, const char *packed, size_t len)
{
	struct buf out;

	for (int kind = PACK_BASE; kind <= PACK_PATCH; kind++)
		if (!pack_open(kind, packed, len, base, base_len, MAX, &out, NULL)) {
			if (out.len > MAX)
				abort();
			buf_free(&out);
		}
	if (!zip_open(packed, len, MAX, &out, NULL))
		buf_free(&out);
}

/* The first byte says where the input is cut into a base and what is packed, or unpacked, against it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *base = (const char *)data + 1;
	size_t base_len;

	if (!size)
		return 0;
	size--;
	base_len = size * data[0] / 255;
	pack_both_ways(base, base_len, base + base_len, size - base_len);
	open_anything(base, base_len, base + base_len, size - base_len);
	return 0;
}
