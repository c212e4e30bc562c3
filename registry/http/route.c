/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "server_parts.h"

#include "hwxml/canon.h"
#include "shape/hostlist.h"
#include "store/costs_store.h"
#include "handlers.h"
#include "metrics.h"
#include "peer.h"
#include "readiness.h"

/*
 * Notes
 *
 * Tables and texts alone, which nobody writes: of a call, its thread (request.c).
 */
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
	{ "PUT", "/v1/nodes/*/boot", NULL, export_admit, export_boot, 0, CANON_MAX_BYTES,
	  .purpose = CLAIM_EXPORT },
	{ "PUT", "/v1/nodes/*/topology", NULL, export_admit_document, export_topology, BODY_MAX, CANON_MAX_BYTES,
	  .purpose = CLAIM_EXPORT },
	{ "POST", "/v1/nodes/*/accept", NULL, admin_admit, accept_node, 0, 0, CLAIM_ACCEPT, .what = "accept a node" },
	{ "POST", "/v1/nodes/*/forget", NULL, admin_admit, forget_node, 0, 0, CLAIM_FORGET, .what = "remove a node" },
	{ "POST", "/v1/fsck", "after", admin_admit, fsck_post, 0, 0, CLAIM_FSCK, FSCK_CLAIM, "check stored documents" },
	{ "POST", "/v1/fsck/repair", "after", admin_admit, fsck_post, 0, 0, CLAIM_FSCK, FSCK_REPAIR_CLAIM,
	  "repair stored documents" },
	{ "GET", "/v1/nodes", "hosts shape class drift", .handle = read_nodes },
	{ "GET", "/v1/nodes/*", .handle = read_node },
	{ "GET", "/v1/nodes/*/topology", "at form", access_admit, read_topology, .purpose = CLAIM_READ },
	{ "GET", "/v1/nodes/*/history", "limit", access_admit, read_history, .purpose = CLAIM_READ },
	{ "GET", "/v1/nodes/*/facts", "fact", access_admit_facts, read_node_facts, .purpose = CLAIM_READ },
	{ "GET", "/v1/nodes/*/drift", .handle = read_node_drift },
	{ "PUT", "/v1/nodes/*/costs", NULL, costs_admit, costs_put, COSTS_ZSTD_MAX, HWBENCH_JSON_MAX,
	  .purpose = CLAIM_COSTS },
	{ "GET", "/v1/nodes/*/costs", .handle = read_node_costs },
	{ "GET", "/v1/costs", .handle = costs_read },
	{ "GET", "/v1/drift", "severity", .handle = read_drift },
	{ "GET", "/v1/facts", "fact hosts value", access_admit_facts, read_facts, .purpose = CLAIM_READ },
	{ "GET", "/v1/shapes", .handle = read_shapes },
	{ "GET", "/v1/classes", .handle = read_classes },
	{ "PUT", "/v1/fabric", NULL, admin_admit, fabric_put, BODY_MAX, FABRIC_JSON_MAX, CLAIM_FABRIC, FABRIC_CLAIM,
	  "import a fabric" },
	{ "GET", "/v1/fabric", "at", .handle = read_fabric },
	{ "GET", "/v1/fabric/history", "limit", .handle = read_fabric_history },
	{ "GET", "/v1/fabric/levels", .handle = read_fabric_levels },
	{ "GET", "/v1/snapshot", .handle = read_snapshot },
	{ "GET", "/v1/openapi.yaml", .handle = read_openapi },
	{ "GET", "/metrics", .handle = read_metrics },
	{ "GET", "/healthz", .handle = read_health },
	{ "GET", "/livez", .handle = read_alive },
	{ "GET", "/readyz", .handle = read_ready },
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

const struct route *route_find(struct call *c, const char *method, const char *path)
{
	const char *wanted = strcmp(method, "HEAD") ? method : "GET";
	size_t len;

	for (size_t i = 0; i < ROUTES; i++) {
		if (!path_matches(routes[i].pattern, path, c->node))
			continue;
		if (!strcmp(routes[i].method, wanted)) {
			c->reply.allow[0] = '\0';
			return &routes[i];
		}
		len = strlen(c->reply.allow);
		snprintf(c->reply.allow + len, sizeof(c->reply.allow) - len, "%s%s%s", len ? ", " : "",
			 routes[i].method, strcmp(routes[i].method, "GET") ? "" : ", HEAD");
	}
	if (*c->reply.allow)
		call_fail(c, 405, "method %.20s is not allowed for this path", method);
	else
		call_fail(c, 404, "no such path");
	return NULL;
}

