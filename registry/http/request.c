/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "server_parts.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "handlers.h"
#include "metrics.h"
#include "peer.h"

#define SMALL_REPLY (64u << 10)	/* bytes; smaller replies are not counted */
/* One address has at most so large a part: a slow sender or reader, or one of many requests, takes no other's. */
#define MEMORY_PART 4		/* of BodyMemory and of the memory for replies */
#define PROGRESS_PART 2		/* of the requests in progress */
#define REPLY_BYTES_PER_SECOND (256u << 10)	/* minimum rate of a client, beside REQUEST_SECONDS */

/*
 * Notes
 *
 * A request belongs to one thread at a time: to libmicrohttpd's, which reads and writes all sockets and never waits for
 * anything else, or, while its connection is suspended, to the worker that admits or handles it. A request without a
 * body is admitted and handled in one go; a body is read only once its sender was admitted. libmicrohttpd calls
 * request_on_data again when a connection is resumed, at the same place of the request: the stage says what comes next.
 */
enum stage { STAGE_NEW, STAGE_ADMITTED, STAGE_BODY, STAGE_HANDLED };

struct pending {
	struct server *server;
	struct MHD_Connection *conn;
	struct deadline *deadline;
	enum stage stage;
	struct worker_job job;
	bool bad_escape, admitted;
	unsigned lengths;		/* headers that state the body's length */
	const char *forwarded;		/* the last X-Forwarded-For: a proxy adds its own behind others */
	bool at_once;			/* refused; the rest of its body is not awaited */
	const struct route *route;	/* NULL once it is refused */
	int counted;			/* the route's number in the metrics */
	double began;			/* in clock_now */
	size_t body_held, reply_held;	/* acquired from the budgets */
	struct call call;
};

static const char *request_header(struct MHD_Connection *conn, const char *name)
{
	return MHD_lookup_connection_value(conn, MHD_HEADER_KIND, name);
}

