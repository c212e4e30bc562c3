/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "server.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "deadline.h"
#include "listen.h"
#include "metrics.h"
#include "peer.h"
#include "query.h"
#include "route.h"

#define CONNECTIONS 1024
#define CONNECTIONS_PER_ADDRESS 256
#define DESCRIPTORS (2 * CONNECTIONS)
#define IDLE_SECONDS 15
#define REQUEST_SECONDS 30
#define REPLY_MEMORY (256u << 20)	/* of those being sent: twice the longest list (reads.c) */
#define REPLY_BYTES_PER_SECOND (256u << 10)	/* what a client must take at least, beside REQUEST_SECONDS */

struct server {
	struct MHD_Daemon *daemon;
	struct service *service;
	struct deadlines *deadlines;
};

/* One request between libmicrohttpd's calls of on_request. */
struct pending {
	bool begun, odd_path;
	bool at_once;			/* refused, and what else it sends is not waited for */
	const struct route *route;	/* NULL once it is refused */
	int counted;			/* the route's number in the metrics */
	struct timespec began;
	size_t body_held, reply_held;	/* of the budgets */
	struct call call;
};

static double seconds_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - t->tv_sec + (now.tv_nsec - t->tv_nsec) / 1e9;
}

static const char *header(struct MHD_Connection *conn, const char *name)
{
	return MHD_lookup_connection_value(conn, MHD_HEADER_KIND, name);
}

struct taking {
	struct call *call;
	const char *known;
	int rc;
};

static enum MHD_Result take_param(void *user, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value,
				  size_t len)
{
	struct taking *t = user;

	(void) kind, (void) name_len;
	t->rc = query_take(t->call, t->known, name, value, len);
	return t->rc ? MHD_NO : MHD_YES;
}

static int take_params(struct call *c, struct MHD_Connection *conn, const char *known)
{
	struct taking t = { c, known, 0 };

	MHD_get_connection_values_n(conn, MHD_GET_ARGUMENT_KIND, take_param, &t);
	return t.rc;
}

/* The bytes of a body are taken from the budget before any is read; those of one without a length as if it were the longest. */
static int reserve_body(struct pending *p, struct MHD_Connection *conn, size_t max)
{
	const char *length = header(conn, MHD_HTTP_HEADER_CONTENT_LENGTH);
	unsigned long long n = length ? strtoull(length, NULL, 10) : header(conn, MHD_HTTP_HEADER_TRANSFER_ENCODING) ? max : 0;
	struct call *c = &p->call;

	p->at_once = true;
	if (n > max)
		return call_fail(c, 413, "%s%sthe body has %s bytes, at most %zu are allowed", c->node,
				 *c->node ? ": " : "", length, max);
	if (n && !budget_take(&c->service->bodies, n))
		return call_fail(c, 503, "%s: too many documents are being sent at once", c->node);
	p->at_once = false;
	p->body_held = n;
	return 0;
}

/* What a request says before its body: 0, or -1 with the reply filled. */
static int admit(struct pending *p, struct MHD_Connection *conn, const struct route *route)
{
	struct call *c = &p->call;

	if (*c->node && !claim_node_valid(c->node)) {
		c->node[0] = '\0';
		return call_fail(c, 400, "not a node's name: letters, digits, '.', '_' and '-' are");
	}
	if (take_params(c, conn, route->params) || (route->admit && route->admit(c)) || (route->admit_peer && route->admit_peer(c)))
		return -1;
	return reserve_body(p, conn, route->body_max);
}

static void begin(struct pending *p, struct service *service, struct MHD_Connection *conn, const char *method, const char *path)
{
	/* Each is taken at once: later releases of the library answer all questions about a connection in one place. */
	struct MHD_Daemon *daemon = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_DAEMON)->daemon;
	const union MHD_ConnectionInfo *peer = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct route *route;
	struct call *c = &p->call;

	p->begun = true;
	p->counted = route_number(NULL);
	c->service = service;
	c->authorization = header(conn, MHD_HTTP_HEADER_AUTHORIZATION);
	c->encoding = header(conn, MHD_HTTP_HEADER_CONTENT_ENCODING);
	c->if_none_match = header(conn, MHD_HTTP_HEADER_IF_NONE_MATCH);
	c->peer = peer ? peer->client_addr : NULL;
	c->busy = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
	if (p->odd_path) {
		call_fail(c, 400, "a path may not hold %%00 or %%2F");
		return;
	}
	if (!(route = route_find(c, method, path)))
		return;
	p->counted = route_number(route);
	if (admit(p, conn, route) == 0)
		p->route = route;
}

/* What a refused request still sends is read and dropped, so that the client gets to read why. */
static void take_body(struct pending *p, const char *data, size_t *len)
{
	struct call *c = &p->call;

	if (p->route && *len > p->route->body_max - c->body.len) {
		call_fail(c, 413, "%s: the body has more than the %zu bytes that are allowed", c->node, p->route->body_max);
		p->route = NULL;
	}
	if (p->route)
		buf_add(&c->body, data, *len);
	*len = 0;
}

static struct deadline *deadline_of(struct MHD_Connection *conn)
{
	return MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* Clients that are slow to take their replies may hold so many bytes together; who would make it more is told to come again. */
static enum MHD_Result finish(struct server *s, struct MHD_Connection *conn, struct pending *p)
{
	struct call *c = &p->call;

