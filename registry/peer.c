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
#include <time.h>

#include "base/log.h"

#define SLOTS 8192
#define ADDRESSES 8
#define REMEMBERED 60		/* seconds */
#define WARNED_BITS (1u << 20)	/* two nodes that share a bit, one in ten at 100,000 nodes, share a warning */

struct answer {
	int rc;			/* getaddrinfo's */
	unsigned n;
	struct in6_addr address[ADDRESSES];	/* IPv4 mapped (RFC 4291, section 2.5.5.2) */
};

struct slot {
	char node[256];
	time_t until;
	struct answer answer;
};

struct peers {
	pthread_mutex_t lock;
	unsigned char warned[WARNED_BITS / 8];
	struct slot slots[SLOTS];
};

struct peers *peers_new(void)
{
	struct peers *p = calloc(1, sizeof(*p));

	if (p)
		pthread_mutex_init(&p->lock, NULL);
	return p;
}

void peers_free(struct peers *p)
{
	free(p);
}

/* FNV-1a */
static uint32_t hash(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (unsigned char) *text) * 16777619u;
	return h;
}

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static int mapped(const struct sockaddr *a, struct in6_addr *out)
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

static void resolve(const char *node, struct answer *out)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;

	*out = (struct answer){ .rc = getaddrinfo(node, NULL, &hints, &found) };
	if (out->rc)
		return;
	for (const struct addrinfo *a = found; a && out->n < ADDRESSES; a = a->ai_next)
		if (mapped(a->ai_addr, &out->address[out->n]) == 0)
			out->n++;
	freeaddrinfo(found);
}

static void look_up(struct peers *p, const char *node, struct answer *out)
{
	struct slot *s = &p->slots[hash(node) % SLOTS];
	bool known;

	pthread_mutex_lock(&p->lock);
	known = s->until > now() && !strcmp(s->node, node);
	if (known)
		*out = s->answer;
	pthread_mutex_unlock(&p->lock);
	if (known)
		return;
	resolve(node, out);
	pthread_mutex_lock(&p->lock);
	snprintf(s->node, sizeof(s->node), "%s", node);
	s->until = now() + REMEMBERED;
	s->answer = *out;
	pthread_mutex_unlock(&p->lock);
}

static bool has(const struct answer *a, const struct in6_addr *peer)
{
	for (unsigned i = 0; i < a->n; i++)
		if (IN6_ARE_ADDR_EQUAL(&a->address[i], peer))
			return true;
	return false;
}

static bool warn_first(struct peers *p, const char *node)
{
	uint32_t bit = hash(node) % WARNED_BITS;
	bool first;

	pthread_mutex_lock(&p->lock);
	first = !(p->warned[bit / 8] & 1 << bit % 8);
	p->warned[bit / 8] |= 1 << bit % 8;
	pthread_mutex_unlock(&p->lock);
	return first;
}

/* What is wrong, in words. */
static void describe(struct buf *out, const struct call *c, const struct answer *a)
{
	char address[NI_MAXHOST] = "an unknown address";
	socklen_t len = c->peer->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

	getnameinfo(c->peer, len, address, sizeof(address), NULL, 0, NI_NUMERICHOST);
	buf_printf(out, "%s: sent from %s, which is no address of it", c->node, address);
	if (a->rc)
		buf_printf(out, ": %s", gai_strerror(a->rc));
}

static int complain(struct call *c, const struct answer *a, bool refuse)
{
	struct peers *p = c->service->peers;
	struct buf words = {0};

	describe(&words, c, a);
	if (warn_first(p, c->node))
		log_warning("%s", words.data ? words.data : c->node);
	if (refuse)
		call_fail(c, a->rc == EAI_AGAIN ? 503 : 403, "%s", words.data ? words.data : c->node);
	buf_free(&words);
	return refuse ? -1 : 0;
}

int peer_admit(struct call *c)
{
	const char *how = c->service->settings.peer_check;
	struct in6_addr peer;
	struct answer a;

	if (!strcasecmp(how, "off") || !c->peer || mapped(c->peer, &peer) || is_loopback(&peer))
		return 0;
	look_up(c->service->peers, c->node, &a);
	return has(&a, &peer) ? 0 : complain(c, &a, !strcasecmp(how, "refuse"));
}
