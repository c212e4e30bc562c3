/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include "call.h"

/*
 * What route.c runs for each route, by the file that has it. Every function fills the reply. Those that admit run
 * before the body is read: 0, or -1 with the reply filled.
 */

/* --- exports.c: PUT /v1/nodes/NAME/boot and .../topology, sent by topiary-agent --- */

int export_admit(struct call *c);
int export_admit_document(struct call *c);
/* These finish their requests themselves (struct call). */
void export_boot(struct call *c);
void export_topology(struct call *c);

/*
 * --- admin.c: POST /v1/nodes/NODE/accept: accept the node's present topology as a baseline ---
 *
 * It becomes the baseline of a new class, and the node no longer drifts. Nodes of its former class with the same drift,
 * which differ from it in identity alone, follow soon (upkeep_steps.h), so a change of the whole cluster is accepted
 * once. Nodes that do not drift stay; accepting one changes nothing. Signed by an administrator (admin_check) for
 * CLAIM_ACCEPT with the hash of the accepted document.
 */
void accept_node(struct call *c);

/*
 * --- admin.c, too: POST /v1/nodes/NODE/forget: remove a decommissioned node with all that is stored of it ---
 *
 * Bases and classes that nothing else uses are deleted by upkeep. A node that exports again is a new one. Signed by an
 * administrator (admin_check) for CLAIM_FORGET with the hash of its current document.
 */
void forget_node(struct call *c);

/*
 * --- admin.c: POST /v1/fsck and /v1/fsck/repair: check a batch of stored documents (fsck.h) ---
 *
 * From ?after=, which is `next` of the previous reply. Signed by an administrator (admin_check) with FSCK_CLAIM or
 * FSCK_REPAIR_CLAIM in place of a node and the hash of the text of `after`.
 */
#define FSCK_CLAIM "fsck"
#define FSCK_REPAIR_CLAIM "fsck-repair"
void fsck_post(struct call *c);

/*
 * --- costs_fabric.c: PUT /v1/nodes/NODE/costs: what `topiary bench node --json` printed on the node ---
 *
 * A false measurement marks nodes as slow and misplaces ranks, so that it is accepted as an export is, from root of the
 * node itself, or from an administrator (admin_check).
 */
#define COSTS_ZSTD_MAX (256u << 10)	/* bytes of the body */
int costs_admit(struct call *c);
void costs_put(struct call *c);

/* CostsFile; the values of one node are in reads.c. */
void costs_read(struct call *c);

/*
 * --- costs_fabric.c: PUT /v1/fabric: import the present fabric (fabric/read/json.h), and GET, open to all ---
 *
 * Stored as a new version when it differs from the last. Signed by an administrator (admin_check) with FABRIC_CLAIM in
 * place of a node.
 */
#define FABRIC_CLAIM "fabric"
#define FABRIC_JSON_MAX ((size_t) 32 << 20)	/* bytes; 50,000 hosts take half of it */
void fabric_put(struct call *c);
void read_fabric(struct call *c);
void read_fabric_levels(struct call *c);
void read_fabric_history(struct call *c);

/* --- reads.c: GET of whole documents: a node's present or former topology, its history with changes --- */

void read_topology(struct call *c);
void read_history(struct call *c);

/* --- reads.c: GET of nodes, facts, drift, shapes and classes from PostgreSQL's views (sql/0002_views.sql) --- */

void read_nodes(struct call *c);
void read_node(struct call *c);
void read_node_facts(struct call *c);
void read_node_drift(struct call *c);
void read_node_costs(struct call *c);
void read_facts(struct call *c);
void read_drift(struct call *c);
void read_shapes(struct call *c);
void read_classes(struct call *c);
void read_snapshot(struct call *c);

/* --- access.c, route.c: who may do or read what, and the parameters of a request --- */

/*
 * Admit an administrator's request: signed for the route's purpose by one of Admins or the user who runs topiaryd,
 * recently, for c->node, and sent from the registry's own host (peer_is_here) or one of AdminHosts: root of any node
 * can sign as any user. The route's `what` completes the refusal: "accept a node". 0, or -1 with the reply filled. May
 * wait for the resolver.
 */
int admin_admit(struct call *c);

/* Is the verified claim about c->node, and recent? For requests of any user. 0, or -1 with the reply filled. */
int admin_check_claim(struct call *c);

/*
 * A query about c->node whose last column is the hash of its document: that which the claim was signed for. NULL with
 * the reply filled.
 */
PGresult *admin_query_node(struct call *c, struct db *db, const char *sql);

/* Checks user and host alone, after the credential was verified; fills no reply. */
bool admin_check(struct call *c);

/*
 * Access control of reads. A GET may carry a credential signed for CLAIM_READ and the node in the path, or ACCESS_CLAIM
 * where the path has none. Without one the reader is anonymous; with one it is a user, or an administrator. What
 * Linux shows to root alone (hwxml/redact.h) goes to administrators only, unless PublishSerials is yes; ReadFacts
 * selects who may read facts. Each returns 0, or -1 with the reply filled.
 */
#define ACCESS_CLAIM "registry"
int access_admit(struct call *c);
int access_admit_facts(struct call *c);
/* The same for one fact, by its name as it is stored. */
int access_admit_fact(struct call *c, const char *fact);

/* Whether the reader may see what is redacted for others. */
bool access_sees_serials(const struct call *c);

/*
 * Add a parameter of the query string to the call: one of `known` (names separated by blanks), at most once, with a
 * value valid as in docs/openapi.yaml. 0, or -1 with the reply filled. value may hold NUL bytes; NULL when there is no
 * '='.
 */
int query_add_param(struct call *c, const char *known, const char *name, const char *value, size_t len);

/*
 * The parameter hosts as a PostgreSQL text[], appended to out, which stays empty without it. 0, or -1 with the reply
 * filled.
 */
int query_hosts(struct call *c, struct buf *out);
