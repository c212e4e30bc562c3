/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "server.h"

#include <linux/filter.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "metrics.h"
#include "peer.h"
#include "server_parts.h"

/* beyond CONNECTIONS (deadline.h): health checks are answered, other requests get 503 */
#define SPARE_CONNECTIONS 128
#define DESCRIPTORS (2 * CONNECTIONS)
/* for one node, and as many for lists: most wait for PostgreSQL, each with a thread (workers.h) */
#define READS_AT_ONCE 64
#define CHECKS_AT_ONCE 16	/* of health */
#define EXPORTS_NICE 5	/* exports yield to reads while a cluster boots */
#define TLS_THREADS 4	/* at most; without TLS one is enough for all connections */
#define END_IDLE 0.5		/* seconds: a client that has just read a reply may be sending its next request */
#define END_HANDSHAKE_MS 200	/* in which the last clients that connect have done so */
#define END_SECONDS 20		/* for clients when topiaryd ends, longer for what is handled; systemd waits for 90 */
#define END_REPLY 2		/* seconds for the replies of those */
#define PEM_MAX (1u << 20)
#define ALERT_BYTES 64		/* a server that answered a handshake has sent its certificate */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"	/* gnutls_priority_init(3) */
#define REPLY_MEMORY (256u << 20)	/* of replies being sent: twice the longest list (reads.c) */

/*
 * Notes
 *
 * What is opened, checked and listened on, and how it ends; a request's way is in request.c. Called by topiaryd's main
 * thread. libmicrohttpd's threads call the functions of request.c and on_connection; they end in server_stop, after the
 * workers, whose requests they would wait for.
 */

/* What libmicrohttpd cannot read it answers itself, with 400 or an alert of TLS, and calls nobody. */
static void report_unreadable(const struct server *s, struct MHD_Connection *conn)
{
	const struct sockaddr *a = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
	int fd = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	bool tls = *s->service->settings.tls_certificate;
	struct tcp_info info = {0};
	char peer[64], text[512];

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &(socklen_t){sizeof(info)}) || !info.tcpi_bytes_received ||
	    (tls && info.tcpi_bytes_sent > ALERT_BYTES) ||
	    getnameinfo(a, a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6), peer,
			sizeof(peer), NULL, 0, NI_NUMERICHOST))
		return;
	snprintf(text, sizeof(text), "%s: sent what is no %s. If it is a proxy that sends the PROXY protocol"
		 " (send-proxy, proxy_protocol), which topiaryd does not read, switch that off, and use X-Forwarded-For"
		 " and TrustedProxies", peer, tls ? "TLS that it accepts" : "HTTP request");
	call_log_failure(peer, text);
}

static void on_connection(void *user, struct MHD_Connection *conn, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct server *s = user;
	const struct sockaddr *peer;
	int fd;

	if (code != MHD_CONNECTION_NOTIFY_STARTED) {
		if (!deadline_remove(s->deadlines, *context))
			report_unreadable(s, conn);
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

static void tls_free(struct server *s)
{
	if (s->key.data)
		explicit_bzero(s->key.data, s->key.len);
	buf_free(&s->certificate);
	buf_free(&s->key);
}

/* listen: on the server's socket, else nowhere: libmicrohttpd reads the PEM files when it starts. NULL on failure. */
static struct MHD_Daemon *daemon_start(struct server *s, bool listen)
{
	bool tls = s->key.data;
	const unsigned how = tls ? MHD_USE_TLS : 0;
	const struct MHD_OptionItem options[] = {
		{ tls ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, s->certificate.data },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, s->key.data },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, TLS_PRIORITIES },
		{ MHD_OPTION_END, 0, NULL },
	};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!listen)
		return MHD_start_daemon(how | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, request_on_data, s,
					MHD_OPTION_ARRAY, options, MHD_OPTION_END);
	return MHD_start_daemon(how | MHD_USE_ITC | MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
		NULL, request_on_data, s, MHD_OPTION_ARRAY, options, MHD_OPTION_LISTEN_SOCKET, s->fd,
		MHD_OPTION_URI_LOG_CALLBACK, request_on_line, s,
		MHD_OPTION_NOTIFY_COMPLETED, request_on_end, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS + SPARE_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
		MHD_OPTION_THREAD_POOL_SIZE, tls && cpus > 1 ? cpus < TLS_THREADS ? (unsigned) cpus : TLS_THREADS : 0,
		MHD_OPTION_END);
}

