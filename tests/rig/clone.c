/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/* clone TEMPLATE NUMBER: one more node of a template of tests/rig/clones.py, its XML on standard output. */
#include "base/file.h"
#include "bench/clones.h"

int main(int argc, char **argv)
{
	struct buf text = {0}, out = {0};
	struct clones *c = NULL;
	struct err e = {"usage: clone TEMPLATE NUMBER"};
	int rc;

	if (argc != 3 || file_read(argv[1], 64 << 20, &text, &e) || !(c = clones_new(text.data, argv[1], &e))) {
		fprintf(stderr, "clone: %s\n", e.text);
		return 1;
	}
	clones_make(c, strtoul(argv[2], NULL, 10), 0, &out);
	clones_free(c);
	rc = out.failed || fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout);
	buf_free(&text);
	buf_free(&out);
	return rc;
}
