/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_TOPO_FIELDS_H
#define TOPIARY_TOPO_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Nodes bought together export the same text but for a few values: names, serial numbers, addresses, some bytes of memory. Those places
 * of a base's text are its fields; of each further node only what stands in them is kept. The rest of the two texts is equal byte for
 * byte, so that a text that differs in fields alone is as valid as its base, and has the same shape: no parser is needed to know it.
 *
 * A field is the value of one attribute in one line, and only of those that decide nothing about the tree: `value` of <info>, `count`
 * of <page_type>, `local_memory` of <object>. There is at most one in a line. What a node may write there: digits, for a count and
 * a memory; valid UTF-8 without control characters, '<', '>', '"' and '&' for an <info>. A memory must round to the same size as the
 * base's (memory_nominal), else the node has lost or gained some, which is no small difference.
 *
 * A form tells, for a base, where the fields are and what is shared in them. It is learned from the nodes: each that does not fit
 * widens it, and a form that is widened still takes all that it took before.
 *
 * What an earlier field tells, its alias need not keep: middles that are equal in every node (or, of hex, their digits: a GUID and the
 * address made of it), and a count of pages whose alias is a local_memory, because the kernel counts the pages from it.
 */
struct field {
	unsigned line;			/* of the base's text, from 0 */
	unsigned start, len;		/* the base's value: bytes from the start of that line */
	unsigned keep_start, keep_end;	/* bytes that every node has in common at its two ends */
	int alias;			/* an earlier field that tells this one, which keeps nothing then; or -1 */
	bool fixed;			/* the middle is ASCII and as long as the base's in every node */
	unsigned digits;		/* of 0-9a-f in the middle, if it is fixed and nothing else differs in any node (hex); else 0 */
};

#define FORM_MAX 1024	/* fields: what differs in more is no twin */

struct form {
	struct field *fields;	/* in the order of their lines */
	size_t n;
};

void form_free(struct form *f);

/* A text cut in lines, for many comparisons: text is borrowed. 0, or -1 when memory is short or the text longer than 4 GiB. */
struct lined {
	const char *text;
	size_t len;
	unsigned *starts;	/* starts[count + 1]: of each line, and the end */
	unsigned count;
};
int lined_make(const char *text, size_t len, struct lined *out);
void lined_free(struct lined *l);

/*
 * Does doc differ from base in what fields may hold, and nothing else? 0: *form is form widened (form may be empty) until doc fits,
 * and *widened tells whether anything changed. 1: it differs in more. -1: memory is short. Out-parameters untouched unless 0.
 */
int form_learn(const struct form *form, const struct lined *base, const char *doc, size_t len, struct form *out, bool *widened);

/*
 * What is kept of doc: the digits of the hex fields, two a byte, the last padded with 0; the middles of the other fixed fields one
 * after another; those of the others, each ended by a newline. Of an alias nothing. 0, 1 when doc does not fit the form, -1 when
 * memory is short. Appends to out.
 */
int form_encode(const struct form *form, const struct lined *base, const char *doc, size_t len, struct buf *out);

/*
 * The document again: appended to out. 0, or -1 with an error when diff is none of this form, or this form none of base; at most max
 * bytes come out, none on an error. What comes out is a text that the form takes, whatever is in diff: whether it is the one that
 * went in, the caller's hash tells.
 */
int form_decode(const struct form *form, const struct lined *base, const char *diff, size_t diff_len, size_t max, struct buf *out,
		struct err *e);

/*
 * Where the middle of field i stands in what form_encode wrote: for SQL, which takes it from there. A hex one: *at is the first of its
 * *width digits in encode(diff, 'hex'), from 0; they replace the digits in the base's middle one by one. Another fixed one: *at is its
 * offset in bytes from 0, *width its bytes. Else *width is 0, and it is the *ordinal-th line (from 1) of those that begin at *at;
 * of fixed ones *ordinal is 0. An alias has the place of the field that tells it (of pages, the memory's).
 */
void form_place(const struct form *form, size_t i, unsigned *at, unsigned *width, unsigned *ordinal);

/*
 * The size of memory that was built in, from what the kernel left of it: rounded up to a sixteenth of the next power of two
 * (134756204544 gives 128 GiB, 201 GB gives 192 GiB). 0 gives 0.
 */
unsigned long long memory_nominal(unsigned long long bytes);

#endif
