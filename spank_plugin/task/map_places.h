/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/err.h"
#include "base/number.h"

/*
 * TOPIARY_PLACES and TOPIARY_BLOCK_PLACES, the rank map in the job's environment (map/rankfile/rankfile.h). For
 * masks.c and launchers.c.
 */

/* The kernel's limit for one variable (MAX_ARG_STRLEN). */
enum { MAP_PLACES_MAX = 128 << 10, MAP_PLACES_MAX_CORE = 65535 };

/*
 * Parse the cores of one host's tasks from "cn1:0,2-3+5/cn2:1": tasks are separated by ',', their runs of cores by
 * '+'. Calls each(data, task, first, last) for each run of cores, tasks from 0. The number of tasks, 0 where the host
 * is not in the text, or -1 with an error: bad text, or each failed.
 */
typedef int map_places_fn(void *data, unsigned task, unsigned first, unsigned last, struct err *e);
static inline int map_places_parse(const char *places, const char *host, map_places_fn *each, void *data,
	struct err *e)
{
	const char *at = places;
	unsigned first, last, task = 0;
	size_t len = strlen(host);

	for (; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (!strncmp(at, host, len) && at[len] == ':')
			break;
	}
	if (!at)
		return 0;
	for (at += len + 1;; at++) {
		if (number_read_range(&at, MAP_PLACES_MAX_CORE, &first, &last) || (*at && !strchr("+,/", *at)))
			return err_set(e, *at ? "the rank map (TOPIARY_PLACES) has a syntax error at '%.20s'" :
					       "the rank map (TOPIARY_PLACES) ends in a syntax error", at);
		if (each(data, task, first, last, e))
			return -1;
		if (!*at || *at == '/')
			return task + 1;
		task += *at == ',';
	}
}
