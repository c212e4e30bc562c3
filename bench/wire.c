/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define HEAD_MAX 8192

int wire_address(const char *url, struct sockaddr_in *out, struct err *e)
{
	char host[64];
	unsigned port;

	*out = (struct sockaddr_in){ .sin_family = AF_INET };
	if (sscanf(url, "http://%63[0-9.]:%u", host, &port) != 2 || port > 65535 ||
	    inet_pton(AF_INET, host, &out->sin_addr) != 1)
		return err_set(e, "%s: http://ADDRESS:PORT is wanted", url);
	out->sin_port = htons(port);
	return 0;
}

static int dial(const struct sockaddr_in *to, in_addr_t from, unsigned seconds)
{
	const struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(from) };
	const struct timeval limit = { .tv_sec = seconds };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    /* The port is chosen when both ends are known: 65,536 nodes may share it. */
	    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &(int){1}, sizeof(int)) ||
	    (from && bind(fd, (const struct sockaddr *) &own, sizeof(own))) ||
	    connect(fd, (const struct sockaddr *) to, sizeof(*to))) {
		int why = errno;

		close(fd);
		errno = why;
		return -1;
	}
	return fd;
}

static int send_all(int fd, const struct buf *head, const struct buf *body)
{
	struct iovec parts[2] = { { head->data, head->len }, { body ? body->data : NULL, body ? body->len : 0 } };
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = 2 };

	while (parts[0].iov_len + parts[1].iov_len) {
		ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL);

		if (n < 0)
			return -1;
		for (int i = 0; i < 2; i++) {
			size_t gone = (size_t) n < parts[i].iov_len ? (size_t) n : parts[i].iov_len;

			parts[i].iov_base = (char *) parts[i].iov_base + gone;
			parts[i].iov_len -= gone;
			n -= gone;
		}
	}
	return 0;
}

/* The value of a header, from the first line after the status to the empty one; its length in *len, or NULL. */
static const char *header(const char *head, const char *name, size_t *len)
{
	size_t n = strlen(name);

	for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
		if (strncasecmp(line + 2, name, n) || line[2 + n] != ':')
			continue;
		line += 3 + n;
		line += strspn(line, " \t");
		*len = strcspn(line, "\r\n");
		return line;
	}
	return NULL;
}

static int read_head(const char *head, struct wire_answer *a, size_t *length)
{
	const char *value;
	size_t len;

	if (sscanf(head, "HTTP/1.%*1[01] %d", &a->status) != 1 || !(value = header(head, "Content-Length", &len)))
		return -1;
	*length = strtoull(value, NULL, 10);
	value = header(head, "Retry-After", &len);
	a->retry_after = value ? strtoul(value, NULL, 10) : 0;
	value = header(head, "Topiary-Ack", &len);
	if (value && len < sizeof(a->ack))
		snprintf(a->ack, sizeof(a->ack), "%.*s", (int) len, value);
	return 0;
}

static ssize_t more(int fd, char *to, size_t room)
{
	ssize_t n;

	do
		n = recv(fd, to, room, 0);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		errno = ECONNRESET;
	return n;
}

static int receive_head(int fd, char head[static HEAD_MAX], size_t *have, size_t *head_len)
{
	char *end = NULL;

	*have = 0;
	while (!end) {
		ssize_t n = *have < HEAD_MAX - 1 ? more(fd, head + *have, HEAD_MAX - 1 - *have) : -1;

		if (n <= 0)
			return -1;
		*have += n;
		head[*have] = '\0';
		end = strstr(head, "\r\n\r\n");
	}
	end[2] = '\0';
	*head_len = end + 4 - head;
	return 0;
}

static int receive(int fd, struct wire_answer *a)
{
	char head[HEAD_MAX];
	size_t have, head_len, length;

	a->body.len = 0;
	a->ack[0] = '\0';
	if (receive_head(fd, head, &have, &head_len) || read_head(head, a, &length) ||
	    !buf_reserve(&a->body, length + HEAD_MAX))
		return -1;
	buf_add(&a->body, head + head_len, have - head_len);
	while (a->body.len < length) {
		ssize_t n = more(fd, a->body.data + a->body.len, length - a->body.len);

		if (n <= 0)
			return -1;
		a->body.len += n;
	}
	a->body.data[a->body.len] = '\0';
	return 0;
}

int wire_exchange(const struct sockaddr_in *to, in_addr_t from, const struct buf *head, const struct buf *body,
		  unsigned seconds, struct wire_answer *a, struct err *e)
{
	int fd = dial(to, from, seconds), rc;

	if (fd < 0)
		return err_set(e, "connect: %s", strerror(errno));
	rc = send_all(fd, head, body) || receive(fd, a);
	if (rc)
		err_set(e, "no whole answer: %s", strerror(errno));
	close(fd);
	return rc ? -1 : 0;
}
