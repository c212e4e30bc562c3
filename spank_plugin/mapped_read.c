/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mapped.h"

enum { MAX_LEAF = 65535 };

/* The text of one host behind its name, or NULL. */
static const char *find_host(const char *places, const char *host)
{
	size_t len = strlen(host);

	for (const char *at = places; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (!strncmp(at, host, len) && at[len] == ':')
			return at + len + 1;
	}
	return NULL;
}

static int read_leaf(const char **at, unsigned *leaf)
{
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char) **at))
		return -1;
	n = strtoul(*at, &end, 10);
	if (n > MAX_LEAF)
		return -1;
	*leaf = n;
	*at = end;
	return 0;
}

static int read_run(const char **at, unsigned *first, unsigned *last)
{
	if (read_leaf(at, first))
		return -1;
	*last = *first;
	if (**at != '-')
		return 0;
	++*at;
	return read_leaf(at, last) || *last < *first ? -1 : 0;
}

int mapped_read(const char *places, const char *host, mapped_fn *each, void *data, struct err *e)
{
	const char *at = find_host(places, host);
	unsigned first, last, task = 0;

	if (!at)
		return 0;
	for (;; at++) {
		if (read_run(&at, &first, &last) || (*at && !strchr("+,/", *at)))
			return err_set(e, "TOPIARY_PLACES: wrong at '%.20s'", at);
		if (each(data, task, first, last, e))
			return -1;
		if (!*at || *at == '/')
			return task + 1;
		task += *at == ',';
	}
}
