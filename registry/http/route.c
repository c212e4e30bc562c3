/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "server_parts.h"

#include <stdio.h>
#include <string.h>

#include "handlers.h"
#include "metrics.h"
#include "peer.h"
#include "readiness.h"

#define BODY_MAX (4u << 20)	/* of zstd: four times the usual size of the largest XML allowed */

__asm__(".section .rodata\n"
	"openapi_begin:\n"
	".incbin \"docs/openapi.yaml\"\n"
	"openapi_end:\n"
	".previous\n");
extern const char openapi_begin[], openapi_end[];

/* docs/openapi.yaml of this version, linked into the program. */
static void read_openapi(struct call *c)
{
	struct buf text = {0};

	buf_add(&text, openapi_begin, openapi_end - openapi_begin);
	call_body(c, "application/yaml", &text);
}

static const struct route routes[] = {
	{ "PUT", "/v1/nodes/*/boot", NULL, export_admit, peer_admit, export_boot, 0, CLAIM_EXPORT },
	{ "PUT", "/v1/nodes/*/topology", NULL, export_admit_zstd, peer_admit, export_topology, BODY_MAX, CLAIM_EXPORT },
	{ "POST", "/v1/nodes/*/accept", NULL, accept_admit, NULL, accept_node, 0, CLAIM_ACCEPT },
	{ "POST", "/v1/nodes/*/forget", NULL, forget_admit, NULL, forget_node, 0, CLAIM_FORGET },
	{ "POST", "/v1/fsck", "after", fsck_admit, NULL, fsck_post, 0, CLAIM_FSCK },
	{ "POST", "/v1/fsck/repair", "after", fsck_repair_admit, NULL, fsck_post, 0, CLAIM_FSCK },
	{ "GET", "/v1/nodes", "hosts shape class drift", NULL, NULL, read_nodes, 0, NULL },
	{ "GET", "/v1/nodes/*", NULL, NULL, NULL, read_node, 0, NULL },
	{ "GET", "/v1/nodes/*/topology", "at form", access_admit, NULL, read_topology, 0, CLAIM_READ },
	{ "GET", "/v1/nodes/*/history", "limit", access_admit, NULL, read_history, 0, CLAIM_READ },
	{ "GET", "/v1/nodes/*/facts", "fact", access_admit_facts, NULL, read_node_facts, 0, CLAIM_READ },
	{ "GET", "/v1/nodes/*/drift", NULL, NULL, NULL, read_node_drift, 0, NULL },
	{ "PUT", "/v1/nodes/*/costs", NULL, costs_admit, costs_admit_peer, costs_put, COSTS_ZSTD_MAX, CLAIM_COSTS },
	{ "GET", "/v1/nodes/*/costs", NULL, NULL, NULL, read_node_costs, 0, NULL },
	{ "GET", "/v1/costs", NULL, NULL, NULL, costs_read, 0, NULL },
	{ "GET", "/v1/drift", "severity", NULL, NULL, read_drift, 0, NULL },
	{ "GET", "/v1/facts", "fact hosts value", access_admit_facts, NULL, read_facts, 0, CLAIM_READ },
	{ "GET", "/v1/shapes", NULL, NULL, NULL, read_shapes, 0, NULL },
	{ "GET", "/v1/classes", NULL, NULL, NULL, read_classes, 0, NULL },
	{ "PUT", "/v1/fabric", NULL, fabric_admit, NULL, fabric_put, BODY_MAX, CLAIM_FABRIC },
	{ "GET", "/v1/fabric", "at", NULL, NULL, read_fabric, 0, NULL },
	{ "GET", "/v1/fabric/history", "limit", NULL, NULL, read_fabric_history, 0, NULL },
	{ "GET", "/v1/fabric/levels", NULL, NULL, NULL, read_fabric_levels, 0, NULL },
	{ "GET", "/v1/snapshot", NULL, NULL, NULL, read_snapshot, 0, NULL },
	{ "GET", "/v1/openapi.yaml", NULL, NULL, NULL, read_openapi, 0, NULL },
	{ "GET", "/metrics", NULL, NULL, NULL, read_metrics, 0, NULL },
	{ "GET", "/healthz", NULL, NULL, NULL, read_health, 0, NULL },
	{ "GET", "/livez", NULL, NULL, NULL, read_alive, 0, NULL },
	{ "GET", "/readyz", NULL, NULL, NULL, read_ready, 0, NULL },
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

bool route_is_health(const struct route *r)
{
	return r->handle == read_alive || r->handle == read_health || r->handle == read_ready;
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

/* Add to the methods that the path allows. */
static void allow_method(struct call_reply *r, const char *method)
{
	size_t len = strlen(r->allow);

	snprintf(r->allow + len, sizeof(r->allow) - len, "%s%s%s", len ? ", " : "", method,
		 strcmp(method, "GET") ? "" : ", HEAD");
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
		allow_method(&c->reply, routes[i].method);
	}
	if (*c->reply.allow)
		call_fail(c, 405, "method %.20s is not allowed for this path", method);
	else
		call_fail(c, 404, "no such path");
	return NULL;
}
