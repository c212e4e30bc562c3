/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "server.h"

#include <linux/filter.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/std.h"
#include "deadline.h"
#include "handlers.h"
#include "metrics.h"
#include "peer.h"
#include "server_parts.h"
#include "workers.h"

/* beyond CONNECTIONS (deadline.h): health checks are answered, other requests get 503 */
#define SPARE_CONNECTIONS 128
#define DESCRIPTORS (2 * CONNECTIONS)
/* for one node, and as many for lists: most wait for PostgreSQL, each with a thread (workers.h) */
#define READS_AT_ONCE 64
#define CHECKS_AT_ONCE 16	/* of health */
#define SMALL_REPLY (64u << 10)	/* bytes; smaller replies are not counted */
/* One address has at most so large a part: a slow sender or reader, or one of many requests, takes no other's. */
#define MEMORY_PART 4		/* of BodyMemory and REPLY_MEMORY */
#define PROGRESS_PART 2		/* of the requests in progress */
#define EXPORTS_NICE 5	/* exports yield to reads while a cluster boots */
#define TLS_THREADS 4	/* at most; without TLS one is enough for all connections */
#define IDLE_SECONDS 15
#define END_IDLE 0.5		/* seconds: a client that has just read a reply may be sending its next request */
#define END_HANDSHAKE_MS 200	/* in which the last clients that connect have done so */
#define END_SECONDS 20		/* for clients when topiaryd ends, longer for what is handled; systemd waits for 90 */
#define END_REPLY 2		/* seconds for the replies of those */
#define REQUEST_SECONDS 30
#define PEM_MAX (1u << 20)
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"	/* gnutls_priority_init(3) */
#define REPLY_MEMORY (256u << 20)	/* of replies being sent: twice the longest list (reads.c) */
#define REPLY_BYTES_PER_SECOND (256u << 10)	/* minimum rate of a client, beside REQUEST_SECONDS */

struct server {
	struct MHD_Daemon *daemon;
	struct service *service;
	struct deadlines *deadlines;
	struct workers *exports, *others;	/* what waits for anything but the client */
	struct server_budget in_progress[SHARE_COUNT];	/* requests: SHARE_READS to SHARE_CHECKS */
	struct tls {
		struct buf certificate, key;	/* PEM; both empty without TLS */
	} tls;
	int fd;			/* until daemon has it */
	atomic_uint handed;	/* connections that libmicrohttpd has begun to serve, some time after it has them */
	atomic_uint away;	/* requests that a worker or the committer has, their connections suspended */
};

/*
 * Notes
 *
 * A request belongs to one thread at a time: to libmicrohttpd's, which reads and writes all sockets and never waits for
 * anything else, or, while its connection is suspended, to the worker that admits or handles it. A request without a
 * body is admitted and handled in one go; a body is read only once its sender was admitted. libmicrohttpd calls
 * on_request again when a connection is resumed, at the same place of the request: the stage says what comes next.
 */
enum stage { STAGE_NEW, STAGE_ADMITTED, STAGE_BODY, STAGE_HANDLED };