/* Reads and checks the certificate and its key. 0 or -1. */
static int tls_prepare(struct server *s, struct err *e)
{
	const char *certificate = s->service->settings.tls_certificate, *key = s->service->settings.tls_key;
	struct MHD_Daemon *trial;

	if (!*certificate && !*key)
		return 0;
	if (!*certificate || !*key)
		return err_set(e, "TlsCertificate and TlsKey must be set together");
	if (!MHD_is_feature_supported(MHD_FEATURE_TLS))
		return err_set(e, "TlsCertificate=%s: libmicrohttpd was built without TLS", certificate);
	if (file_read(certificate, PEM_MAX, &s->certificate, e) || file_read(key, PEM_MAX, &s->key, e))
		return -1;
	if (!(trial = daemon_start(s, false)))
		return err_set(e, "TlsCertificate=%s cannot be used; check that TlsCertificate and TlsKey "
			       "belong together", certificate);
	MHD_stop_daemon(trial);
	return 0;
}

/* --- the address to listen on --- */

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
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct rlimit r;

	if (!s)
		return err_null(e, "out of memory");
	s->fd = -1;
	s->service = service;
	s->in_progress[SHARE_READS].max = s->in_progress[SHARE_LISTS].max = READS_AT_ONCE;
	s->in_progress[SHARE_CHECKS].max = CHECKS_AT_ONCE;
	/* Raise the limit to what the connections need, beside those to PostgreSQL and the parser. */
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < DESCRIPTORS) {
		r.rlim_cur = r.rlim_max < DESCRIPTORS ? r.rlim_max : DESCRIPTORS;
		setrlimit(RLIMIT_NOFILE, &r);
	}
	if (service_prepare(service, e) || tls_prepare(s, e) ||
	    (s->fd = listen_bind(settings->listen, e)) < 0) {
		server_stop(s);
		return NULL;
	}
	if (!s->key.data && !getsockname(s->fd, (struct sockaddr *) &own, &len) &&
	    !peer_is_loopback((struct sockaddr *) &own))
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
	if (!(s->daemon = daemon_start(s, true)))
		return err_set(e, "Listen=%s: cannot start the HTTP server", address);
	s->fd = -1;
	tls_free(s);
	return 0;
}

void server_drain(struct server *s)
{
	/* Drops segments that begin a connection: SYN in the flags, byte 13 of the TCP header. */
	struct sock_filter no_syn[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, ~0u),
	};
	double until = clock_now() + END_SECONDS;
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	unsigned wanted = 0;
	int fd, one;

	atomic_store(&s->service->ending, true);
	/*
	 * A socket that is closed resets the connections that the kernel has accepted for it: first there must be no
	 * more of them.
	 */
	setsockopt(MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_LISTEN_FD)->listen_fd, SOL_SOCKET, SO_ATTACH_FILTER,
		   &(struct sock_fprog){ 4, no_syn }, sizeof(struct sock_fprog));
	nanosleep(&(struct timespec){ 0, END_HANDSHAKE_MS * 1000000 }, NULL);
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
	assert(!s->daemon || s->deadlines);
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	workers_free(s->exports);
	workers_free(s->others);
	if (s->fd >= 0)
		close(s->fd);
	tls_free(s);
	deadlines_stop(s->deadlines);
	metrics_free(s->service->metrics);
	peers_free(s->service->peers);
	free(s);
}
