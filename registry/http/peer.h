/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "call.h"

/*
 * Checks of the sender's address. munge proves that root on some host with the key signed a request, not on which: root
 * of any node can sign for every node and as every user. So the permissions of a request also depend on the address it
 * comes from.
 */
struct peers;

/* NULL with an error, also when KnownNodes is no host list or TrustedProxies no addresses. peers_free accepts NULL. */
struct peers *peers_new(const struct settings *s, struct err *e);
void peers_free(struct peers *p);
/* The number of KnownNodes. */
size_t peers_known(const struct peers *p);

/*
 * May the sender export the node? The node must be in KnownNodes, where that is set, and the sender must have one of
 * its addresses; otherwise PeerCheck (topiary.conf(5)) decides. Root on the registry's own host is trusted. 0, or -1
 * with the reply filled. May wait for the resolver, whose results are cached for a minute.
 */
int peer_admit(struct call *c);

/*
 * From a proxy of TrustedProxies the sender is the last address of X-Forwarded-For, which the proxy has added: it
 * becomes c->peer, and c->proxied is set. forwarded: the last such header, or NULL. 0, or -1 with the reply filled.
 */
int peer_behind_proxy(struct call *c, const char *forwarded);

/*
 * The sender's address as text, of IPv6 the /64 network; empty for loopback addresses, which all users of this host
 * share.
 */
void peer_address(const struct call *c, char out[static INET6_ADDRSTRLEN]);

/*
 * The host that sent, for what is counted by host whatever names it uses: its address as text, in out. NULL if nothing
 * is known of it: PeerCheck is not refuse, so that many may share an address, or it is this host by a loopback address,
 * where root may export any node.
 */
const char *peer_host(const struct call *c, char out[static INET6_ADDRSTRLEN]);

/* Is this the first such warning about the node? */
bool peer_first_warning(struct peers *p, const char *what, const char *node);

/*
 * Is the sender on the registry's own host, with a connection of topiaryd's user, to whom root's `topiary` gives its
 * own, or of the user who signed? Root's are not enough: a proxy that runs as root forwards what any host sent. Nobody
 * behind a proxy is.
 */
bool peer_is_here(const struct call *c);

/* Does the sender have an address of the host, with no proxy between, and is that another host than this one? */
bool peer_is_host(void *call, const char *host);

/*
 * The source to which connections are counted: the address; all loopback addresses as one; the /64 network of an IPv6
 * address, in which a host may use any address. All zeros when it is no internet address.
 */
struct in6_addr peer_source(const struct sockaddr *a);

bool peer_is_loopback(const struct sockaddr *a);