	if (budget_take(&s->service->replies, c->reply.body.len))
		p->reply_held = c->reply.body.len;
	else
		call_fail(c, 503, "too many replies are being read at once");
	metrics_observe(s->service->metrics, p->counted, c->reply.status, seconds_since(&p->began));
	deadline_set(s->deadlines, deadline_of(conn), REQUEST_SECONDS + c->reply.body.len / REPLY_BYTES_PER_SECOND);
	return answer_send(conn, c, p->route && !strcmp(p->route->method, "GET"));
}

static void handle(struct pending *p)
{
	if (!p->route)
		return;
	if (p->call.body.failed)
		call_fail(&p->call, 503, "%s: out of memory", p->call.node);
	else
		p->route->handle(&p->call);
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *conn, const char *path, const char *method,
				  const char *version, const char *data, size_t *len, void **state)
{
	struct server *s = user;
	struct pending *p = *state;

	(void) version;
	if (!p)
		return MHD_NO;
	if (!p->begun) {
		begin(p, s->service, conn, method, path);
		return p->at_once ? finish(s, conn, p) : MHD_YES;
	}
	if (*len) {
		take_body(p, data, len);
		return MHD_YES;
	}
	/* From here on the time is ours: PostgreSQL and the parser have limits of their own. */
	deadline_set(s->deadlines, deadline_of(conn), 0);
	handle(p);
	return finish(s, conn, p);
}

/*
 * The request line is there. Its path is judged as it was sent: decoded, an end or a slash in a name could not be told from a
 * real one.
 */
static void *on_line(void *user, const char *line, struct MHD_Connection *conn)
{
	struct server *s = user;
	struct pending *p = calloc(1, sizeof(*p));
	const char *end = line + strcspn(line, "?");

	if (!p)
		return NULL;
	clock_gettime(CLOCK_MONOTONIC, &p->began);
	for (const char *at = line; (at = strchr(at, '%')) && at < end; at++)
		p->odd_path |= !strncasecmp(at, "%00", 3) || !strncasecmp(at, "%2f", 3);
	deadline_set(s->deadlines, deadline_of(conn), REQUEST_SECONDS);
	return p;
}

static void on_done(void *user, struct MHD_Connection *conn, void **state, enum MHD_RequestTerminationCode code)
{
	struct server *s = user;
	struct pending *p = *state;

	(void) code;
	deadline_set(s->deadlines, deadline_of(conn), IDLE_SECONDS + REQUEST_SECONDS);
	if (!p)
		return;
	budget_give(&s->service->bodies, p->body_held);
	budget_give(&s->service->replies, p->reply_held);
	buf_free(&p->call.body);
	buf_free(&p->call.reply.body);
	free(p->call.reply.ack);
	free(p);
	*state = NULL;
}

static void on_connection(void *user, struct MHD_Connection *conn, void **context, enum MHD_ConnectionNotificationCode code)
{
	struct server *s = user;

	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		*context = deadline_add(s->deadlines, MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
					REQUEST_SECONDS);
	else
		deadline_remove(s->deadlines, *context);
}

/* What the requests share beside what topiaryd gave. */
static int prepare(struct service *s, struct err *e)
{
	const struct route *r;

	s->bodies.max = (size_t) s->settings.body_memory << 20;
	s->replies.max = REPLY_MEMORY;
	s->metrics = metrics_new();
	s->peers = peers_new();
	if (!s->metrics || !s->peers)
		return err_set(e, "out of memory");
	for (size_t i = 0; (r = route_at(i)); i++)
		metrics_add(s->metrics, r->method, r->pattern);
	metrics_add(s->metrics, "other", "other");
	return 0;
}

/* As many descriptors as connections need, beside those to PostgreSQL and the parser; the usual limit would be met first. */
static void allow_descriptors(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= DESCRIPTORS)
		return;
	r.rlim_cur = r.rlim_max < DESCRIPTORS ? r.rlim_max : DESCRIPTORS;
	setrlimit(RLIMIT_NOFILE, &r);
}

static struct MHD_Daemon *listen_mhd(struct server *s, int fd)
{
	return MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0, NULL, NULL,
		on_request, s, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK, on_line, s,
		MHD_OPTION_NOTIFY_COMPLETED, on_done, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_PER_IP_CONNECTION_LIMIT, CONNECTIONS_PER_ADDRESS,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_THREAD_STACK_SIZE, (size_t) 512 << 10, MHD_OPTION_END);
}

struct server *server_start(struct service *service, const char *address, struct err *e)
{
	struct server *s = calloc(1, sizeof(*s));
	int fd = -1;

	if (!s) {
		err_set(e, "out of memory");
		return NULL;
	}
	s->service = service;
	allow_descriptors();
	if (prepare(service, e) || !(s->deadlines = deadlines_start(e)) || (fd = listen_on(address, e)) < 0)
		goto error;
	if ((s->daemon = listen_mhd(s, fd)))
		return s;
	err_set(e, "Listen=%s: the HTTP server does not start", address);
	close(fd);
error:
	server_stop(s);
	return NULL;
}

void server_stop(struct server *s)
{
	if (!s)
		return;
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	deadlines_stop(s->deadlines);
	metrics_free(s->service->metrics);
	peers_free(s->service->peers);
	free(s);
}
