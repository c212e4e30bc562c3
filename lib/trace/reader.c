/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/reader.h"

#include <assert.h>
#include <sys/stat.h>

#include "base/array.h"

struct trace_own {
	int fd;
	char *name;
	uint64_t size;		/* of the file when it was opened, or followed last */
	uint64_t scanned;	/* of a file without index: the end of its last complete block */
	struct trace_place {
		uint64_t offset;
		struct trace_chunk chunk;
	} *places;
	struct trace_part {	/* of trace_keep, NULL: all */
		unsigned place, first, n;	/* ticks of a place */
		uint64_t earlier;		/* by so much are its times */
	} *parts;
	struct buf bytes;	/* of the chunk read last */
};

/* A block is good if it follows the one before in file and time. 0 or -1. */
static int place_add(struct trace *t, uint64_t offset, const struct trace_chunk *c, uint64_t limit, struct err *e)
{
	struct trace_own *own = t->own;
	const struct trace_place *last = t->nblocks ? &own->places[t->nblocks - 1] : NULL;
	uint64_t from = last ? last->offset + CHUNK_HEADER + last->chunk.stored : 0;

	if (c->kind != CHUNK_DATA || !c->ticks || c->ticks > TRACE_BLOCK_TICKS || offset < from || offset > limit ||
	    limit - offset < CHUNK_HEADER + (uint64_t) c->stored || c->begin < t->end || c->end <= c->begin)
		return err_set(e, "byte %llu: damaged: no block of ticks", (unsigned long long) offset);
	if (array_reserve(own->places, t->nblocks, 1))
		return err_set(e, "out of memory");
	own->places[t->nblocks++] = (struct trace_place){ offset, *c };
	t->ticks += c->ticks;
	t->end = c->end;
	return 0;
}

/* 1: the file has no index. */
static int index_read(struct trace *t, struct err *e)
{
	struct trace_own *own = t->own;
	char trailer[CHUNK_TRAILER], header[CHUNK_HEADER];
	uint64_t at, limit = own->size - CHUNK_TRAILER;
	struct trace_chunk c;

	if (own->size < CHUNK_TRAILER + CHUNK_HEADER ||
	    trace_chunk_bytes(own->fd, limit, trailer, sizeof(trailer), e) ||
	    memcmp(trailer + 8, CHUNK_END, CHUNK_MAGIC_LEN))
		return 1;
	at = trace_chunk_number(trailer);
	if (at > limit - CHUNK_HEADER)
		return err_set(e, "damaged: the index is at byte %llu of %llu", (unsigned long long) at,
			       (unsigned long long) own->size);
	if (trace_chunk_bytes(own->fd, at, header, sizeof(header), e))
		return -1;
	c = trace_chunk_header(header);
	if (c.kind != CHUNK_INDEX || c.raw % CHUNK_ENTRY)
		return err_set(e, "byte %llu: damaged: no index", (unsigned long long) at);
	if (trace_chunk_read(own->fd, at, &c, &own->bytes, e))
		return -1;
	for (size_t i = 0; i < own->bytes.len; i += CHUNK_ENTRY) {
		c = trace_chunk_header(own->bytes.data + i + 8);
		if (place_add(t, trace_chunk_number(own->bytes.data + i), &c, at, e))
			return -1;
	}
	return 0;
}

/* Complete blocks up to the end, wherever it was cut, or up to what a power failure left as zeros (kind 0). */
static int blocks_scan(struct trace *t, struct err *e)
{
	struct trace_own *own = t->own;
	char header[CHUNK_HEADER];
	uint64_t at;
	struct trace_chunk c;

	while ((at = own->scanned) + CHUNK_HEADER <= own->size) {
		if (trace_chunk_bytes(own->fd, at, header, sizeof(header), e))
			return -1;
		c = trace_chunk_header(header);
		if (!c.kind || c.kind == CHUNK_INDEX ||
		    (c.kind == CHUNK_DATA && own->size - at - CHUNK_HEADER < c.stored))
			return 0;
		if (place_add(t, at, &c, own->size, e))
			return -1;
		own->scanned = at + CHUNK_HEADER + c.stored;
	}
	return 0;
}

