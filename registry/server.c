/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "server.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "ingest.h"
#include "reads.h"

#define CONNECTIONS 1024
#define CONNECTIONS_PER_ADDRESS 256
#define IDLE_SECONDS 15
#define REQUEST_SECONDS 30
#define BODY_MAX (4u << 20)	/* of zstd: four times what the largest XML allowed usually becomes */

struct server {
	struct MHD_Daemon *daemon;
	struct service *service;
};

/* '*' in a pattern is one segment of the path: a node's name. */
static const struct route {
	const char *method, *pattern;
	int (*admit)(struct call *);	/* before the body is read, or NULL */
	void (*handle)(struct call *);
	size_t body_max;
} routes[] = {
	{ "PUT", "/v1/nodes/*/boot", ingest_admit, ingest_boot, 0 },
	{ "PUT", "/v1/nodes/*/topology", ingest_admit_zstd, ingest_topology, BODY_MAX },
	{ "GET", "/v1/nodes", NULL, read_nodes, 0 },
	{ "GET", "/v1/nodes/*", NULL, read_node, 0 },
	{ "GET", "/v1/nodes/*/topology", NULL, read_topology, 0 },
	{ "GET", "/v1/shapes", NULL, read_shapes, 0 },
	{ "GET", "/v1/snapshot", NULL, read_snapshot, 0 },
	{ "GET", "/healthz", NULL, read_health, 0 },
};

/* One request between libmicrohttpd's calls of on_request. */
struct pending {
	const struct route *route;	/* NULL once it is refused */
	time_t until;
	struct call call;
};

static time_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
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

/* The route, or NULL with the reply filled. */
static const struct route *find_route(struct call *c, const char *method, const char *path)
{
	bool path_known = false;

	if (!strcmp(method, "HEAD"))
		method = "GET";
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (!path_matches(routes[i].pattern, path, c->node))
			continue;
		path_known = true;
		if (!strcmp(routes[i].method, method))
			return &routes[i];
	}
	if (path_known)
		call_fail(c, 405, "%s is not possible here", method);
	else
		call_fail(c, 404, "no such path");
	return NULL;
}

static const char *header(struct MHD_Connection *conn, const char *name)
{
	return MHD_lookup_connection_value(conn, MHD_HEADER_KIND, name);
}

static int check_length(struct call *c, const char *length, size_t max)
{
	if (length && strtoull(length, NULL, 10) > max)
		return call_fail(c, 413, "%s%sthe body has %s bytes, at most %zu are allowed", c->node, *c->node ? ": " : "",
				 length, max);
	return 0;
}

static void begin(struct pending *p, struct service *service, struct MHD_Connection *conn, const char *method, const char *path)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_DAEMON);
	struct call *c = &p->call;
	const struct route *route;

	c->service = service;
	c->authorization = header(conn, MHD_HTTP_HEADER_AUTHORIZATION);
	c->encoding = header(conn, MHD_HTTP_HEADER_CONTENT_ENCODING);
	c->busy = MHD_get_daemon_info(info->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
	p->until = seconds() + REQUEST_SECONDS;
	route = find_route(c, method, path);
	if (!route)
		return;
	if (*c->node && !claim_node_valid(c->node)) {
		c->node[0] = '\0';
		call_fail(c, 400, "not a node's name: letters, digits, '.', '_' and '-' are");
		return;
	}
	if (check_length(c, header(conn, MHD_HTTP_HEADER_CONTENT_LENGTH), route->body_max) || (route->admit && route->admit(c)))
		return;
	p->route = route;
}

/* What a refused request still sends is read and dropped, so that the client gets to read why. */
static enum MHD_Result take_body(struct pending *p, const char *data, size_t *len)
{
	struct call *c = &p->call;

	if (seconds() > p->until)
		return MHD_NO;
	if (p->route && *len > p->route->body_max - c->body.len) {
		call_fail(c, 413, "%s: the body has more than the %zu bytes that are allowed", c->node, p->route->body_max);
		p->route = NULL;
	}
	if (p->route)
		buf_add(&c->body, data, *len);
	*len = 0;
	return MHD_YES;
}

