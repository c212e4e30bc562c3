/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "topo/pack.h"

#include <openssl/sha.h>
#include <string.h>
#include <zstd.h>

#include "topo/linediff.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Levels and windows by measurement on real nodes: above these, time grows and size does not shrink. */
#define LEVEL_WIRE 3
#define LEVEL_BASE 12
#define LEVEL_PATCH 3
#define LEVEL_LINES 19
#define WINDOW_LOG_ALONE 24	/* a document of CANON_MAX_BYTES: a frame may make us allocate no more than this */
#define WINDOW_LOG_MAX 25	/* a base and a document */
#define ENOUGH 32
#define RATIO_MAX 200
#define STEP (128u << 10)

/* A pack of lines: one byte how they are held, the first bytes of the document's SHA-256, the difference. */
enum { LINES_PLAIN, LINES_ZSTD };
#define CHECK 4
#define LINES_HEAD (1 + CHECK)

static const char *const kind_names[] = {
	[PACK_BASE] = "base", [PACK_LINES] = "lines", [PACK_PATCH] = "patch",
};

const char *pack_kind_name(enum pack_kind kind)
{
	return kind_names[kind];
}

int pack_kind_parse(const char *name)
{
	for (size_t i = 0; i < COUNT(kind_names); i++)
		if (!strcmp(name, kind_names[i]))
			return i;
	return -1;
}

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
	bad |= ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_enableLongDistanceMatching, 1));
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

/* One frame, nothing before or behind it, that does not say of itself to be longer than max. */
static int frame_check(struct bytes in, size_t max, struct err *e)
{
	unsigned long long says = ZSTD_getFrameContentSize(in.at, in.len);
	size_t frame;

	if (in.len < 4 || memcmp(in.at, "\x28\xb5\x2f\xfd", 4) || says == ZSTD_CONTENTSIZE_ERROR)
		return err_set(e, "not zstd");
	frame = ZSTD_findFrameCompressedSize(in.at, in.len);
	if (ZSTD_isError(frame))
		return err_set(e, "zstd: %s", ZSTD_getErrorName(frame));
	if (frame != in.len)
		return err_set(e, "zstd: %zu bytes after the frame", in.len - frame);
	if (says != ZSTD_CONTENTSIZE_UNKNOWN && says > max)
		return err_set(e, "zstd: %llu bytes, at most %zu are allowed", says, max);
	return 0;
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
			return err_set(e, "zstd: more than the %zu bytes allowed", max);
		if (left && !to.pos && from.pos == from.size)
			return err_set(e, "zstd: cut short");
	}
	buf_add(out, "", 0);
	return 0;
}

/* Append to out; what was appended before a failure stays. */
static int zstd_open(struct bytes in, struct bytes base, size_t max, struct buf *out, struct err *e)
{
	int window = base.len ? WINDOW_LOG_MAX : WINDOW_LOG_ALONE;
	ZSTD_DCtx *z;
	int rc = -1;

	if (frame_check(in, max, e))
		return -1;
	z = ZSTD_createDCtx();
	if (!z || ZSTD_isError(ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, window)) ||
	    (base.len && ZSTD_isError(ZSTD_DCtx_refPrefix(z, base.at, base.len))))
		err_set(e, "zstd: out of memory");
	else
		rc = zstd_stream(z, in, max, out, e);
	ZSTD_freeDCtx(z);
	return rc;
}

/* --- the three kinds --- */

static void put_check(struct buf *out, struct bytes doc)
{
	unsigned char md[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)doc.at, doc.len, md);
	buf_add(out, md, CHECK);
}

static int lines_make(struct bytes base, struct bytes doc, struct buf *out)
{
	struct buf diff = {0}, zip = {0};
	bool zipped;
	char how;
	int rc = linediff_make(base.at, base.len, doc.at, doc.len, &diff);

	if (rc)
		goto done;
	/* Opened, a difference is held to the document's own limit, which a longer one could break. */
	zipped = diff.len <= doc.len &&
		 !zstd_make(LEVEL_LINES, (struct bytes){ diff.data, diff.len }, (struct bytes){0}, &zip) &&
		 zip.len < diff.len;
	how = zipped ? LINES_ZSTD : LINES_PLAIN;
	buf_add(out, &how, 1);
	put_check(out, doc);
	buf_add(out, zipped ? zip.data : diff.data, zipped ? zip.len : diff.len);
	rc = out->failed ? -1 : 0;
done:
	buf_free(&diff);
	buf_free(&zip);
	return rc;
}

