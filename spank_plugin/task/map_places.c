/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "map_places.h"

#include <string.h>

#include "base/number.h"

enum { MAX_CORE = 65535 };

/* The text after "HOST:", or NULL. */
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

int map_places_parse(const char *places, const char *host, map_places_fn *each, void *data, struct err *e)
{
	const char *at = find_host(places, host);
	unsigned first, last, task = 0;

	if (!at)
		return 0;
	for (;; at++) {
		if (number_read_range(&at, MAX_CORE, &first, &last) || (*at && !strchr("+,/", *at)))
			return err_set(e, *at ? "the rank map (TOPIARY_PLACES) has a syntax error at '%.20s'" :
					       "the rank map (TOPIARY_PLACES) ends in a syntax error", at);
		if (each(data, task, first, last, e))
			return -1;
		if (!*at || *at == '/')
			return task + 1;
		task += *at == ',';
	}
}