static enum MHD_Result send_reply(struct MHD_Connection *conn, struct reply *r)
{
	struct MHD_Response *m = MHD_create_response_from_buffer(r->body.len, r->body.data, MHD_RESPMEM_MUST_FREE);
	char seconds_text[16];
	enum MHD_Result rc;

	if (!m)
		return MHD_NO;
	r->body = (struct buf){0};
	snprintf(seconds_text, sizeof(seconds_text), "%u", r->retry_after);
	if (r->type)
		MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, r->type);
	if (r->retry_after)
		MHD_add_response_header(m, MHD_HTTP_HEADER_RETRY_AFTER, seconds_text);
	if (r->ack)
		MHD_add_response_header(m, "Topiary-Ack", r->ack);
	rc = MHD_queue_response(conn, r->status, m);
	MHD_destroy_response(m);
	return rc;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *conn, const char *path, const char *method,
				  const char *version, const char *data, size_t *len, void **state)
{
	struct server *s = user;
	struct pending *p = *state;

	(void) version;
	if (!p) {
		if (!(p = *state = calloc(1, sizeof(*p))))
			return MHD_NO;
		begin(p, s->service, conn, method, path);
		/* A body announced as too large is not waited for. */
		return p->call.reply.status == 413 ? send_reply(conn, &p->call.reply) : MHD_YES;
	}
	if (*len)
		return take_body(p, data, len);
	if (p->route && p->call.body.failed)
		call_fail(&p->call, 503, "%s: out of memory", p->call.node);
	else if (p->route)
		p->route->handle(&p->call);
	return send_reply(conn, &p->call.reply);
}

static void on_done(void *user, struct MHD_Connection *conn, void **state, enum MHD_RequestTerminationCode code)
{
	struct pending *p = *state;

	(void) user;
	(void) conn;
	(void) code;
	if (!p)
		return;
	buf_free(&p->call.body);
	buf_free(&p->call.reply.body);
	free(p->call.reply.ack);
	free(p);
}

static int split_address(const char *address, char host[static 256], const char **port)
{
	const char *colon = strrchr(address, ':');
	size_t len = colon ? colon - address : 0;

	if (len > 1 && *address == '[' && address[len - 1] == ']') {
		address++;
		len -= 2;
	}
	if (!colon || !colon[1] || !len || len > 255)
		return -1;
	memcpy(host, address, len);
	host[len] = '\0';
	*port = colon + 1;
	return 0;
}

static int listen_on(const char *address, struct err *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found;
	const char *port;
	char host[256];
	int fd, rc;

	if (split_address(address, host, &port))
		return err_set(e, "Listen=%s: ADDRESS:PORT is wanted", address);
	if ((rc = getaddrinfo(host, port, &hints, &found)))
		return err_set(e, "Listen=%s: %s", address, gai_strerror(rc));
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
	    bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, SOMAXCONN)) {
		err_set(e, "Listen=%s: %s", address, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

struct server *server_start(struct service *service, const char *address, struct err *e)
{
	struct server *s = calloc(1, sizeof(*s));
	int fd = s ? listen_on(address, e) : err_set(e, "out of memory");

	if (fd < 0) {
		free(s);
		return NULL;
	}
	s->service = service;
	s->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0,
		NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_done, NULL,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_PER_IP_CONNECTION_LIMIT, CONNECTIONS_PER_ADDRESS,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_THREAD_STACK_SIZE, (size_t) 1 << 20, MHD_OPTION_END);
	if (!s->daemon) {
		err_set(e, "Listen=%s: the HTTP server does not start", address);
		close(fd);
		free(s);
		return NULL;
	}
	return s;
}

void server_stop(struct server *s)
{
	if (!s)
		return;
	MHD_stop_daemon(s->daemon);
	free(s);
}
