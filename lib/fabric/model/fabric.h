/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "fabric/model/hierarchy.h"

/*
 * A fabric as discovered: hosts, switches, and the links between them. Imperfections are facts here, not errors: hosts
 * without a switch, several planes (sets of switches with no link between them; a host may be in several), trunks,
 * adapters whose host is unknown.
 *
 *	struct fabric *f = fabric_read(&path, 1, NULL, &e);	a file in any of the supported formats
 *	const struct hierarchy *h = f->planes[0].levels;	the network above its largest plane's hosts
 */
enum { FABRIC_NO_PLANE = ~0u };

struct fabric_node {
	char *name;		/* host: its name, or "H-GUID"; switch: unique, valid in Slurm's files */
	char *description;	/* the name in the file; NULL: the same */
	uint64_t guid;		/* of the node; 0: unknown */
	bool is_switch;
	bool named;		/* name was not derived from the GUID */
	unsigned plane;		/* of a host: that of its first link; FABRIC_NO_PLANE: no link to a switch */
	unsigned rank;		/* of a switch: cables to the nearest leaf switch, 0 for a leaf switch itself */
};

/* All links between the same two nodes, a < b. */
struct fabric_link {
	unsigned a, b;		/* into nodes */
	unsigned count;		/* cables; above 1, a trunk */
	unsigned mbps;		/* of all cables together, data rate; 0: unknown */
};

/* An InfiniBand adapter of a host: a host has one name, and each of its adapters a GUID. */
struct fabric_adapter {
	unsigned host;		/* into nodes */
	uint64_t guid, port;	/* of the adapter, of its port; 0: unknown */
};

enum fabric_kind { FABRIC_EMPTY, FABRIC_ONE_SWITCH, FABRIC_FAT_TREE, FABRIC_TORUS, FABRIC_GRAPH };

/*
 * levels: the recognised hierarchy: of a fat tree the switches by their distance, else the hops from switch to switch
 * (of a torus or a dragonfly, too; FABRIC_TORUS is one that a file of hierarchy.h states). Hosts of other planes are
 * not in it; for a host on several switches of the plane the first counts.
 */
struct fabric_plane {
	unsigned switches, hosts, links, cables;	/* links: pairs of nodes */
	enum fabric_kind kind;
	struct hierarchy *levels;			/* NULL: no hosts */
};

struct fabric {
	struct fabric_node *nodes;	/* switches first, each sorted by name */
	unsigned nnodes, nswitches;
	struct fabric_link *links;	/* sorted by a, b */
	unsigned nlinks;
	struct fabric_adapter *adapters;
	unsigned nadapters;
	struct fabric_plane *planes;	/* the one with most hosts first */
	unsigned nplanes;
	bool given;			/* the file states the levels (hierarchy.h); switches are derived */
};

/*
 * The host of each adapter for adapters whose description does not have it: a GUID of the adapter or of one of its
 * ports, and a name.
 */
struct fabric_names;
struct fabric_names *fabric_names_new(void);
void fabric_names_free(struct fabric_names *n);
int fabric_names_add(struct fabric_names *n, uint64_t guid, const char *host, struct err *e);

/*
 * Reads files into one fabric; the format of each is detected:
 *   ibnetdiscover(8), as it is and with -p (also with its verbose output, as in hwloc's collections)
 *   Omni-Path's opareport(8) -o links
 *   lldpd's lldpcli(8) -f keyvalue, of hosts: show chassis, then show neighbors; the switches are joined by lldp-top
 *   Slurm's topology.conf(5): topology/tree, topology/block of Slurm 24.11, topology/ring of 25.11
 *   Slurm's topology.yaml(5): tree, block, ring and torus3d, of several topologies the default one
 *   the format of fabric/model/hierarchy.h; such a file must be the only one
 * "-" is standard input. Several files describe one site, for example one for each subnet: hosts of one name are one
 * host. names may be NULL. NULL with an error naming file and line: not readable, unknown format, or malformed. Free
 * with fabric_free, which accepts NULL.
 */
struct fabric *fabric_read(const char *const *paths, size_t n, const struct fabric_names *names, struct err *e);
struct fabric_text {
	const char *text, *name;	/* name: of the file, for errors */
	size_t len;
};
struct fabric *fabric_parse(const struct fabric_text *texts, size_t n, const struct fabric_names *names,
			    struct err *e);
void fabric_free(struct fabric *f);

/* The number of the switch or host of that name; nnodes when there is none. */
unsigned fabric_node(const struct fabric *f, const char *name, bool is_switch);

/* "fat tree", "torus", ...: a constant. */
const char *fabric_kind_name(enum fabric_kind kind);

/* Appends its anomalies to out, a sentence a line: nothing for a fabric without any. */
void fabric_list_anomalies(const struct fabric *f, struct buf *out);
