/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "server_parts.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool listen_is_loopback(int fd)
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

int listen_bind(const char *address, struct err *e)
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
