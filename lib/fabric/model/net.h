/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "fabric/model/fabric.h"

/* A link of a host, less nswitches, to a switch; both indices of the fabric. */
struct net_host_end {
	unsigned host, of;
};

/*
 * The switches of one plane as a graph, numbered from 0 in the fabric's order: the input of the recognisers. Leaf
 * switches that share their hosts, as the rails of a group of nodes do, are one.
 */
struct net {
	const struct fabric *fabric;
	unsigned n;
	unsigned *node;			/* of each switch: its index in the fabric, the first of those that are one */
	unsigned *of;			/* of each switch of the fabric: its number here; NET_NONE: of another plane */
	struct net_host_end *ends;		/* of the plane's hosts, sorted */
	unsigned nends;
	unsigned *row, *adj, *link;	/* neighbours adj[row[i]] .. adj[row[i + 1] - 1], one a link, and the links */
	unsigned *hosts;		/* of each switch: the hosts at home there */
	unsigned *home;			/* of each host, fabric index less nswitches: that switch, or NET_NONE */
	bool *leaf;			/* has hosts and is not a spine */
	unsigned nleaves;
};

#define NET_NONE (~0u)

int net_make(const struct fabric *f, unsigned plane, struct net *out);
void net_free(struct net *n);

/*
 * Marks leaf switches: those with hosts, and at least half as many as each neighbour, or, if `any`, as any other
 * switch.
 */
void net_find_leaves(struct net *n, bool any);

const char *net_name(const struct net *n, unsigned s);

/* Hops from a switch to all others. queue: room for n. */
void net_hops(const struct net *n, unsigned from, unsigned *hops, unsigned *queue);

/*
 * Adds the hosts of each switch below its group (NET_NONE: none); at[s * HIERARCHY_LEVELS] is the position of switch s.
 * 0 or -1.
 */
int net_add_hosts(const struct net *n, struct hierarchy *h, const unsigned *group, const unsigned *at);

enum { COST_HOST = 100, COST_CLIMB = 100, COST_HOP = 200 };

/*
 * Numbers the planes of a fabric with complete nodes and links, most hosts first, and fills in everything but their
 * kind. 0 or -1 (memory).
 */
int planes_find(struct fabric *f);