static struct deadline *deadline_of(struct MHD_Connection *conn)
{
	return MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static bool is_export(const struct route *r)
{
	return r->purpose && !strcmp(r->purpose, CLAIM_EXPORT);
}

struct param_scan {
	struct call *call;
	const char *known;
	int rc;
};

static enum MHD_Result add_param(void *user, enum MHD_ValueKind, const char *name, size_t,
				 const char *value, size_t len)
{
	struct param_scan *t = user;

	t->rc = query_add_param(t->call, t->known, name, value, len);
	return t->rc ? MHD_NO : MHD_YES;
}

/* A body without a length counts as the longest allowed. */
static unsigned long long body_length(struct MHD_Connection *conn, size_t max)
{
	const char *length = request_header(conn, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return length ? strtoull(length, NULL, 10) : request_header(conn, MHD_HTTP_HEADER_TRANSFER_ENCODING) ? max : 0;
}

/*
 * The body's bytes are acquired before any is read. Two headers of its length may contradict each other (RFC 9112,
 * section 6.3).
 */
static int reserve_body(struct pending *p, size_t max)
{
	struct server *s = p->server;
	unsigned long long n = body_length(p->conn, max);
	struct call *c = &p->call;

	p->at_once = true;
	if (p->lengths > 1) {
		c->reply.close = true;
		return call_fail(c, 400, "%s%sthe request has several of the headers Content-Length and"
				 " Transfer-Encoding; send one", c->node, *c->node ? ": " : "");
	}
	if (n > max)
		return call_fail(c, 413, "%s%sthe body has %s bytes, at most %zu are allowed", c->node,
				 *c->node ? ": " : "", request_header(p->conn, MHD_HTTP_HEADER_CONTENT_LENGTH), max);
	if (!deadline_acquire(s->deadlines, p->deadline, SHARE_BODIES, n, c->service->bodies.max / MEMORY_PART))
		return call_fail(c, 503, "%s: too many documents are being received from its address; try again later",
				 c->node);
	if (n && !server_budget_acquire(&c->service->bodies, n)) {
		deadline_release(s->deadlines, p->deadline, SHARE_BODIES, n);
		return call_fail(c, 503, "%s: too many documents are being received; try again later", c->node);
	}
	p->at_once = false;
	p->body_held = n;
	return 0;
}

/* Everything that is checked before the body: 0, or -1 with the reply filled. */
static int request_check(struct pending *p)
{
	const struct route *route = p->route;
	struct call *c = &p->call;
	struct param_scan params = { c, route->params, 0 };

	if (*c->node && !claim_node_valid(c->node)) {
		c->node[0] = '\0';
		return call_fail(c, 400, "invalid node name: only letters, digits, '.', '_' and '-' are allowed");
	}
	if (strstr(route->pattern, "/nodes/*") && !call_node_canonical(c, c->node))
		return call_fail(c, 400, "%s: an address or a number is not a node's name", c->node);
	MHD_get_connection_values_n(p->conn, MHD_GET_ARGUMENT_KIND, add_param, &params);
	if (route->about)
		snprintf(c->node, sizeof(c->node), "%s", route->about);
	if (params.rc || (route->body_max && call_check_zstd(c)) || (route->admit && route->admit(c)) ||
	    (route->signed_max && call_check_length(c, route->signed_max)))
		return -1;
	return reserve_body(p, route->body_max);
}

/* In a worker. The connection of an admitted export is not closed to make room for others. */
static void request_admit(struct pending *p)
{
	if (request_check(p))
		p->route = NULL;
	else if (is_export(p->route))
		deadline_keep(p->server->deadlines, p->deadline, true);
}

static struct pending *pending_of(struct worker_job *job)
{
	return (struct pending *) ((char *) job - offsetof(struct pending, job));
}

static struct pending *pending_of_call(struct call *c)
{
	return (struct pending *) ((char *) c - offsetof(struct pending, call));
}

/* libmicrohttpd's thread owns the request from here on, and may have freed it. */
static void request_done(struct call *c)
{
	struct server *s = pending_of_call(c)->server;

	assert(atomic_load(&s->away));
	MHD_resume_connection(pending_of_call(c)->conn);
	atomic_fetch_sub(&s->away, 1);
}

static void run_next(struct worker_job *job)
{
	pending_of(job)->call.next(&pending_of(job)->call);
}

static bool request_continue(struct call *c, void (*next)(struct call *c))
{
	struct pending *p = pending_of_call(c);

	c->next = next;
	p->job.run = run_next;
	return workers_run(p->server->exports, &p->job);
}

static enum MHD_Result read_header(void *user, enum MHD_ValueKind, const char *name, const char *value)
{
	struct pending *p = user;

	p->lengths += !strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) ||
		      !strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING);
	if (!strcasecmp(name, "X-Forwarded-For"))
		p->forwarded = value;
	return MHD_YES;
}

