/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_HWCMP_COMPARE_WORDS_H
#define TOPIARY_HWCMP_COMPARE_WORDS_H

#include <stdbool.h>

#include "hwcmp/compare.h"
#include "hwxml/tree.h"

/* The part of a sentence after the object: ": memory 64 GiB -> 48 GiB". Appended to out. */
#define SIZE_TEXT 32
void compare_size_format(unsigned long long bytes, char out[static SIZE_TEXT]);	/* "1.25 MiB" */
void compare_size_tail(const char *what, unsigned long long from, unsigned long long to, struct buf *out);
void compare_memory_tail(unsigned long long from, unsigned long long to, struct buf *out);
void compare_value_tail(const char *what, const char *from, const char *to, struct buf *out);
void compare_fact_tail(const char *name, const char *from, const char *to, struct buf *out);

/* Equal as text, or as numbers of which one has hwloc 3's unit: "4194304" and "4194304KiB". */
bool compare_fact_equal(const char *from, const char *to);
enum severity compare_fact_severity(const char *name, const char *from, const char *to);
enum change_direction compare_fact_direction(const char *name, const char *from, const char *to);
/* Compares numbers; a value that is empty on one side is new or gone. */
enum change_direction compare_value_direction(const char *from, const char *to);

/*
 * Differences as they are found. Equal ones of cores 16, 17, 18 and 19 are merged into one of "cores 16-19" at the end.
 */
struct compare_remark {
	struct change c;	/* words: the part after the object */
	const char *kind;	/* "core": what number counts; NULL when the object's name is not a number */
	unsigned long number;
	size_t order;		/* in the document */
};

struct compare_remarks {
	struct compare_remark *list;
	size_t n;
	bool failed;
};

/* label: the object's; kind may be NULL. Copies the strings, takes ownership of tail and empties it. */
void compare_remark_add(struct compare_remarks *r, enum severity s, enum change_direction d, size_t order,
			const char *kind, const char *label, const char *what, const char *from, const char *to,
			struct buf *tail);

/* Merge and sort the remarks into *out. 0, or -1 when memory is short; r is empty afterwards. */
int compare_remarks_finish(struct compare_remarks *r, struct changes *out);

#endif
