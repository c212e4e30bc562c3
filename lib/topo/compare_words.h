/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_COMPARE_WORDS_H
#define TOPIARY_TOPO_COMPARE_WORDS_H

#include <stdbool.h>

#include "topo/compare.h"
#include "topo/tree.h"

/* What a sentence says after the object: ": memory 64 GiB -> 48 GiB". Each is appended to out. */
#define SIZE_WORDS 32
void size_words(unsigned long long bytes, char out[static SIZE_WORDS]);	/* "1.25 MiB" */
void size_tail(const char *what, unsigned long long from, unsigned long long to, struct buf *out);
void memory_tail(unsigned long long from, unsigned long long to, struct buf *out);
void value_tail(const char *what, const char *from, const char *to, struct buf *out);
void fact_tail(const char *name, const char *from, const char *to, struct buf *out);

enum severity fact_severity(const char *name, const char *from, const char *to);
enum direction fact_direction(const char *name, const char *from, const char *to);
/* Numbers shrink or grow, a value that is empty on one side came or went. */
enum direction value_direction(const char *from, const char *to);

/*
 * Sentences as they are found. Those that say the same of cores 16, 17, 18 and 19 become one of "cores 16-19" in the end.
 */
struct remark {
	struct change c;	/* words: what follows the object */
	const char *kind;	/* "core": what number counts; NULL where the object's name is no number */
	unsigned long number;
	size_t order;		/* in the document */
};

struct remarks {
	struct remark *list;
	size_t n, cap;
	bool failed;
};

/* One more: label is the object's; kind may be NULL; strings are copied, tail is taken and emptied. */
void remark_add(struct remarks *r, enum severity s, enum direction d, size_t order, const char *kind, const char *label,
		const char *what, const char *from, const char *to, struct buf *tail);

/* Fold, sort and take them all. 0, or -1 when memory is short; r is empty afterwards. */
int remarks_take(struct remarks *r, struct changes *out);

#endif
