/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netdb.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/settings_here.h"
#include "base/string_map.h"

/*
 * Notes
 *
 * KnownNodes and TrustedProxies do not change. The lock of peers is of its slots and of what was warned of, and is not
 * held while the resolver is waited for: two threads may ask for one name. That of sock_diag(7) is held from a question
 * to its answer. Called in workers, and peer_source by all threads.
 */
#define SLOTS 8192
#define ADDRESSES 32	/* of a name: a node may have one a rail and family */
#define PROXIES 8
#define REMEMBERED 60		/* seconds */
#define WARNED_BITS (1u << 20)	/* two nodes that share a bit, one in ten at 100,000 nodes, share a warning */

struct resolved {
	int rc;			/* getaddrinfo's */
	unsigned n;
	struct in6_addr address[ADDRESSES];	/* IPv4 mapped (RFC 4291, section 2.5.5.2) */
};

struct resolver_slot {
	char node[256];
	double until;		/* in clock_now */
	struct resolved resolved;
};

enum peer_check { PEER_OFF, PEER_WARN, PEER_REFUSE };
static const char *const check_words[] = { "off", "warn", "refuse" };

struct peers {
	enum peer_check check;
	struct resolved proxies;	/* TrustedProxies */
	struct string_map nodes;	/* KnownNodes; empty: any */
	pthread_mutex_t lock;
	unsigned char warned[WARNED_BITS / 8];
	struct resolver_slot slots[SLOTS];
};

static int address_mapped(const struct sockaddr *a, struct in6_addr *out)
{
	if (a->sa_family == AF_INET6) {
		*out = ((const struct sockaddr_in6 *) a)->sin6_addr;
		return 0;
	}
	if (a->sa_family != AF_INET)
		return -1;
	*out = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
	memcpy(&out->s6_addr[12], &((const struct sockaddr_in *) a)->sin_addr, 4);
	return 0;
}

/* An address as digits, of either family. */
static int address_parse(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *) out;
	struct sockaddr_in *in = (struct sockaddr_in *) out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
		out->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
		out->ss_family = AF_INET6;
	else
		return -1;
	return 0;
}

static bool has_address(const struct resolved *a, const struct in6_addr *peer)
{
	for (unsigned i = 0; i < a->n; i++)
		if (IN6_ARE_ADDR_EQUAL(&a->address[i], peer))
			return true;
	return false;
}

/* True for a word that cannot be added. */
static bool proxy_add(void *user, const char *word)
{
	struct resolved *proxies = user;
	struct sockaddr_storage a;

	return proxies->n == PROXIES || address_parse(word, &a) ||
	       address_mapped((struct sockaddr *) &a, &proxies->address[proxies->n++]);
}

struct known_nodes {
	struct string_map *names;
	bool domain;
	struct err *e;
};

static int node_add(const char *name, void *user)
{
	const struct known_nodes *k = user;
	char node[HOSTLIST_MAX_NAME + 1];

	snprintf(node, sizeof(node), "%s", name);
	if (!hostlist_name_canonical(node, k->domain))
		return err_set(k->e, "%s: an address or a number is not a node's name", name);
	return string_map_add(k->names, node) == STRING_MAP_NONE ? err_set(k->e, "out of memory") : 0;
}

struct peers *peers_new(const struct settings *s, struct err *e)
{
	struct peers *p = calloc(1, sizeof(*p));
	struct known_nodes known;

	if (!p)
		return err_null(e, "out of memory");
	pthread_mutex_init(&p->lock, NULL);
	while (p->check < PEER_REFUSE && strcasecmp(s->peer_check, check_words[p->check]))
		p->check++;
	known = (struct known_nodes){ &p->nodes, !strcasecmp(s->node_domain, "keep"), e };
	if (settings_list_any(s->trusted_proxies, proxy_add, &p->proxies))
		err_set(e, "TrustedProxies=%s: expected at most %d addresses, as numbers", s->trusted_proxies,
			PROXIES);
	else if (!*s->known_nodes || hostlist_expand(s->known_nodes, node_add, &known, e) == 0)
		return p;
	else
		err_within(e, "KnownNodes");
	peers_free(p);
	return NULL;
}

void peers_free(struct peers *p)
{
	if (p)
		string_map_free(&p->nodes);
	free(p);
}

size_t peers_known(const struct peers *p)
{
	return p->nodes.count;
}

