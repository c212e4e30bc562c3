/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "listen.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int split_address(const char *address, char host[static 256], const char **port)
{
	const char *colon = strrchr(address, ':');
	size_t len = colon ? colon - address : 0;

	if (len > 1 && *address == '[' && address[len - 1] == ']') {
		address++;
		len -= 2;
	}
	if (!colon || !colon[1] || !len || len > 255)
		return -1;
	memcpy(host, address, len);
	host[len] = '\0';
	*port = colon + 1;
	return 0;
}

int listen_on(const char *address, struct err *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found;
	const char *port;
	char host[256];
	int fd, rc;

	if (split_address(address, host, &port))
		return err_set(e, "Listen=%s: ADDRESS:PORT is wanted", address);
	if ((rc = getaddrinfo(host, port, &hints, &found)))
		return err_set(e, "Listen=%s: %s", address, gai_strerror(rc));
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
	    bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, SOMAXCONN)) {
		err_set(e, "Listen=%s: %s", address, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}
