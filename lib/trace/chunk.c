/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/chunk.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define LEVEL 1		/* the recorder's CPU time is the job's */

void chunk_put_number(struct buf *out, uint64_t v)
{
	v = htole64(v);
	buf_add(out, &v, sizeof(v));
}

uint64_t chunk_number(const void *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return le64toh(v);
}

void chunk_put_header(const struct chunk *c, struct buf *out)
{
	chunk_put_number(out, (uint64_t) c->ticks << 32 | c->kind);
	chunk_put_number(out, (uint64_t) c->raw << 32 | c->stored);
	chunk_put_number(out, c->begin);
	chunk_put_number(out, c->end);
}

struct chunk chunk_header(const void *at)
{
	const char *p = at;
	uint64_t kind = chunk_number(p), sizes = chunk_number(p + 8);

	return (struct chunk){ .kind = kind, .ticks = kind >> 32, .stored = sizes, .raw = sizes >> 32,
			       .begin = chunk_number(p + 16), .end = chunk_number(p + 24) };
}

static size_t compress(const struct buf *payload, char *to, size_t room)
{
	ZSTD_CCtx *z = ZSTD_createCCtx();
	size_t n = 0;

	if (z && !ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, LEVEL)) &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1)))
		n = ZSTD_compress2(z, to, room, payload->data, payload->len);
	ZSTD_freeCCtx(z);
	return ZSTD_isError(n) ? 0 : n;
}

int chunk_put(struct chunk *c, const struct buf *payload, struct buf *out, struct err *e)
{
	size_t room = ZSTD_compressBound(payload->len), header = out->len, n;
	uint32_t stored;
	char *at;

	if (payload->failed || payload->len > CHUNK_MAX)
		return err_set(e, payload->failed ? "out of memory" : "more than %u bytes in a chunk", CHUNK_MAX);
	c->raw = payload->len;
	chunk_put_header(c, out);
	if (!(at = buf_reserve(out, room)) || !(n = compress(payload, at, room)))
		return err_set(e, "out of memory");
	out->len += n;
	c->stored = n;
	stored = htole32(c->stored);
	memcpy(out->data + header + 8, &stored, sizeof(stored));
	return 0;
}

int chunk_bytes(int fd, off_t offset, void *to, size_t len, struct err *e)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, (char *) to + done, len - done, offset + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(e, "byte %lld: %s", (long long) offset, n ? strerror(errno) : "the file ends");
		done += n;
	}
	return 0;
}

int chunk_read(int fd, off_t offset, const struct chunk *c, struct buf *out, struct err *e)
{
	struct buf packed = {0};
	char *from, *to;
	size_t n;
	int rc = 0;

	out->len = 0;
	if (c->raw > CHUNK_MAX || c->stored > ZSTD_compressBound(CHUNK_MAX))
		return err_set(e, "byte %lld: damaged: %u bytes in a chunk", (long long) offset, c->raw);
	if (!(from = buf_reserve(&packed, c->stored)) || !(to = buf_reserve(out, c->raw)))
		rc = err_set(e, "out of memory");
	else
		rc = chunk_bytes(fd, offset + CHUNK_HEADER, from, c->stored, e);
	if (rc == 0) {
		n = ZSTD_decompress(to, c->raw, from, c->stored);
		if (ZSTD_isError(n) || n != c->raw)
			rc = err_set(e, "byte %lld: damaged: %s", (long long) offset,
				     ZSTD_isError(n) ? ZSTD_getErrorName(n)
						     : "a chunk is shorter than its header says");
		else
			out->len = n;
	}
	buf_free(&packed);
	return rc;
}