/* --- parameters of the query string --- */

#define TEXT_MAX 256	/* characters */
#define HOSTS_SENT 1000	/* longer host lists are matched here instead of being sent to PostgreSQL */

#define DIGITS "0123456789"
#define HEX DIGITS "abcdef"
#define ALPHANUM "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" DIGITS
#define HOSTS ALPHANUM "._,[]-"

/* How a value must look; the members that each validator uses. */
struct value_rule {
	const char *head, *bytes;	/* prefix; characters allowed after it */
	size_t min, max;		/* length of the rest; for numbers the value itself */
	const char *words;
};

/* Without control characters, and valid UTF-8, as PostgreSQL requires: jansson accepts no other. */
static bool is_text(const char *value, const struct value_rule *)
{
	json_t *utf8 = json_string(value);
	bool valid = utf8;
	size_t n = 0;

	for (const char *p = value; *p && valid; p++) {
		valid = (unsigned char) *p >= ' ' && *p != 0x7f;
		n += (*p & 0xc0) != 0x80;
	}
	json_decref(utf8);
	return valid && n && n <= TEXT_MAX;
}

static bool word_listed(const char *known, const char *name)
{
	size_t len = strlen(name), n;

	for (const char *p = known; *p; p += n + (p[n] == ' ')) {
		n = strcspn(p, " ");
		if (n && n == len && !memcmp(p, name, n))
			return true;
	}
	return false;
}

static bool is_word(const char *value, const struct value_rule *f)
{
	return word_listed(f->words, value);
}

/* The rest after the prefix, or NULL. */
static const char *after_prefix(const char *value, const char *head)
{
	size_t len = strlen(head);

	return strncmp(value, head, len) ? NULL : value + len;
}

static bool is_string_of(const char *value, const struct value_rule *f)
{
	const char *rest = after_prefix(value, f->head);
	size_t len = rest ? strspn(rest, f->bytes) : 0;

	return rest && !rest[len] && len >= f->min && len <= f->max;
}

static bool is_number(const char *value, const struct value_rule *f)
{
	const char *rest = after_prefix(value, f->head);
	size_t len = rest ? strspn(rest, DIGITS) : 0;

	return len && len < 10 && !rest[len] && *rest != '0' && strtoul(rest, NULL, 10) <= f->max;
}

/* As in docs/openapi.yaml. */
static const struct param_type {
	const char *name;
	bool (*valid)(const char *value, const struct value_rule *f);
	const struct value_rule *rule;
	const char *wanted;
} param_types[] = {
#define RULE(...) &(const struct value_rule){ __VA_ARGS__ }
	{ "hosts", is_string_of, RULE("", HOSTS, 1, 4096, NULL), "a host list" },
	{ "shape", is_string_of, RULE("s", HEX, 8, 8, NULL), "a shape, 's' and eight hexadecimal digits" },
	{ "class", is_number, RULE("c", NULL, 1, 999999999, NULL), "a class, 'c' and a number" },
	{ "drift", is_word, RULE(.words = "cosmetic wiring slow capacity any"),
	  "cosmetic, wiring, slow, capacity or any" },
	{ "severity", is_word, RULE(.words = "cosmetic wiring slow capacity"), "cosmetic, wiring, slow or capacity" },
	{ "form", is_word, RULE(.words = "canonical"), "canonical" },
	{ "limit", is_number, RULE("", NULL, 1, 1000, NULL), "a number from 1 to 1000" },
	{ "after", is_string_of, RULE("", ALPHANUM "._-/:+ ", 1, 400, NULL),
	  "the value of next in the previous reply" },
	{ "at", is_text, NULL, "a time" },
	{ "fact", is_text, NULL, "a fact's name" },
	{ "value", is_text, NULL, "a fact's value" },
};

int query_add_param(struct call *c, const char *known, const char *name, const char *value, size_t len)
{
	const struct param_type *k = param_types, *end = k + sizeof(param_types) / sizeof(param_types[0]);

	while (k < end && strcmp(k->name, name))
		k++;
	if (k == end || !known || !word_listed(known, name))
		return call_fail(c, 400, "unknown parameter '%.100s'%s%s", name, known ? "; allowed: " : "",
				 known ? known : "");
	if (!value || strlen(value) != len || !k->valid(value, k->rule))
		return call_fail(c, 400, "%s: expected %s", name, k->wanted);
	if (call_param(c, name) || c->nparams == PARAMS_MAX)
		return call_fail(c, 400, "%s: given more than once", name);
	c->params[c->nparams++] = (struct call_parameter){ k->name, value };
	return 0;
}

