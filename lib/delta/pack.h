/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/*
 * A document stored small: by itself (PACK_BASE), or as a zstd patch against a base that it differs from in more than
 * fields (delta/field_layout.h; PACK_PATCH). Exact to the byte. Called by the registry and `topiary pack`; zip_make
 * also by topiary-agent, zip_open by http/call.c.
 */
enum pack_kind { PACK_BASE, PACK_PATCH };

struct pack {
	enum pack_kind kind;
	struct buf bytes;
};

/*
 * Pack doc against base, or by itself when base is NULL. Every pack is unpacked again and compared before it is given
 * out. 0, or -1 with out untouched. The caller frees out->bytes.
 */
int pack_make(const char *base, size_t base_len, const char *doc, size_t len, struct pack *out, struct err *e);

/*
 * Give the document back; base as it was for pack_make. Packed bytes that are not whole or do not fit the base are an
 * error, and at most max bytes come out. The caller frees out.
 */
int pack_open(enum pack_kind kind, const char *packed, size_t packed_len, const char *base, size_t base_len,
	      size_t max, struct buf *out, struct err *e);

/*
 * zstd for the wire: one frame; zip_open stops at max bytes and at 200:1 (RFC 8878 sets no limit of its own).
 */
int zip_make(const char *data, size_t len, struct buf *out, struct err *e);
int zip_open(const char *data, size_t len, size_t max, struct buf *out, struct err *e);
