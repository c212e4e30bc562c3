/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "delta/pack.h"

#include <zstd.h>

/* Levels and windows by measurement on real nodes: above these, time grows and size does not shrink. */
#define LEVEL_WIRE 3
#define LEVEL_BASE 12
#define LEVEL_PATCH 3
#define WINDOW_LOG_ALONE 24	/* a document of CANON_MAX_BYTES: a frame may make us allocate no more than this */
#define WINDOW_LOG_MAX 25	/* a base and a document */
#define RATIO_MAX 200
#define STEP (128u << 10)

struct bytes {
	const char *at;
	size_t len;
};

/* --- zstd --- */

static int window_log(size_t bytes)
{
	int log = 10;

	while (log < WINDOW_LOG_MAX && ((size_t)1 << log) < bytes)
		log++;
	return log;
}

static int zstd_prepare(ZSTD_CCtx *z, int level, size_t len, struct bytes base)
{
	int bad = 0;

	bad |= ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, level));
	bad |= ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1));
	if (!base.len)
		return bad;
	bad |= ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_windowLog, window_log(base.len + len)));
	bad |= ZSTD_isError(ZSTD_CCtx_refPrefix(z, base.at, base.len));
	return bad;
}

static int zstd_make(int level, struct bytes data, struct bytes base, struct buf *out)
{
	size_t room = ZSTD_compressBound(data.len), n;
	ZSTD_CCtx *z = ZSTD_createCCtx();
	char *at = buf_reserve(out, room);
	int rc = -1;

	if (z && at && !zstd_prepare(z, level, data.len, base)) {
		n = ZSTD_compress2(z, at, room, data.at, data.len);
		if (!ZSTD_isError(n)) {
			out->len += n;
			rc = 0;
		}
	}
	ZSTD_freeCCtx(z);
	return rc;
}

static int zstd_stream(ZSTD_DCtx *z, struct bytes in, size_t max, struct buf *out, struct err *e)
{
	ZSTD_inBuffer from = { in.at, in.len, 0 };
	size_t left = 1;

	while (left) {
		ZSTD_outBuffer to = { buf_reserve(out, STEP), STEP, 0 };

		if (!to.dst)
			return err_set(e, "out of memory");
		left = ZSTD_decompressStream(z, &to, &from);
		if (ZSTD_isError(left))
			return err_set(e, "zstd: %s", ZSTD_getErrorName(left));
		out->len += to.pos;
		if (out->len > max)
			return err_set(e, "zstd: more than %zu bytes decompressed", max);
		if (left && !to.pos && from.pos == from.size)
			return err_set(e, "zstd: truncated");
	}
	buf_add(out, "", 0);
	return 0;
}

/* A frame that says how long it is needs no window beside the buffer that it fills. */
static int zstd_at_once(ZSTD_DCtx *z, struct bytes in, size_t says, struct buf *out, struct err *e)
{
	char *at = buf_reserve(out, says);
	size_t n;

	if (!at)
		return err_set(e, "out of memory");
	n = ZSTD_decompressDCtx(z, at, says, in.at, in.len);
	if (ZSTD_isError(n))
		return err_set(e, "zstd: %s", ZSTD_getErrorName(n));
	out->len += n;
	buf_add(out, "", 0);
	return 0;
}

/* Append to out; what was appended before a failure stays. */
static int zstd_open(struct bytes in, struct bytes base, size_t max, struct buf *out, struct err *e)
{
	unsigned long long says = ZSTD_getFrameContentSize(in.at, in.len);
	int window = base.len ? WINDOW_LOG_MAX : WINDOW_LOG_ALONE;
	size_t frame;
	ZSTD_DCtx *z;
	int rc = -1;

	/* One frame, nothing before or behind it, that does not say of itself to be longer than max. */
	if (in.len < 4 || memcmp(in.at, "\x28\xb5\x2f\xfd", 4) || says == ZSTD_CONTENTSIZE_ERROR)
		return err_set(e, "not zstd data");
	frame = ZSTD_findFrameCompressedSize(in.at, in.len);
	if (ZSTD_isError(frame))
		return err_set(e, "zstd: %s", ZSTD_getErrorName(frame));
	if (frame != in.len)
		return err_set(e, "zstd: %zu bytes after the frame", in.len - frame);
	if (says != ZSTD_CONTENTSIZE_UNKNOWN && says > max)
		return err_set(e, "zstd: %llu bytes decompressed, at most %zu are allowed", says, max);
	z = ZSTD_createDCtx();
	if (!z || ZSTD_isError(ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, window)) ||
	    (base.len && ZSTD_isError(ZSTD_DCtx_refPrefix(z, base.at, base.len))))
		err_set(e, "zstd: out of memory");
	else
		rc = says == ZSTD_CONTENTSIZE_UNKNOWN ? zstd_stream(z, in, max, out, e) : zstd_at_once(z, in, says, out,
												       e);
	ZSTD_freeDCtx(z);
	return rc;
}

/* --- the two kinds --- */

static const int levels[] = { [PACK_BASE] = LEVEL_BASE, [PACK_PATCH] = LEVEL_PATCH };

int pack_make(const char *base, size_t base_len, const char *doc, size_t len, struct pack *out, struct err *e)
{
	struct bytes from = { base, base ? base_len : 0 }, to = { doc, len };
	struct pack p = { .kind = base ? PACK_PATCH : PACK_BASE };
	struct buf again = {0};
	int rc = zstd_make(levels[p.kind], to, from, &p.bytes) ? err_set(e, "out of memory") :
		pack_open(p.kind, p.bytes.data, p.bytes.len, base, base_len, len, &again, e);

	if (!rc && (again.len != len || memcmp(again.data, doc, len)))
		rc = err_set(e, "unpacking does not reproduce the document");
	buf_free(&again);
	if (rc)
		buf_free(&p.bytes);
	else
		*out = p;
	return rc;
}

int pack_open(enum pack_kind kind, const char *packed, size_t packed_len, const char *base, size_t base_len,
	      size_t max, struct buf *out, struct err *e)
{
	struct bytes in = { packed, packed_len }, from = { NULL, 0 };
	struct buf doc = {0};

	if (kind == PACK_PATCH) {
		if (!base)
			return err_set(e, "patch: no base given");
		from = (struct bytes){ base, base_len };
	}
	if (zstd_open(in, from, max, &doc, e)) {
		buf_free(&doc);
		return err_within(e, kind == PACK_PATCH ? "patch" : "base");
	}
	*out = doc;
	return 0;
}

/* --- the wire --- */

int zip_make(const char *data, size_t len, struct buf *out, struct err *e)
{
	struct buf zip = {0};

	if (zstd_make(LEVEL_WIRE, (struct bytes){ data, len }, (struct bytes){0}, &zip)) {
		buf_free(&zip);
		return err_set(e, "out of memory");
	}
	*out = zip;
	return 0;
}

int zip_open(const char *data, size_t len, size_t max, struct buf *out, struct err *e)
{
	struct buf plain = {0};

	if (len < max / RATIO_MAX)
		max = len * RATIO_MAX;
	if (zstd_open((struct bytes){ data, len }, (struct bytes){0}, max, &plain, e)) {
		buf_free(&plain);
		return -1;
	}
	*out = plain;
	return 0;
}
