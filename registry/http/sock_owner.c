/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

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

static bool request_make(int fd, const struct sockaddr *peer, struct request *q)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);

	*q = (struct request){
		.head = { .nlmsg_len = sizeof(*q), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
		.body = { .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u,
			  .id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	return getsockname(fd, (struct sockaddr *) &own, &len) == 0 &&
		end_fill((struct sockaddr *) &own, &q->body.sdiag_family, &q->body.id.idiag_dport,
			 q->body.id.idiag_dst) &&
		end_fill(peer, &q->body.sdiag_family, &q->body.id.idiag_sport, q->body.id.idiag_src);
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

bool sock_owner(int fd, const struct sockaddr *peer, uid_t *uid)
{
	union answer answer;
	const struct inet_diag_msg *found = NLMSG_DATA(&answer.head);
	struct request q;
	int rc;

	if (!request_make(fd, peer, &q))
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
