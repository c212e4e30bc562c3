/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "peer.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "shape/hostlist.h"
#include "base/string_map.h"

#define SLOTS 8192
#define ADDRESSES 8
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
	struct string_map nodes;	/* KnownNodes; empty: any */
	pthread_mutex_t lock;
	unsigned char warned[WARNED_BITS / 8];
	struct resolver_slot slots[SLOTS];
};

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

	if (!p) {
		err_set(e, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&p->lock, NULL);
	while (p->check < PEER_REFUSE && strcasecmp(s->peer_check, check_words[p->check]))
		p->check++;
	known = (struct known_nodes){ &p->nodes, !strcasecmp(s->node_domain, "keep"), e };
	if (!*s->known_nodes || hostlist_expand(s->known_nodes, node_add, &known, e) == 0)
		return p;
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

static void node_resolve(const char *node, struct resolved *out)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;

	*out = (struct resolved){ .rc = getaddrinfo(node, NULL, &hints, &found) };
	if (out->rc)
		return;
	for (const struct addrinfo *a = found; a && out->n < ADDRESSES; a = a->ai_next)
		if (address_mapped(a->ai_addr, &out->address[out->n]) == 0)
			out->n++;
	freeaddrinfo(found);
}

static void resolve_cached(struct peers *p, const char *node, struct resolved *out)
{
	struct resolver_slot *s = &p->slots[string_hash(node) % SLOTS];
	bool known;

	pthread_mutex_lock(&p->lock);
	known = s->until > clock_now() && !strcmp(s->node, node);
	if (known)
		*out = s->resolved;
	pthread_mutex_unlock(&p->lock);
	if (known)
		return;
	node_resolve(node, out);
	pthread_mutex_lock(&p->lock);
	snprintf(s->node, sizeof(s->node), "%s", node);
	s->until = clock_now() + REMEMBERED;
	s->resolved = *out;
	pthread_mutex_unlock(&p->lock);
}

static bool has_address(const struct resolved *a, const struct in6_addr *peer)
{
	for (unsigned i = 0; i < a->n; i++)
		if (IN6_ARE_ADDR_EQUAL(&a->address[i], peer))
			return true;
	return false;
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

/* The reason of the refusal, in words. */
static void refusal_describe(struct buf *out, const struct call *c, const struct resolved *a)
{
	char address[NI_MAXHOST] = "an unknown address";
	socklen_t len = c->peer->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

	getnameinfo(c->peer, len, address, sizeof(address), NULL, 0, NI_NUMERICHOST);
	buf_printf(out, "%s: sent from %s, which is %s", c->node, address,
		   a ? "not one of its addresses" : "the registry's own host, but not by root or its signer");
	if (a && a->rc)
		buf_printf(out, ": %s", gai_strerror(a->rc));
}

/* a: the node's addresses; NULL: the sender is a process on this host that may not act for the node. */
static int refuse_peer(struct call *c, const struct resolved *a)
{
	struct peers *p = c->service->peers;
	bool refuse = p->check == PEER_REFUSE;
	struct buf words = {0};

	refusal_describe(&words, c, a);
	if (peer_first_warning(p, "address", c->node))
		log_warning("%s", words.data ? words.data : c->node);
	if (refuse)
		call_fail(c, a && a->rc == EAI_AGAIN ? 503 : 403, "%s", words.data ? words.data : c->node);
	buf_free(&words);
	return refuse ? -1 : 0;
}

/* A user of this host could relay what root of some node signed. */
static bool may_speak(const struct call *c, uid_t owner)
{
	return owner == 0 || owner == geteuid() || owner == c->signer;
}

bool peer_is_here(const struct call *c)
{
	uid_t owner;

	return c->peer && sock_owner(c->fd, c->peer, &owner) &&
	       (owner == geteuid() || (owner && owner == c->signer));
}

bool peer_is_host(void *call, const char *host)
{
	const struct call *c = call;
	struct in6_addr peer;
	struct resolved a;
	uid_t owner;

	if (!c->peer || address_mapped(c->peer, &peer) || sock_owner(c->fd, c->peer, &owner))
		return false;
	resolve_cached(c->service->peers, host, &a);
	return has_address(&a, &peer);
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
	if (sock_owner(c->fd, c->peer, &owner))
		return may_speak(c, owner) ? 0 : refuse_peer(c, NULL);
	resolve_cached(p, c->node, &a);
	return has_address(&a, &peer) ? 0 : refuse_peer(c, &a);
}