static int lines_open(struct bytes in, struct bytes base, size_t max, struct buf *out, struct err *e)
{
	struct buf plain = {0}, check = {0};
	struct bytes diff;
	int rc = -1;

	if (in.len < LINES_HEAD || (unsigned char)in.at[0] > LINES_ZSTD)
		return err_set(e, "not a pack of lines");
	diff = (struct bytes){ in.at + LINES_HEAD, in.len - LINES_HEAD };
	if (in.at[0] == LINES_ZSTD) {
		if (zstd_open(diff, (struct bytes){0}, max, &plain, e))
			goto done;
		diff = (struct bytes){ plain.data, plain.len };
	}
	if (linediff_apply(base.at, base.len, diff.at, diff.len, max, out)) {
		err_set(e, "the changed lines do not fit the base");
		goto done;
	}
	put_check(&check, (struct bytes){ out->data, out->len });
	rc = check.failed || memcmp(check.data, in.at + 1, CHECK) ? err_set(e, "cut short, or of another base") : 0;
done:
	buf_free(&plain);
	buf_free(&check);
	return rc;
}

static int patch_make(struct bytes base, struct bytes doc, struct buf *out)
{
	return zstd_make(LEVEL_PATCH, doc, base, out);
}

static int base_make(struct bytes base, struct bytes doc, struct buf *out)
{
	(void)base;
	return zstd_make(LEVEL_BASE, doc, (struct bytes){0}, out);
}

static int base_open(struct bytes in, struct bytes base, size_t max, struct buf *out, struct err *e)
{
	(void)base;
	return zstd_open(in, (struct bytes){0}, max, out, e);
}

/* In the order in which they are tried. */
static const struct {
	enum pack_kind kind;
	bool against_base;
	int (*make)(struct bytes base, struct bytes doc, struct buf *out);
	int (*open)(struct bytes in, struct bytes base, size_t max, struct buf *out, struct err *e);
} packers[] = {
	{ PACK_LINES, true, lines_make, lines_open },
	{ PACK_PATCH, true, patch_make, zstd_open },
	{ PACK_BASE, false, base_make, base_open },
};

static void pack_try(size_t which, struct bytes base, struct bytes doc, struct pack *best)
{
	struct buf bytes = {0};

	if (packers[which].make(base, doc, &bytes) || (best->bytes.data && bytes.len >= best->bytes.len)) {
		buf_free(&bytes);
		return;
	}
	buf_free(&best->bytes);
	*best = (struct pack){ .kind = packers[which].kind, .bytes = bytes };
}

/* Without a base no node's XML comes near 1/ENOUGH, so that trying would cost more time than all the rest for nothing. */
static bool pack_is_small(const struct pack *best, size_t len)
{
	return best->bytes.data && best->bytes.len < len / ENOUGH;
}

static int pack_verify(const struct pack *p, struct bytes base, struct bytes doc, struct err *e)
{
	struct buf again = {0};
	int rc = pack_open(p->kind, p->bytes.data, p->bytes.len, base.at, base.len, doc.len, &again, e);

	if (!rc && (again.len != doc.len || memcmp(again.data, doc.at, doc.len)))
		rc = err_set(e, "unpacked, it is another document");
	buf_free(&again);
	return rc;
}

int pack_make(const char *base, size_t base_len, const char *doc, size_t len, struct pack *out, struct err *e)
{
	struct bytes from = { base, base ? base_len : 0 }, to = { doc, len };
	struct pack best = {0};

	for (size_t i = 0; i < COUNT(packers); i++)
		if (packers[i].against_base ? base != NULL : !pack_is_small(&best, len))
			pack_try(i, from, to, &best);
	if (!best.bytes.data)
		return err_set(e, "out of memory");
	if (pack_verify(&best, from, to, e)) {
		buf_free(&best.bytes);
		return -1;
	}
	*out = best;
	return 0;
}

int pack_open(enum pack_kind kind, const char *packed, size_t packed_len, const char *base, size_t base_len,
	      size_t max, struct buf *out, struct err *e)
{
	struct bytes in = { packed, packed_len }, from = { base, base ? base_len : 0 };
	struct buf doc = {0};

	for (size_t i = 0; i < COUNT(packers); i++) {
		if (packers[i].kind != kind)
			continue;
		if (packers[i].against_base && !base)
			return err_set(e, "%s: no base given", pack_kind_name(kind));
		if (packers[i].open(in, from, max, &doc, e)) {
			buf_free(&doc);
			return err_within(e, "%s", pack_kind_name(kind));
		}
		*out = doc;
		return 0;
	}
	return err_set(e, "no kind of pack: %d", (int)kind);
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
