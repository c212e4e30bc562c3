/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "trace/writer.h"

#include <assert.h>
#include <sys/stat.h>

#include "base/file.h"

struct trace_writer {
	int fd;
	char *name;
	const struct trace_head *head;
	struct trace_block block;	/* its n: ticks collected */
	unsigned room;			/* ticks: a column's values are so far apart */
	uint64_t last;			/* time */
	uint64_t offset;		/* end of the file */
	struct buf index;
};

int trace_file_create(const char *path, struct err *e)
{
	/* Reading, too: a pipe that is opened to be written only must have a reader. */
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
	struct stat st;

	if (fd < 0)
		return err_set(e, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return err_set(e, "%s: not a regular file", path);
}

void trace_file_discard(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
		unlink(path);
}

/* All of it, or the file is as it was. */
static int append(struct trace_writer *w, const struct buf *bytes, struct err *e)
{
	if (file_write(w->fd, bytes->data, bytes->len)) {
		err_set(e, "%s: %s", w->name, strerror(errno));
		if (ftruncate(w->fd, w->offset) || lseek(w->fd, w->offset, SEEK_SET) < 0)
			err_within(e, "cannot be cut to %llu bytes", (unsigned long long) w->offset);
		return -1;
	}
	w->offset += bytes->len;
	return 0;
}

static int append_chunk(struct trace_writer *w, struct trace_chunk *c, const struct buf *payload, struct buf *before,
			struct err *e)
{
	int rc = trace_chunk_put(c, payload, before, e) ? err_within(e, "%s", w->name) : append(w, before, e);

	buf_free(before);
	return rc;
}

static void writer_free(struct trace_writer *w)
{
	trace_block_free(&w->block);
	buf_free(&w->index);
	free(w->name);
	free(w);
}

struct trace_writer *trace_writer_continue(int fd, const char *name, struct trace_head *h, const struct trace *t,
					   uint64_t begin, struct err *e)
{
	struct trace_writer *w = calloc(1, sizeof(*w));

	if (!w || !(w->name = strdup(name))) {
		err_set(e, "out of memory");
		goto error;
	}
	w->fd = fd;
	w->head = h;
	if (trace_head_check(h, e))
		goto error;
	w->room = TRACE_BLOCK_VALUES / h->columns;
	if (w->room > TRACE_BLOCK_TICKS)
		w->room = TRACE_BLOCK_TICKS;
	if (trace_block_resize(&w->block, h, w->room, e))
		goto error;
	w->block.n = 0;
	if (!t) {
		struct buf text = {0}, out = {0};
		struct trace_chunk c = { .kind = CHUNK_HEAD };
		int rc = -1;

		buf_add(&out, CHUNK_MAGIC, CHUNK_MAGIC_LEN);
		if (trace_head_write(w->head, &text, e) == 0)
			rc = text.len > TRACE_HEAD_MAX ? err_set(e, "%s: the head is too large", w->name) :
							 append_chunk(w, &c, &text, &out, e);
		buf_free(&out);
		buf_free(&text);
		if (rc)
			goto error;
		return w;
	}
	trace_index(t, &w->index, &w->offset);
	w->last = begin;
	if (ftruncate(fd, w->offset) || lseek(fd, w->offset, SEEK_SET) < 0)
		err_set(e, "%s: %s", name, strerror(errno));
	else if (w->index.failed)
		err_set(e, "out of memory");
	else
		return w;
error:
	if (w)
		writer_free(w);
	close(fd);
	return NULL;
}

struct trace_writer *trace_writer_new(int fd, const char *name, struct trace_head *h, struct err *e)
{
	return trace_writer_continue(fd, name, h, NULL, 0, e);
}

static int write_index(struct trace_writer *w, struct err *e)
{
	struct trace_chunk c = { .kind = CHUNK_INDEX, .begin = w->last, .end = w->last };
	uint64_t at = w->offset;
	struct buf out = {0};
	int rc;

	if (append_chunk(w, &c, &w->index, &out, e))
		return -1;
	trace_chunk_put_number(&out, at);
	buf_add(&out, CHUNK_END, CHUNK_MAGIC_LEN);
	rc = append(w, &out, e);
	buf_free(&out);
	return rc;
}

int trace_writer_flush(struct trace_writer *w, struct err *e)
{
	struct trace_block *b = &w->block;
	struct trace_chunk c = { .kind = CHUNK_DATA, .ticks = b->n, .begin = b->begin, .end = w->last };
	struct buf payload = {0}, out = {0};
	uint64_t at = w->offset;
	int rc;

	if (!b->n)
		return 0;
	/* The columns of a block that is not full move together. */
	b->values = b->times + b->n;
	for (size_t x = 0; x < w->head->columns; x++)
		memmove(b->values + x * b->n, b->times + w->room + x * w->room, b->n * sizeof(*b->values));
	trace_block_encode(b, w->head, &payload);
	b->n = 0;
	rc = append_chunk(w, &c, &payload, &out, e);
	buf_free(&payload);
	if (rc)
		return -1;
	trace_chunk_put_number(&w->index, at);
	trace_chunk_put_header(&c, &w->index);
	return 0;
}

bool trace_writer_is_empty(const struct trace_writer *w)
{
	return !w->index.len;
}

int trace_writer_tick(struct trace_writer *w, uint64_t time, const uint64_t *values, struct err *e)
{
	struct trace_block *b = &w->block;

	assert(b->n < w->room);
	if (time <= w->last)
		return err_set(e, "%s: a tick at %llu ns, not after the last at %llu ns", w->name,
			       (unsigned long long) time, (unsigned long long) w->last);
	if (!b->n)
		b->begin = w->last;
	for (size_t c = 0; c < w->head->columns; c++)
		b->times[w->room + c * w->room + b->n] = values[c];
	b->times[b->n++] = w->last = time;
	return b->n < w->room ? 0 : trace_writer_flush(w, e);
}

int trace_writer_close(struct trace_writer *w, struct err *e)
{
	int rc = 0;

	if (!w)
		return 0;
	if (trace_writer_flush(w, e) || write_index(w, e))
		rc = -1;
	if (close(w->fd) && rc == 0)
		rc = err_set(e, "%s: %s", w->name, strerror(errno));
	writer_free(w);
	return rc;
}