static bool is_loopback(const struct in6_addr *a)
{
	return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

struct in6_addr peer_source(const struct sockaddr *a)
{
	struct in6_addr out;

	if (!a || address_mapped(a, &out))
		return in6addr_any;
	if (is_loopback(&out))
		return in6addr_loopback;
	/* A host may use any address of such a network (RFC 4291, section 2.5.4). */
	if (!IN6_IS_ADDR_V4MAPPED(&out))
		memset(&out.s6_addr[8], 0, 8);
	return out;
}

bool peer_is_loopback(const struct sockaddr *a)
{
	struct in6_addr source = peer_source(a);

	return IN6_IS_ADDR_LOOPBACK(&source);
}

void peer_address(const struct call *c, char out[static INET6_ADDRSTRLEN])
{
	struct in6_addr a = peer_source(c->peer);

	*out = '\0';
	if (!IN6_IS_ADDR_UNSPECIFIED(&a) && !IN6_IS_ADDR_LOOPBACK(&a))
		inet_ntop(AF_INET6, &a, out, INET6_ADDRSTRLEN);
}

const char *peer_host(const struct call *c, char out[static INET6_ADDRSTRLEN])
{
	struct in6_addr a;

	if (c->service->peers->check != PEER_REFUSE || !c->peer || address_mapped(c->peer, &a) || is_loopback(&a))
		return NULL;
	if (IN6_IS_ADDR_V4MAPPED(&a))
		return inet_ntop(AF_INET, &a.s6_addr[12], out, INET6_ADDRSTRLEN);
	return inet_ntop(AF_INET6, &a, out, INET6_ADDRSTRLEN);
}

static void resolve_cached(struct peers *p, const char *node, struct resolved *out)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	struct resolver_slot *s = &p->slots[string_hash(node) % SLOTS];
	bool known;

	pthread_mutex_lock(&p->lock);
	known = s->until > clock_now() && !strcmp(s->node, node);
	if (known)
		*out = s->resolved;
	pthread_mutex_unlock(&p->lock);
	if (known)
		return;
	*out = (struct resolved){ .rc = getaddrinfo(node, NULL, &hints, &found) };
	for (const struct addrinfo *a = found; a && out->n < ADDRESSES; a = a->ai_next)
		if (address_mapped(a->ai_addr, &out->address[out->n]) == 0)
			out->n++;
	if (found)
		freeaddrinfo(found);
	pthread_mutex_lock(&p->lock);
	snprintf(s->node, sizeof(s->node), "%s", node);
	s->until = clock_now() + REMEMBERED;
	s->resolved = *out;
	pthread_mutex_unlock(&p->lock);
}

bool peer_first_warning(struct peers *p, const char *what, const char *node)
{
	uint32_t bit = (string_hash(node) ^ string_hash(what)) % WARNED_BITS;
	bool first;

	pthread_mutex_lock(&p->lock);
	first = !(p->warned[bit / 8] & 1 << bit % 8);
	p->warned[bit / 8] |= 1 << bit % 8;
	pthread_mutex_unlock(&p->lock);
	return first;
}

/* a: the node's addresses; NULL: the sender is a process on this host that may not act for the node. */
static int refuse_peer(struct call *c, const struct resolved *a)
{
	struct peers *p = c->service->peers;
	socklen_t len = c->peer->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	char address[NI_MAXHOST] = "an unknown address";
	bool refuse = p->check == PEER_REFUSE;
	struct buf words = {0};

	getnameinfo(c->peer, len, address, sizeof(address), NULL, 0, NI_NUMERICHOST);
	buf_printf(&words, "%s: sent from %s, which is %s", c->node, address,
		   a ? "not one of its addresses" : "the registry's own host, but not by root or its signer");
	if (a && a->rc)
		buf_printf(&words, ": %s", gai_strerror(a->rc));
	if (peer_first_warning(p, "address", c->node))
		log_warning("%s", words.data ? words.data : c->node);
	if (refuse)
		call_fail(c, a && a->rc == EAI_AGAIN ? 503 : 403, "%s", words.data ? words.data : c->node);
	buf_free(&words);
	return refuse ? -1 : 0;
}

/* --- the process at the other end of a connection of this host --- */

#define REPLY_SECONDS 1	/* the kernel answers at once */

struct request {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

union answer {
	struct nlmsghdr head;
	char space[1024];
};

/* An IPv4 client of a dual-stack socket is an IPv4 socket to the kernel (RFC 4291, section 2.5.5.2). */
static bool end_fill(const struct sockaddr *a, unsigned char *family, __be16 *port, __be32 address[4])
{
	if (a->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *) a;

		*family = AF_INET;
		*port = in->sin_port;
		memcpy(address, &in->sin_addr, 4);
	} else if (a->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *) a;
		bool v4 = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);

		*family = v4 ? AF_INET : AF_INET6;
		*port = in6->sin6_port;
		memcpy(address, in6->sin6_addr.s6_addr + (v4 ? 12 : 0), v4 ? 4 : 16);
	} else {
		return false;
	}
	return true;
}