struct pending {
	struct server *server;
	struct MHD_Connection *conn;
	struct deadline *deadline;
	enum stage stage;
	struct worker_job job;
	bool odd_path, admitted;
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

static enum MHD_Result add_param(void *user, enum MHD_ValueKind kind, const char *name, size_t name_len,
				 const char *value, size_t len)
{
	struct param_scan *t = user;

	(void) kind, (void) name_len;
	t->rc = query_add_param(t->call, t->known, name, value, len);
	return t->rc ? MHD_NO : MHD_YES;
}

static int read_params(struct call *c, struct MHD_Connection *conn, const char *known)
{
	struct param_scan t = { c, known, 0 };

	MHD_get_connection_values_n(conn, MHD_GET_ARGUMENT_KIND, add_param, &t);
	return t.rc;
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

	if (*c->node && !claim_node_valid(c->node)) {
		c->node[0] = '\0';
		return call_fail(c, 400, "invalid node name: only letters, digits, '.', '_' and '-' are allowed");
	}
	if (strstr(route->pattern, "/nodes/*") && !call_node_canonical(c, c->node))
		return call_fail(c, 400, "%s: an address or a number is not a node's name", c->node);
	if (read_params(c, p->conn, route->params) || (route->admit && route->admit(c)) ||
	    (route->admit_peer && route->admit_peer(c)))
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

static enum MHD_Result read_header(void *user, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct pending *p = user;

	(void) kind;
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
	if (p->odd_path) {
		call_fail(c, 400, "the path contains %%00 or %%2F, which is not allowed");
		return;
	}
	MHD_get_connection_values(p->conn, MHD_HEADER_KIND, read_header, p);
	if (peer_behind_proxy(c, p->forwarded) || !(p->route = route_find(c, method, path)))
		return;
	p->counted = route_number(p->route);
	c->purpose = p->route->purpose;
	if (!route_is_health(p->route) && c->busy > CONNECTIONS) {
		p->route = NULL;
		p->at_once = c->reply.close = true;
		call_fail(c, 503, "too many connections; try again later");
	}
}

/* The body of a refused request is read and discarded, so that the client reads the reply. */
static void read_body(struct pending *p, const char *data, size_t *len)
{
	struct call *c = &p->call;

	if (p->route && *len > p->route->body_max - c->body.len) {
		call_fail(c, 413, "%s: the body exceeds the limit of %zu bytes", c->node, p->route->body_max);
		p->route = NULL;
	}
	if (p->route)
		buf_add(&c->body, data, *len);
	*len = 0;
}

/* Replies to slow clients share REPLY_MEMORY; a reply beyond it becomes 503. */
static enum MHD_Result request_finish(struct pending *p, const char *method, const char *path)
{
	struct server *s = p->server;
	struct call *c = &p->call;
	size_t len = c->reply.body.len > SMALL_REPLY ? c->reply.body.len : 0;
	double seconds;

	if (!deadline_acquire(s->deadlines, p->deadline, SHARE_REPLIES, len, REPLY_MEMORY / MEMORY_PART)) {
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

/* on_request is called again, at this stage, when the worker has done it. */
static enum MHD_Result hand_over(struct pending *p, enum stage next, void (*run)(struct worker_job *job))
{
	struct server *s = p->server;

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

static enum MHD_Result on_request(void *user, struct MHD_Connection *conn, const char *path, const char *method,
				  const char *version, const char *data, size_t *len, void **state)
{
	struct pending *p = *state;

	(void) user, (void) conn, (void) version;
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
		if (*len) {
			read_body(p, data, len);
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
static void *on_line(void *user, const char *line, struct MHD_Connection *conn)
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
		p->odd_path |= !strncasecmp(at, "%00", 3) || !strncasecmp(at, "%2f", 3);
	deadline_set(s->deadlines, p->deadline, REQUEST_SECONDS);
	deadline_idle(s->deadlines, p->deadline, false);
	return p;
}

static void on_done(void *user, struct MHD_Connection *conn, void **state, enum MHD_RequestTerminationCode code)
{
	struct server *s = user;
	struct pending *p = *state;

	(void) code;
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

static void on_connection(void *user, struct MHD_Connection *conn, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct server *s = user;
	const struct sockaddr *peer;
	int fd;

	if (code != MHD_CONNECTION_NOTIFY_STARTED) {
		deadline_remove(s->deadlines, *context);
		return;
	}
	peer = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
	fd = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	*context = deadline_add(s->deadlines, fd, peer, REQUEST_SECONDS);
	atomic_fetch_add(&s->handed, 1);
}

/* What requests share beside what topiaryd passed. */
static int service_prepare(struct service *s, struct err *e)
{
	const struct route *r;

	s->bodies.max = (size_t) s->settings.body_memory << 20;
	s->documents.max = s->bodies.max;
	s->replies.max = REPLY_MEMORY;
	sem_init(&s->parsing_reads, 0, parser_workers(s->parser) - 1);
	s->metrics = metrics_new();
	if (!s->metrics)
		return err_set(e, "out of memory");
	if (!(s->peers = peers_new(&s->settings, e)))
		return -1;
	for (size_t i = 0; (r = route_at(i)); i++)
		metrics_add(s->metrics, r->method, r->pattern);
	metrics_add(s->metrics, "other", "other");
	return 0;
}

static void tls_free(struct tls *t)
{
	if (t->key.data)
		explicit_bzero(t->key.data, t->key.len);
	buf_free(&t->certificate);
	buf_free(&t->key);
}

static int tls_read(const struct settings *s, struct tls *out, struct err *e)
{
	struct tls t = {0};

	if (!*s->tls_certificate && !*s->tls_key)
		return 0;
	if (!*s->tls_certificate || !*s->tls_key)
		return err_set(e, "TlsCertificate and TlsKey must be set together");
	if (!MHD_is_feature_supported(MHD_FEATURE_TLS))
		return err_set(e, "TlsCertificate=%s: libmicrohttpd was built without TLS", s->tls_certificate);
	if (file_read(s->tls_certificate, PEM_MAX, &t.certificate, e) || file_read(s->tls_key, PEM_MAX, &t.key, e)) {
		tls_free(&t);
		return -1;
	}
	*out = t;
	return 0;
}

struct tls_options {
	struct MHD_OptionItem list[4];
};

static struct tls_options tls_options(const struct tls *t)
{
	if (!t->key.data)
		return (struct tls_options){ { { MHD_OPTION_END, 0, NULL } } };
	return (struct tls_options){ {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, t->certificate.data },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, t->key.data },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, TLS_PRIORITIES },
		{ MHD_OPTION_END, 0, NULL },
	} };
}

/* libmicrohttpd reads the PEM files when it starts; this one listens nowhere. */
static int tls_check(struct server *s, struct err *e)
{
	struct tls_options options = tls_options(&s->tls);
	struct MHD_Daemon *trial;

	if (!s->tls.key.data)
		return 0;
	trial = MHD_start_daemon(MHD_USE_TLS | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request, s,
				 MHD_OPTION_ARRAY, options.list, MHD_OPTION_END);
	if (!trial)
		return err_set(e, "TlsCertificate=%s cannot be used; check that TlsCertificate and TlsKey "
			       "belong together", s->service->settings.tls_certificate);
	MHD_stop_daemon(trial);
	return 0;
}

static struct MHD_Daemon *listen_mhd(struct server *s)
{
	const unsigned how = MHD_USE_ITC | MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
	struct tls_options options = tls_options(&s->tls);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	bool tls = s->tls.key.data;

	return MHD_start_daemon(how | (tls ? MHD_USE_TLS : 0), 0, NULL, NULL, on_request, s,
		MHD_OPTION_ARRAY, options.list, MHD_OPTION_LISTEN_SOCKET, s->fd,
		MHD_OPTION_URI_LOG_CALLBACK, on_line, s,
		MHD_OPTION_NOTIFY_COMPLETED, on_done, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS + SPARE_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
		MHD_OPTION_THREAD_POOL_SIZE, tls && cpus > 1 ? cpus < TLS_THREADS ? (unsigned) cpus : TLS_THREADS : 0,
		MHD_OPTION_END);
}

/* --- the address to listen on --- */

static bool listen_is_loopback(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} own;
	socklen_t len = sizeof(own);

	if (getsockname(fd, &own.any, &len))
		return false;
	if (own.any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&own.in6.sin6_addr);
	return own.any.sa_family == AF_INET && ntohl(own.in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* A non-blocking socket bound to ADDRESS:PORT ([ADDRESS]:PORT for IPv6), on which listen(2) waits. -1 with an error. */
static int listen_bind(const char *address, struct err *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found;
	const char *port;
	char host[256];
	int fd, rc;

	if (settings_address(address, host, &port))
		return err_set(e, "Listen=%s: not ADDRESS:PORT", address);
	if ((rc = getaddrinfo(host, port, &hints, &found)))
		return err_set(e, "Listen=%s: %s", address, gai_strerror(rc));
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
	    bind(fd, found->ai_addr, found->ai_addrlen)) {
		err_set(e, "Listen=%s: %s", address, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

/* --- the server --- */

struct server *server_open(struct service *service, struct err *e)
{
	const struct settings *settings = &service->settings;
	struct server *s = calloc(1, sizeof(*s));
	struct rlimit r;

	if (!s) {
		err_set(e, "out of memory");
		return NULL;
	}
	s->fd = -1;
	s->service = service;
	s->in_progress[SHARE_READS].max = s->in_progress[SHARE_LISTS].max = READS_AT_ONCE;
	s->in_progress[SHARE_CHECKS].max = CHECKS_AT_ONCE;
	/* Raise the limit to what the connections need, beside those to PostgreSQL and the parser. */
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < DESCRIPTORS) {
		r.rlim_cur = r.rlim_max < DESCRIPTORS ? r.rlim_max : DESCRIPTORS;
		setrlimit(RLIMIT_NOFILE, &r);
	}
	if (service_prepare(service, e) || tls_read(settings, &s->tls, e) || tls_check(s, e) ||
	    (s->fd = listen_bind(settings->listen, e)) < 0) {
		server_stop(s);
		return NULL;
	}
	if (!s->tls.key.data && !listen_is_loopback(s->fd))
		log_warning("Listen=%s: without TlsCertificate all traffic on the network is unencrypted",
			    settings->listen);
	return s;
}

int server_start(struct server *s, struct err *e)
{
	const char *address = s->service->settings.listen;

	if (!(s->deadlines = deadlines_start(e)))
		return -1;
	if (!(s->exports = workers_new(EXPORTS_NICE)) || !(s->others = workers_new(0)))
		return err_set(e, "out of memory");
	if (listen(s->fd, SOMAXCONN))
		return err_set(e, "Listen=%s: %s", address, strerror(errno));
	if (!(s->daemon = listen_mhd(s)))
		return err_set(e, "Listen=%s: cannot start the HTTP server", address);
	s->fd = -1;
	tls_free(&s->tls);
	s->tls = (struct tls){0};
	return 0;
}

/*
 * A socket that is closed resets the connections that the kernel has accepted for it: first there must be no more of
 * them. Drops segments that begin a connection (SYN in the flags, byte 13 of the TCP header).
 */
static void listen_end(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, ~0u),
	};

	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &(struct sock_fprog){ 4, code }, sizeof(struct sock_fprog));
	nanosleep(&(struct timespec){ 0, END_HANDSHAKE_MS * 1000000 }, NULL);
}

void server_drain(struct server *s)
{
	double until = clock_now() + END_SECONDS;
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	unsigned wanted = 0;
	int fd, one;

	atomic_store(&s->service->ending, true);
	listen_end(MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_LISTEN_FD)->listen_fd);
	fd = MHD_quiesce_daemon(s->daemon);
	atomic_store(&s->handed, 0);
	for (; fd >= 0 && (one = accept4(fd, (struct sockaddr *) &peer, &len, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;
	     len = sizeof(peer))
		wanted += MHD_add_connection(s->daemon, one, (struct sockaddr *) &peer, len) == MHD_YES;
	if (fd >= 0)
		close(fd);
	while ((deadlines_count(s->deadlines) || atomic_load(&s->handed) < wanted) && clock_now() < until) {
		/* What PostgreSQL and the parser have to do has limits of its own, and is answered afterwards. */
		if (atomic_load(&s->away) && until < clock_now() + END_REPLY)
			until = clock_now() + END_REPLY;
		deadlines_shut_idle(s->deadlines, END_IDLE);
		nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
	}
	if (deadlines_count(s->deadlines))
		log_warning("ending: %u connections are closed, which %d s were not enough for",
			    deadlines_count(s->deadlines), END_SECONDS);
}

void server_stop(struct server *s)
{
	if (!s)
		return;
	/* libmicrohttpd aborts if it has a suspended connection when it stops; the committer runs until after this. */
	workers_stop(s->exports);
	workers_stop(s->others);
	while (atomic_load(&s->away))
		nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	workers_free(s->exports);
	workers_free(s->others);
	if (s->fd >= 0)
		close(s->fd);
	tls_free(&s->tls);
	deadlines_stop(s->deadlines);
	metrics_free(s->service->metrics);
	peers_free(s->service->peers);
	free(s);
}