static int trace_load(struct trace *t, struct err *e)
{
	struct trace_own *own = t->own;
	char begin[CHUNK_MAGIC_LEN + CHUNK_HEADER];
	struct trace_chunk c;
	int rc;

	if (own->size < sizeof(begin) || trace_chunk_bytes(own->fd, 0, begin, sizeof(begin), e) ||
	    memcmp(begin, CHUNK_MAGIC, CHUNK_MAGIC_LEN))
		return err_set(e, "not a Topiary trace");
	c = trace_chunk_header(begin + CHUNK_MAGIC_LEN);
	if (c.kind != CHUNK_HEAD || c.raw > TRACE_HEAD_MAX)
		return err_set(e, "damaged: no head");
	if (trace_chunk_read(own->fd, CHUNK_MAGIC_LEN, &c, &own->bytes, e) ||
	    trace_head_parse(own->bytes.data, own->bytes.len, &t->head, e))
		return -1;
	rc = index_read(t, e);
	t->open_end = rc == 1;
	own->scanned = sizeof(begin) + c.stored;
	return t->open_end ? blocks_scan(t, e) : rc;
}

void trace_index(const struct trace *t, struct buf *out, uint64_t *end)
{
	for (unsigned i = 0; i < t->nblocks; i++) {
		trace_chunk_put_number(out, t->own->places[i].offset);
		trace_chunk_put_header(&t->own->places[i].chunk, out);
	}
	*end = t->own->scanned;
}

int trace_follow(struct trace *t, struct err *e)
{
	struct trace_own *own = t->own;
	char end[CHUNK_MAGIC_LEN];
	struct stat st;

	if (!t->open_end || own->parts || fstat(own->fd, &st) || (uint64_t) st.st_size == own->size)
		return 0;
	own->size = st.st_size;
	if (own->size < own->scanned)
		return err_set(e, "%s: was cut or recorded anew while it was read", own->name);
	if (blocks_scan(t, e))
		return err_within(e, "%s", own->name);
	t->open_end = own->size - own->scanned < CHUNK_HEADER + CHUNK_TRAILER ||
		trace_chunk_bytes(own->fd, own->size - sizeof(end), end, sizeof(end), e) ||
		memcmp(end, CHUNK_END, sizeof(end));
	return 0;
}

struct trace *trace_open_fd(int fd, const char *name, struct err *e)
{
	struct trace *t = calloc(1, sizeof(*t));
	struct trace_own *own = calloc(1, sizeof(*own));
	struct stat st;

	if (!t || !own || !(own->name = strdup(name))) {
		err_set(e, "%s: out of memory", name);
		close(fd);
		free(own);
		free(t);
		return NULL;
	}
	t->own = own;
	own->fd = fd;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		err_set(e, "not a regular file");
		goto error;
	}
	own->size = st.st_size;
	if (trace_load(t, e) == 0)
		return t;
error:
	err_within(e, "%s", name);
	trace_close(t);
	return NULL;
}

char *trace_path_beside(const char *trace, const char *suffix)
{
	size_t n = strlen(trace);
	char *path;

	if (n > 6 && !strcmp(trace + n - 6, ".trace"))
		n -= 6;
	return asprintf(&path, "%.*s%s", (int) n, trace, suffix) < 0 ? NULL : path;
}

bool trace_is_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char begin[CHUNK_MAGIC_LEN];
	bool is_trace = fd >= 0 && pread(fd, begin, sizeof(begin), 0) == sizeof(begin) &&
		!memcmp(begin, CHUNK_MAGIC, sizeof(begin));

	if (fd >= 0)
		close(fd);
	return is_trace;
}

