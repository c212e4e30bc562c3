/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "trace/advice.h"
#include "trace/block.h"
#include "trace/reader.h"
#include "trace/view.h"

static void read_all(const void *bytes, size_t len)
{
	struct formula_list l = {0};
	struct trace_block b = {0};
	struct trace_view *v;
	struct trace *t;
	struct err e;
	unsigned n;

	if (!(t = trace_open_fd(file_of(bytes, len), "fuzz", &e)))
		return;
	if (t->head.formulas)
		formula_list_parse(t->head.formulas, strlen(t->head.formulas), "fuzz", &l, &e);
	if (!(v = trace_view_new(&t->head, TRACE_RATE)) || trace_view_add_events(v, "Machine", &e) ||
	    trace_view_add_list(v, &l, &e))
		t->nblocks = 0;
	formula_list_free(&l);
	for (unsigned i = 0; i < t->nblocks; i++)
		if (trace_read(t, i, &b, &e) || trace_view_block(v, &b, &e))
			break;
	trace_block_free(&b);
	trace_view_free(v);
	free(advice_list(&(struct advice_node){ &t, &(const char *){ "fuzz" }, 1, NULL, NULL, NULL }, &n, &e));
	trace_close(t);
}

/* Checksums would refuse most inputs: a head or a block is put into chunks that are good. */
static void read_chunks(const char *head, size_t head_len, const char *data, size_t len, unsigned ticks)
{
	struct trace_chunk c = { .kind = CHUNK_HEAD }, d = { .kind = CHUNK_DATA, .ticks = ticks, .end = ticks };
	struct buf out = {0}, payload = {0};

	buf_add(&out, CHUNK_MAGIC, CHUNK_MAGIC_LEN);
	buf_add(&payload, head, head_len);
	if (trace_chunk_put(&c, &payload, &out, NULL))
		abort();
	payload.len = 0;
	buf_add(&payload, data, len);
	if (trace_chunk_put(&d, &payload, &out, NULL))
		abort();
	read_all(out.data, out.len);
	buf_free(&payload);
	buf_free(&out);
}

/* The first byte: 0 a file, 1 a head, else the ticks of a block. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char head[] =
		"{\"version\":1,\"node\":\"n\",\"topology\":\"\",\"start\":0,\"period\":1,\"levels\":["
		"{\"type\":\"Machine\",\"objects\":[[0,-1,0,2]]},{\"type\":\"PU\",\"objects\":[[0,0,0,1],[1,1,1,1]]}],"
		"\"events\":[{\"name\":\"a\",\"unit\":\"\",\"kind\":\"counter\",\"level\":\"PU\"},"
		"{\"name\":\"b\",\"unit\":\"\",\"kind\":\"gauge\",\"level\":\"Machine\"}]}";
	static const char block[] = "\0\1\1\1\1\1\1\1\0\0\0\0\0\0\0\0";
	const char *bytes = (const char *) data + 1;

	if (!size)
		return 0;
	switch (data[0]) {
	case 0:
		read_all(bytes, size - 1);
		break;
	case 1:
		read_chunks(bytes, size - 1, block, sizeof(block), 1);
		break;
	default:
		read_chunks(head, sizeof(head) - 1, bytes, size - 1, data[0] - 1);
	}
	return 0;
}