struct host_query {
	const struct call *call;
	struct buf *out;
};

static int add_name(const char *name, void *user)
{
	const struct host_query *q = user;
	char node[HOSTLIST_MAX_NAME + 1];

	snprintf(node, sizeof(node), "%s", name);
	db_array_text(q->out, call_node_canonical(q->call, node) ? node : name);
	return 0;
}

/* Names of nodes in the registry that a list of up to a million hosts contains. */
static int add_known(struct call *c, const struct hostset *wanted, struct buf *out)
{
	struct db *db = call_acquire_reader(c);
	struct err e;
	PGresult *r = db ? db_query(db, &e, "SELECT name FROM node", 0, NULL) : NULL;
	int rc = r ? 0 : -1;

	if (db && !r)
		call_fail(c, 503, "%s", e.text);
	for (int i = 0; r && i < PQntuples(r); i++)
		if (hostset_has(wanted, PQgetvalue(r, i, 0)))
			db_array_text(out, PQgetvalue(r, i, 0));
	PQclear(r);
	db_release(db);
	return rc;
}

int query_hosts(struct call *c, struct buf *out)
{
	const char *hosts = call_param(c, "hosts");
	struct host_query query = { c, out };
	struct hostset *wanted;
	struct err e;
	int rc = 0;

	if (!hosts)
		return 0;
	if (!(wanted = hostset_parse(hosts, &e)))
		return call_fail(c, 400, "hosts: %s", e.text);
	if (hostset_names(wanted) > HOSTS_SENT)
		rc = add_known(c, wanted, out);
	else if (hostlist_expand(hosts, add_name, &query, &e))
		rc = call_fail(c, 400, "hosts: %s", e.text);
	hostset_free(wanted);
	db_array_end(out);
	return rc == 0 && out->failed ? call_fail(c, 503, "out of memory") : rc;
}

/* --- replies --- */

/* Is the entity tag in an If-None-Match list, by weak comparison? */
static bool list_has(const char *list, const char *tag)
{
	size_t len = strlen(tag), n;

	for (list += strspn(list, " \t,"); *list; list += n + strspn(list + n, " \t,")) {
		if (*list == '*')
			return true;
		if (!strncmp(list, "W/", 2))
			list += 2;
		n = *list == '"' ? 1 + strcspn(list + 1, "\"") : 0;
		if (!n || list[n] != '"')
			return false;
		n++;
		if (n == len && !memcmp(list, tag, len))
			return true;
	}
	return false;
}

static void add_header(struct MHD_Response *m, const char *name, const char *value)
{
	if (value && *value)
		MHD_add_response_header(m, name, value);
}

void reply_set_etag(struct call *c)
{
	struct call_reply *r = &c->reply;
	char sha256[HASH_HEX];

	if (r->status != 200)
		return;
	hash_hex(r->body.data, r->body.len, sha256);
	snprintf(r->etag, sizeof(r->etag), "\"%.*s\"", ETAG_DIGITS, sha256);
	if (!c->if_none_match || !list_has(c->if_none_match, r->etag))
		return;
	buf_free(&r->body);
	r->status = 304;
	r->type = NULL;
}

enum MHD_Result reply_send(struct MHD_Connection *conn, struct call *c)
{
	struct call_reply *r = &c->reply;
	char retry[16] = "";
	struct MHD_Response *m;
	enum MHD_Result rc;

	if (r->retry_after)
		snprintf(retry, sizeof(retry), "%u", r->retry_after);
	if (!(m = MHD_create_response_from_buffer(r->body.len, r->body.data, MHD_RESPMEM_MUST_FREE)))
		return MHD_NO;
	r->body = (struct buf){0};
	add_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, r->type);
	add_header(m, MHD_HTTP_HEADER_ETAG, r->etag);
	add_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
	add_header(m, MHD_HTTP_HEADER_RETRY_AFTER, retry);
	add_header(m, MHD_HTTP_HEADER_ALLOW, r->allow);
	add_header(m, MHD_HTTP_HEADER_CONNECTION, r->close ? "close" : NULL);
	add_header(m, "Topiary-Ack", r->ack);
	add_header(m, "Topiary-SHA256", r->sha256);
	add_header(m, "X-Content-Type-Options", "nosniff");
	rc = MHD_queue_response(conn, r->status, m);
	MHD_destroy_response(m);
	return rc;
}
