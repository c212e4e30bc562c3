/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "score/verdict.h"

/* What a line says comes back from the line that says it. */
static void check_again(const struct verdict *v)
{
	struct buf line = {0}, again = {0};
	struct verdict same;
	struct err e;

	verdict_write(v, &line);
	if (verdict_read(line.data, &same, &e))
		abort();
	verdict_write(&same, &again);
	if (strcmp(line.data, again.data))
		abort();
	buf_free(&line);
	buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *comment = strndup((const char *) data, size);
	struct request r = {0};
	size_t start = 0, len = 0;
	struct verdict v;
	struct err e;

	if (!comment)
		return 0;
	if (!verdict_find(comment, &start, &len) && start + len > strlen(comment))
		abort();
	if (!verdict_read(comment, &v, &e))
		check_again(&v);
	request_comment(&r, comment, &e);
	free(comment);
	return 0;
}