struct trace *trace_open(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0)
		return trace_open_fd(fd, path, e);
	return err_null(e, "%s: %s", path, strerror(errno));
}

void trace_close(struct trace *t)
{
	if (!t)
		return;
	close(t->own->fd);
	free(t->own->name);
	free(t->own->places);
	free(t->own->parts);
	buf_free(&t->own->bytes);
	free(t->own);
	trace_head_free(&t->head);
	free(t);
}

int trace_read(const struct trace *t, unsigned i, struct trace_block *b, struct err *e)
{
	struct trace_own *own = t->own;
	const struct trace_part *part = own->parts ? &own->parts[i] : NULL;
	const struct trace_place *p = &own->places[part ? part->place : i];
	uint64_t begin;

	assert(i < t->nblocks);
	if (trace_chunk_read(own->fd, p->offset, &p->chunk, &own->bytes, e))
		return err_within(e, "%s", own->name);
	if (trace_block_decode(b, &t->head, p->chunk.ticks, own->bytes.data, own->bytes.len, e))
		return err_within(e, "%s: byte %llu: damaged", own->name, (unsigned long long) p->offset);
	if (b->begin != p->chunk.begin || b->times[b->n - 1] != p->chunk.end)
		return err_set(e, "%s: byte %llu: damaged: times differ from the header's", own->name,
			       (unsigned long long) p->offset);
	if (!part)
		return 0;
	begin = part->first ? b->times[part->first - 1] : b->begin;
	for (unsigned k = 0; k < part->n; k++)
		b->times[k] = b->times[part->first + k] - part->earlier;
	/* Downwards in place: no value is read after its place was written. */
	for (unsigned c = 0; c < t->head.columns; c++)
		memmove(b->values + (size_t) c * part->n, b->values + (size_t) c * b->n + part->first,
			part->n * sizeof(*b->values));
	b->begin = begin - part->earlier;
	b->n = part->n;
	return 0;
}

/* --- some of the ticks --- */

struct trace_interval *trace_intervals(const struct trace *t, struct err *e)
{
	struct trace_interval *all = calloc(t->ticks + 1, sizeof(*all)), *next = all;
	struct trace_block b = {0};
	int rc = all ? 0 : err_set(e, "out of memory");

	for (unsigned i = 0; rc == 0 && i < t->nblocks; i++) {
		rc = trace_read(t, i, &b, e);
		for (unsigned k = 0; rc == 0 && k < b.n; k++)
			*next++ = (struct trace_interval){ k ? b.times[k - 1] : b.begin, b.times[k] };
	}
	trace_block_free(&b);
	if (rc == 0)
		return all;
	free(all);
	return NULL;
}

int trace_keep(struct trace *t, const bool *is_kept, bool is_joined, struct err *e)
{
	struct trace_interval *ticks = trace_intervals(t, e);
	uint64_t number = 0, kept = 0, end = 0;
	unsigned n = 0;
	int rc = ticks ? 0 : -1;

	for (unsigned place = 0; rc == 0 && place < t->nblocks; place++)
		for (unsigned k = 0; rc == 0 && k < t->own->places[place].chunk.ticks; k++, number++) {
			struct trace_part *last = n ? &t->own->parts[n - 1] : NULL;

			if (!is_kept[number])
				continue;
			if (last && last->place == place && last->first + last->n == k)
				last->n++;
			else if (array_reserve(t->own->parts, n, 1))
				rc = err_set(e, "out of memory");
			else
				t->own->parts[n++] = (struct trace_part){
					place, k, 1, is_joined ? ticks[number].begin - end : 0 };
			end = is_joined ? end + ticks[number].end - ticks[number].begin : ticks[number].end;
			kept++;
		}
	free(ticks);
	if (rc)
		return -1;
	t->nblocks = n;
	t->ticks = kept;
	t->end = end;
	return 0;
}
