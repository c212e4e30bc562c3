/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/*
 * Slurm's host list expressions (slurm.conf(5), NodeName), for lists as long as a large cluster: libslurm's functions
 * take time quadratic in the number of ranges, and accept broken lists. Names consist of letters, digits, '.', '_' and
 * '-'; brackets contain numbers, ranges and commas, and a name may have several: "rack[0-3]n[01-48,50]".
 */
#define HOSTLIST_MAX_NAMES 1000000u
#define HOSTLIST_MAX_NAME 255u
#define HOSTLIST_MAX_BYTES (32u << 20)

/*
 * Calls each for every name of the list, in order, including duplicates. 0, or -1 with an error: an invalid host list,
 * more than HOSTLIST_MAX_NAMES names, names that exceed the list's own text by more than HOSTLIST_MAX_BYTES, or each
 * returned -1 (with or without setting e); each may have been called for some names by then. A few bytes of text can
 * expand to that much: a list from an untrusted source is matched against the known names instead (hostset).
 */
int hostlist_expand(const char *list, int (*each)(const char *name, void *user), void *user, struct err *e);

/* The same for several lists, which share these limits: initialise with {0}. */
struct hostlist_usage {
	size_t names, bytes, text;
};
int hostlist_expand_more(const char *list, struct hostlist_usage *usage, int (*each)(const char *name, void *user),
			 void *user, struct err *e);

/*
 * Appends the names of a list, with commas or brackets or both, to out as a sorted expression without duplicates. 0 or
 * -1.
 */
int hostlist_fold(const char *list, struct buf *out, struct err *e);

/*
 * The one spelling of a host's name: lower case, no '.' at its end and, unless `domain`, nothing from its first '.' on.
 * False if it is a form of an address, as getaddrinfo(3) reads 10.1.2.3, 0306.19.65.2, 0xc6134102 and 3322102018.
 */
bool hostlist_name_canonical(char *name, bool domain);

/* A name in the order of sorting and folding: the text before its last number, and the number. */
struct hostlist_name {
	const char *name;		/* borrowed */
	unsigned prefix, digits;	/* bytes; of a number with too many digits the first are part of the prefix */
	unsigned long long number;
};

struct hostlist_name host_of(const char *name);
int host_compare(const void *a, const void *b);

/*
 * Folds hosts, sorted and without duplicates; `step` is the distance in bytes from one to the next, which may be in
 * larger records. Appended to out.
 */
void hosts_fold(const struct hostlist_name *first, size_t n, size_t step, struct buf *out);

/*
 * The names of a host list as ranges that are not expanded, to test whether a name is in it: memory
 * depends on the length of the text, not on the number of names. Only numbers followed by more text ("cn[1-9]-ib") need
 * a range for each value.
 */
struct hostset;

#define HOSTSET_MAX_BYTES (8u << 20)

/*
 * NULL with an error: an invalid host list, more than HOSTLIST_MAX_NAMES names, ranges that exceed its text by more
 * than HOSTSET_MAX_BYTES.
 */
struct hostset *hostset_parse(const char *list, struct err *e);
void hostset_free(struct hostset *s);	/* accepts NULL */

/* The number of names in the list, including duplicates. */
size_t hostset_names(const struct hostset *s);
bool hostset_has(const struct hostset *s, const char *name);