static void request_begin(struct pending *p, const char *method, const char *path)
{
	/* One call each: later releases of the library return all connection infos in the same place. */
	const union MHD_ConnectionInfo *peer = MHD_get_connection_info(p->conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct server *s = p->server;
	struct call *c = &p->call;

	p->counted = route_number(NULL);
	c->service = s->service;
	c->done = request_done;
	c->run = request_continue;
	c->authorization = request_header(p->conn, MHD_HTTP_HEADER_AUTHORIZATION);
	c->encoding = request_header(p->conn, MHD_HTTP_HEADER_CONTENT_ENCODING);
	c->if_none_match = request_header(p->conn, MHD_HTTP_HEADER_IF_NONE_MATCH);
	c->peer = peer ? peer->client_addr : NULL;
	c->fd = MHD_get_connection_info(p->conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	c->busy = deadlines_count(s->deadlines);
	if (p->bad_escape) {
		call_fail(c, 400, "the path contains %%00 or %%2F, which is not allowed");
		return;
	}
	MHD_get_connection_values(p->conn, MHD_HEADER_KIND, read_header, p);
	if (peer_behind_proxy(c, p->forwarded) || !(p->route = route_find(c, method, path)))
		return;
	p->counted = route_number(p->route);
	c->purpose = p->route->purpose;
	c->what = p->route->what;
	if (!route_is_health(p->route) && c->busy > CONNECTIONS) {
		p->route = NULL;
		p->at_once = c->reply.close = true;
		call_fail(c, 503, "too many connections; try again later");
	}
}

/* Replies to slow clients share REPLY_MEMORY; a reply beyond it becomes 503. */
static enum MHD_Result request_finish(struct pending *p, const char *method, const char *path)
{
	struct server *s = p->server;
	struct call *c = &p->call;
	size_t len = c->reply.body.len > SMALL_REPLY ? c->reply.body.len : 0;
	double seconds;

	if (!deadline_acquire(s->deadlines, p->deadline, SHARE_REPLIES, len, s->service->replies.max / MEMORY_PART)) {
		call_fail(c, 503, "too many replies are being sent to its address; try again later");
	} else if (!server_budget_acquire(&s->service->replies, len)) {
		deadline_release(s->deadlines, p->deadline, SHARE_REPLIES, len);
		call_fail(c, 503, "too many replies are being sent; try again later");
	} else {
		p->reply_held = len;
	}
	seconds = clock_now() - p->began;
	c->reply.close |= atomic_load(&s->service->ending);
	metrics_observe(s->service->metrics, p->counted, c->reply.status, seconds);
	log_debug("%s %s: status %u, %zu bytes, %.1f ms", method, path, c->reply.status, c->reply.body.len,
		  1000 * seconds);
	deadline_set(s->deadlines, p->deadline, REQUEST_SECONDS + c->reply.body.len / REPLY_BYTES_PER_SECOND);
	return reply_send(p->conn, c);
}

/* Those of a kind cannot occupy the connections to PostgreSQL of another, nor those of an address all of a kind. */
static bool progress_acquire(struct pending *p, enum deadline_share *which)
{
	const struct route *r = p->route;
	struct server *s = p->server;
	size_t max;

	*which = strcmp(r->method, "GET") ? SHARE_COUNT : route_is_health(r) ? SHARE_CHECKS :
		 strchr(r->pattern, '*') ? SHARE_READS : SHARE_LISTS;
	if (*which == SHARE_COUNT)
		return true;
	max = s->in_progress[*which].max / PROGRESS_PART;
	if (!deadline_acquire(s->deadlines, p->deadline, *which, 1, max)) {
		call_fail(&p->call, 503, "too many requests of its address are in progress; try again later");
		return false;
	}
	if (server_budget_acquire(&s->in_progress[*which], 1))
		return true;
	deadline_release(s->deadlines, p->deadline, *which, 1);
	call_fail(&p->call, 503, "too many reads in progress; try again later");
	return false;
}

/* In a worker, with the whole body; finishes the request. */
static void request_handle(struct pending *p)
{
	struct call *c = &p->call;
	enum deadline_share which;

	/* No client is awaited from here on: PostgreSQL and the parser have limits of their own. */
	deadline_set(p->server->deadlines, p->deadline, 0);
	if (c->body.failed) {
		call_fail(c, 503, "%s: out of memory", c->node);
	} else if (is_export(p->route)) {
		p->route->handle(c);
		return;
	} else if (progress_acquire(p, &which)) {
		p->route->handle(c);
		if (which != SHARE_COUNT) {
			server_budget_release(&p->server->in_progress[which], 1);
			deadline_release(p->server->deadlines, p->deadline, which, 1);
		}
	}
	if (!strcmp(p->route->method, "GET"))
		reply_set_etag(c);
	if (p->route->handle == read_snapshot && c->reply.status == 304)
		metrics_snapshot_current(c);
	request_done(c);
}

static void run_admission(struct worker_job *job)
{
	struct pending *p = pending_of(job);

	request_admit(p);
	request_done(&p->call);
}

static void run_request(struct worker_job *job)
{
	struct pending *p = pending_of(job);

	if (!p->admitted)
		request_admit(p);
	if (p->route)
		request_handle(p);
	else
		request_done(&p->call);
}

/* request_on_data is called again, at this stage, when the worker has done it. */
static enum MHD_Result hand_over(struct pending *p, enum stage next, void (*run)(struct worker_job *job))
{
	struct server *s = p->server;

	assert(p->stage != STAGE_HANDLED);
	p->stage = next;
	p->job.run = run;
	atomic_fetch_add(&s->away, 1);
	MHD_suspend_connection(p->conn);
	if (!workers_run(is_export(p->route) ? s->exports : s->others, &p->job)) {
		p->route = NULL;
		call_fail(&p->call, 503, "no thread is available for the request; try again later");
		request_done(&p->call);
	}
	return MHD_YES;
}

enum MHD_Result request_on_data(void *, struct MHD_Connection *conn, const char *path, const char *method,
				const char *, const char *data, size_t *len, void **state)
{
	struct pending *p = *state;

	if (!p)
		return MHD_NO;
	switch (p->stage) {
	case STAGE_NEW:
		request_begin(p, method, path);
		/* A body may follow that a second header denies: then it is refused before any of it is read, too. */
		if (p->route && (request_header(conn, MHD_HTTP_HEADER_TRANSFER_ENCODING) ||
				 body_length(conn, p->route->body_max)))
			return hand_over(p, STAGE_ADMITTED, run_admission);
		p->stage = STAGE_BODY;
		return p->at_once ? request_finish(p, method, path) : MHD_YES;
	case STAGE_ADMITTED:
		p->admitted = true;
		p->stage = STAGE_BODY;
		return p->at_once ? request_finish(p, method, path) : MHD_YES;
	case STAGE_BODY:
		/* The body of a refused request is read and discarded, so that the client reads the reply. */
		if (*len && p->route && *len > p->route->body_max - p->call.body.len) {
			call_fail(&p->call, 413, "%s: the body exceeds the limit of %zu bytes", p->call.node,
				  p->route->body_max);
			p->route = NULL;
		}
		if (*len) {
			if (p->route)
				buf_add(&p->call.body, data, *len);
			*len = 0;
			return MHD_YES;
		}
		return p->route ? hand_over(p, STAGE_HANDLED, run_request) : request_finish(p, method, path);
	case STAGE_HANDLED:
		break;
	}
	return request_finish(p, method, path);
}

/*
 * Called with the request line. The path is checked undecoded: a decoded NUL or slash in a name could not be told from
 * a real one.
 */
void *request_on_line(void *user, const char *line, struct MHD_Connection *conn)
{
	struct server *s = user;
	struct pending *p = calloc(1, sizeof(*p));
	const char *end = line + strcspn(line, "?");

	if (!p)
		return NULL;
	p->server = s;
	p->conn = conn;
	p->deadline = deadline_of(conn);
	p->began = clock_now();
	for (const char *at = line; (at = strchr(at, '%')) && at < end; at++)
		p->bad_escape |= !strncasecmp(at, "%00", 3) || !strncasecmp(at, "%2f", 3);
	deadline_set(s->deadlines, p->deadline, REQUEST_SECONDS);
	deadline_idle(s->deadlines, p->deadline, false);
	return p;
}

void request_on_end(void *user, struct MHD_Connection *conn, void **state, enum MHD_RequestTerminationCode)
{
	struct server *s = user;
	struct pending *p = *state;

	deadline_set(s->deadlines, deadline_of(conn), IDLE_SECONDS + REQUEST_SECONDS);
	deadline_keep(s->deadlines, deadline_of(conn), false);
	deadline_idle(s->deadlines, deadline_of(conn), true);
	if (!p)
		return;
	server_budget_release(&s->service->bodies, p->body_held);
	deadline_release(s->deadlines, deadline_of(conn), SHARE_BODIES, p->body_held);
	server_budget_release(&s->service->replies, p->reply_held);
	deadline_release(s->deadlines, deadline_of(conn), SHARE_REPLIES, p->reply_held);
	buf_free(&p->call.body);
	buf_free(&p->call.reply.body);
	free(p);
	*state = NULL;
}
