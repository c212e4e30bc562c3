/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_PLACE_COSTS_H
#define TOPIARY_CLI_PLACE_COSTS_H

#include <stdbool.h>

#include "cmd.h"
#include "base/string_map.h"

/*
 * The costs within nodes that topiary map uses, in lines as in CostsFile, which topiaryd writes:
 *
 *	# a comment
 *	cn[001-128] node=100,package=38.5,...,core=2,0-1=12
 *	* l3=8
 *
 * A host list and costs as places_costs reads them; an asterisk is all other nodes. Called by map.c; place.c asks for
 * each node.
 */
struct costs {
	char *text;			/* cut into pieces */
	struct string_map names;
	const char **of;		/* by the number of the name; borrowed from text */
	const char *others;		/* of nodes without own costs, or NULL */
	const char *source;		/* for the user, in words: "--costs", a path, ... */
	bool is_published;		/* by the registry: costs that do not fit a node are left out */
	unsigned used, without;		/* nodes that had costs here, and that had none */
	unsigned rejected;
};

/* NULL: what the registry published, if anything. 0, or -1 with an error; free in either case. */
int costs_load(const struct cmd *c, const char *option, struct costs *out, struct err *e);
void costs_free(struct costs *c);

/* Counts the node in used or without. NULL: the costs of the levels by default. */
const char *costs_of(struct costs *c, const char *node);

/*
 * The costs of the node do not fit its hardware, for the reason in why: true if it shall have default costs, which is
 * logged for the first, false if that is an error.
 */
bool costs_reject(struct costs *c, const struct err *why);

/* "within nodes: of 3 nodes from /var/lib/topiary/costs, default for 1 node" */
void costs_describe(const struct costs *c, struct buf *out);

#endif