/* Of all requests: a socket costs the kernel more than the question. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int diag = -1;

/* 0 with the kernel's answer, or -1. The lock is held. */
static int ask_kernel(struct request *q, union answer *out)
{
	static unsigned asked;
	ssize_t n;

	if (diag < 0) {
		diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
		setsockopt(diag, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = REPLY_SECONDS },
			   sizeof(struct timeval));
	}
	q->head.nlmsg_seq = ++asked;
	if (send(diag, q, sizeof(*q), 0) != sizeof(*q))
		goto error;
	/* A late answer to an earlier question is skipped. */
	do {
		if ((n = recv(diag, out, sizeof(*out), 0)) < (ssize_t) NLMSG_LENGTH(0))
			goto error;
	} while (out->head.nlmsg_seq != asked);
	return n < (ssize_t) NLMSG_LENGTH(sizeof(struct inet_diag_msg)) ? -1 : 0;
error:
	if (diag >= 0)
		close(diag);
	diag = -1;
	return -1;
}

/*
 * The user of the process at the other end of a TCP connection. The kernel knows it when that end is on this host (in
 * this network namespace), and no credential need be trusted for it. fd is the connection, peer its other end. True
 * with *uid; false when the other end is on another host, or sock_diag(7) is not available.
 */
static bool sock_owner(int fd, const struct sockaddr *peer, uid_t *uid)
{
	union answer answer;
	const struct inet_diag_msg *found = NLMSG_DATA(&answer.head);
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct request q = {
		.head = { .nlmsg_len = sizeof(q), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
		.body = { .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u,
			  .id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	int rc;

	if (getsockname(fd, (struct sockaddr *) &own, &len) ||
	    !end_fill((struct sockaddr *) &own, &q.body.sdiag_family, &q.body.id.idiag_dport, q.body.id.idiag_dst) ||
	    !end_fill(peer, &q.body.sdiag_family, &q.body.id.idiag_sport, q.body.id.idiag_src))
		return false;
	pthread_mutex_lock(&lock);
	rc = ask_kernel(&q, &answer);
	pthread_mutex_unlock(&lock);
	/* Sockets in TIME_WAIT and orphans have no owner, although the kernel reports root. */
	if (rc || answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || !found->idiag_inode ||
	    found->id.idiag_sport != q.body.id.idiag_sport || found->id.idiag_dport != q.body.id.idiag_dport)
		return false;
	*uid = found->idiag_uid;
	return true;
}

/* --- who may do what --- */

bool peer_is_here(const struct call *c)
{
	uid_t owner;

	return c->peer && !c->proxied && sock_owner(c->fd, c->peer, &owner) &&
	       (owner == geteuid() || (owner && owner == c->signer));
}

bool peer_is_host(void *call, const char *host)
{
	const struct call *c = call;
	struct in6_addr peer;
	struct resolved a;
	uid_t owner;

	if (!c->peer || c->proxied || address_mapped(c->peer, &peer) || sock_owner(c->fd, c->peer, &owner))
		return false;
	resolve_cached(c->service->peers, host, &a);
	return has_address(&a, &peer);
}

int peer_behind_proxy(struct call *c, const char *forwarded)
{
	const char *client = forwarded ? strrchr(forwarded, ',') : NULL;
	struct in6_addr proxy;
	char address[INET6_ADDRSTRLEN];

	if (!forwarded || !c->peer || address_mapped(c->peer, &proxy) ||
	    !has_address(&c->service->peers->proxies, &proxy))
		return 0;
	client = client ? client + 1 : forwarded;
	client += strspn(client, " \t");
	snprintf(address, sizeof(address), "%.*s", (int) strcspn(client, " \t"), client);
	if (address_parse(address, &c->client))
		return call_fail(c, 400, "the last element of X-Forwarded-For, which a proxy of TrustedProxies sent, is"
				 " no address");
	c->peer = (struct sockaddr *) &c->client;
	c->proxied = true;
	return 0;
}

int peer_admit(struct call *c)
{
	struct peers *p = c->service->peers;
	struct in6_addr peer;
	struct resolved a;
	uid_t owner;

	if (p->nodes.count && string_map_find(&p->nodes, c->node) == STRING_MAP_NONE)
		return call_fail(c, 403, "%s: the node is not in KnownNodes", c->node);
	if (p->check == PEER_OFF || !c->peer || address_mapped(c->peer, &peer))
		return 0;
	if (!c->proxied && sock_owner(c->fd, c->peer, &owner))
		/* A user of this host could relay what root of some node signed. */
		return owner == 0 || owner == geteuid() || owner == c->signer ? 0 : refuse_peer(c, NULL);
	resolve_cached(p, c->node, &a);
	return has_address(&a, &peer) ? 0 : refuse_peer(c, &a);
}
