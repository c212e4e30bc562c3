/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "route.h"

#include <stdio.h>
#include <string.h>

#include "accept.h"
#include "documents.h"
#include "fabric_serve.h"
#include "ingest.h"
#include "metrics.h"
#include "openapi.h"
#include "peer.h"
#include "query.h"
#include "reads.h"

#define BODY_MAX (4u << 20)	/* of zstd: four times what the largest XML allowed usually becomes */

static const struct route routes[] = {
	{ "PUT", "/v1/nodes/*/boot", NULL, ingest_admit, peer_admit, ingest_boot, 0 },
	{ "PUT", "/v1/nodes/*/topology", NULL, ingest_admit_zstd, peer_admit, ingest_topology, BODY_MAX },
	{ "POST", "/v1/nodes/*/accept", NULL, accept_admit, NULL, accept_node, 0 },
	{ "GET", "/v1/nodes", "hosts shape class drift", NULL, NULL, read_nodes, 0 },
	{ "GET", "/v1/nodes/*", NULL, NULL, NULL, read_node, 0 },
	{ "GET", "/v1/nodes/*/topology", "at form", NULL, NULL, read_topology, 0 },
	{ "GET", "/v1/nodes/*/history", "limit", NULL, NULL, read_history, 0 },
	{ "GET", "/v1/nodes/*/facts", "fact", NULL, NULL, read_node_facts, 0 },
	{ "GET", "/v1/nodes/*/drift", NULL, NULL, NULL, read_node_drift, 0 },
	{ "GET", "/v1/drift", "severity", NULL, NULL, read_drift, 0 },
	{ "GET", "/v1/facts", "fact hosts value", NULL, NULL, read_facts, 0 },
	{ "GET", "/v1/shapes", NULL, NULL, NULL, read_shapes, 0 },
	{ "GET", "/v1/classes", NULL, NULL, NULL, read_classes, 0 },
	{ "PUT", "/v1/fabric", NULL, fabric_admit, NULL, fabric_put, BODY_MAX },
	{ "GET", "/v1/fabric", "at", NULL, NULL, read_fabric, 0 },
	{ "GET", "/v1/fabric/history", "limit", NULL, NULL, read_fabric_history, 0 },
	{ "GET", "/v1/fabric/levels", NULL, NULL, NULL, read_fabric_levels, 0 },
	{ "GET", "/v1/snapshot", NULL, NULL, NULL, read_snapshot, 0 },
	{ "GET", "/v1/openapi.yaml", NULL, NULL, NULL, read_openapi, 0 },
	{ "GET", "/metrics", NULL, NULL, NULL, read_metrics, 0 },
	{ "GET", "/healthz", NULL, NULL, NULL, read_health, 0 },
};
#define ROUTES (sizeof(routes) / sizeof(routes[0]))

const struct route *route_at(size_t i)
{
	return i < ROUTES ? &routes[i] : NULL;
}

size_t route_number(const struct route *r)
{
	return r ? (size_t) (r - routes) : ROUTES;
}

static bool path_matches(const char *pattern, const char *path, char node[static 256])
{
	for (; *pattern && *pattern != '*'; pattern++, path++)
		if (*pattern != *path)
			return false;
	if (*pattern) {
		size_t len = strcspn(path, "/");

		if (!len || len > 255 || strcmp(pattern + 1, path + len))
			return false;
		memcpy(node, path, len);
		node[len] = '\0';
		return true;
	}
	return !*path;
}

/* To the methods that are possible where the one asked for is not. */
static void allow(struct reply *r, const char *method)
{
	size_t len = strlen(r->allow);

	snprintf(r->allow + len, sizeof(r->allow) - len, "%s%s%s", len ? ", " : "", method, strcmp(method, "GET") ? "" : ", HEAD");
}

const struct route *route_find(struct call *c, const char *method, const char *path)
{
	const char *wanted = strcmp(method, "HEAD") ? method : "GET";

	for (size_t i = 0; i < ROUTES; i++) {
		if (!path_matches(routes[i].pattern, path, c->node))
			continue;
		if (!strcmp(routes[i].method, wanted)) {
			c->reply.allow[0] = '\0';
			return &routes[i];
		}
		allow(&c->reply, routes[i].method);
	}
	if (*c->reply.allow)
		call_fail(c, 405, "%.20s is not possible here", method);
	else
		call_fail(c, 404, "no such path");
	return NULL;
}
