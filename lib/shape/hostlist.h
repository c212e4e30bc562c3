/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SHAPE_HOSTLIST_H
#define TOPIARY_SHAPE_HOSTLIST_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Slurm's host list expressions (slurm.conf(5), NodeName), for lists as long as a large cluster: libslurm's own take
 * time that grows with the square of the ranges, and make the best of a broken list. Names are of letters, digits, '.',
 * '_' and '-'; brackets hold numbers, ranges and commas, and there may be several in a name: "rack[0-3]n[01-48,50]".
 */
#define HOSTLIST_MAX_NAMES 1000000u
#define HOSTLIST_MAX_NAME 255u
#define HOSTLIST_MAX_BYTES (32u << 20)

/*
 * Call each for every name of the list, in its order, with doubles. 0, or -1 with an error: no host list, more than
 * HOSTLIST_MAX_NAMES names, names of more than HOSTLIST_MAX_BYTES beyond the list's own text, or each gave -1 (and
 * filled e, or not); some names may have been told by then. A few bytes of text can stand for as much as that: a list
 * from somebody else is matched against the names that are known instead (shape/hostset.h).
 */
int hostlist_expand(const char *list, int (*each)(const char *name, void *user), void *user, struct err *e);

/* The same for several lists, which together have these limits: begin with {0}. */
struct hostlist_usage {
	size_t names, bytes, text;
};
int hostlist_expand_more(const char *list, struct hostlist_usage *usage, int (*each)(const char *name, void *user),
			 void *user, struct err *e);

/*
 * Call each for every run of names that differ only in the number at their end, and that in its value but not in its
 * digits: the first name and how many there are, 1 for a name alone. Without a limit to their number: each is to have
 * one.
 */
int hostlist_runs(const char *list, int (*each)(const char *first, unsigned long long n, void *user), void *user,
		  struct err *e);

/*
 * The names of a list, of commas or brackets or both, as a sorted expression without doubles, appended to out. 0 or -1.
 */
int hostlist_fold(const char *list, struct buf *out, struct err *e);

/* A name as it is sorted and folded: what stands before its last number, and the number. */
struct host {
	const char *name;		/* borrowed */
	unsigned prefix, digits;	/* bytes; a number too long to count with is cut, its head is of the prefix */
	unsigned long long number;
};

struct host host_of(const char *name);
int host_compare(const void *a, const void *b);

/*
 * Fold hosts, sorted and without doubles, with `step` bytes from one to the next: they may stand in larger records.
 * Appended to out.
 */
void hosts_fold(const struct host *first, size_t n, size_t step, struct buf *out);

#endif
