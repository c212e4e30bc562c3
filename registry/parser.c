/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "parser.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sandbox.h"
#include "topo/canon.h"
#include "topo/pack.h"

#define WORKERS 4
#define QUEUE_SECONDS 10
#define ANSWER_SECONDS 7	/* the worker's own limits come first */
#define NAME_MAX_BYTES 256

struct parser {
	int control;
	pid_t pid;
	sem_t free;
};

/* What goes to a worker, followed by the zstd frame. */
struct question {
	char name[NAME_MAX_BYTES];
	char sha256[HASH_HEX];
	uint64_t zip_bytes, length;
};

/* What comes back, followed by the parts: when refused, only the first, the reason. */
enum { ORIGINAL, XML, SHAPE, HOST, PARTS };

struct answer {
	uint32_t refused;
	uint32_t bytes[PARTS];
};

static const uint32_t part_max[PARTS] = { CANON_MAX_BYTES, 2 * CANON_MAX_BYTES, 1 << 20, 1024 };

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* Both ways: whole or not at all; until is in now_ms, 0 waits for ever. */
static int transfer(int fd, short event, void *data, size_t len, int64_t until)
{
	char *at = data;

	while (len) {
		struct pollfd p = { fd, event, 0 };
		ssize_t n;

		if (until && poll(&p, 1, until > now_ms() ? until - now_ms() : 0) <= 0)
			return -1;
		n = event == POLLIN ? read(fd, at, len) : write(fd, at, len);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return -1;
		at += n;
		len -= n;
	}
	return 0;
}

/* The worker. */

static int worker_parse(const struct question *q, const char *zip, struct buf *original, struct canon *canon, struct err *e)
{
	char sha256[HASH_HEX];

	if (zip_open(zip, q->zip_bytes, CANON_MAX_BYTES, original, e))
		return -1;
	hash_hex(original->data, original->len, sha256);
	if (original->len != q->length || strcmp(sha256, q->sha256))
		return err_set(e, "the body is not the document that was signed");
	return canon_parse(original->data, original->len, q->name, canon, e);
}

static void worker(int fd)
{
	struct question q;
	struct buf original = {0};
	struct canon canon = {0};
	struct answer a = {0};
	struct err e = {0};
	const char *part[PARTS];
	char *zip;

	if (sandbox_enter(fd) || transfer(0, POLLIN, &q, sizeof(q), 0) || !(zip = malloc(q.zip_bytes)) ||
	    transfer(0, POLLIN, zip, q.zip_bytes, 0))
		_exit(1);
	if (worker_parse(&q, zip, &original, &canon, &e)) {
		a.refused = 1;
		part[0] = e.text;
		a.bytes[0] = strlen(e.text);
	} else {
		part[ORIGINAL] = original.data;
		part[XML] = canon.xml.data;
		part[SHAPE] = canon.shape;
		part[HOST] = canon.host;
		a.bytes[ORIGINAL] = original.len;
		a.bytes[XML] = canon.xml.len;
		a.bytes[SHAPE] = strlen(canon.shape);
		a.bytes[HOST] = canon.host ? strlen(canon.host) : 0;
	}
	if (transfer(0, POLLOUT, &a, sizeof(a), 0))
		_exit(1);
	for (int i = 0; i < PARTS; i++)
		if (a.bytes[i] && transfer(0, POLLOUT, (void *) part[i], a.bytes[i], 0))
			_exit(1);
	_exit(0);
}

/* The parent of the workers: one thread, and nothing in it but this loop. */

static int receive_fd(int control)
{
	char byte, space[CMSG_SPACE(sizeof(int))];
	struct iovec io = { &byte, 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	struct cmsghdr *c;
	ssize_t n;
	int fd;

	while ((n = recvmsg(control, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (n <= 0 || !(c = CMSG_FIRSTHDR(&m)) || c->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static void parent(int control)
{
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "topiaryd-parse");
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* A terminal's Ctrl-C reaches the whole group; topiaryd ends us when its requests are done. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	while ((fd = receive_fd(control)) >= 0) {
		if (fork() == 0)
			worker(fd);
		close(fd);
	}
	_exit(0);
}

/* topiaryd's side. */

struct parser *parser_start(struct err *e)
{
	struct parser *p = calloc(1, sizeof(*p));
	int pair[2];

	if (!p || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) || (p->pid = fork()) < 0) {
		err_set(e, "parser: %s", strerror(errno));
		free(p);
		return NULL;
	}
	if (p->pid == 0) {
		close(pair[0]);
		parent(pair[1]);
	}
	close(pair[1]);
	p->control = pair[0];
	sem_init(&p->free, 0, WORKERS);
	return p;
}

void parser_stop(struct parser *p)
{
	if (!p)
		return;
	close(p->control);
	waitpid(p->pid, NULL, 0);
	free(p);
}

pid_t parser_pid(const struct parser *p)
{
	return p->pid;
}

static int send_fd(int control, int fd)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec io = { &byte, 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(control, &m, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static int worker_new(struct parser *p, struct err *e)
{
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_set(e, "parser: %s", strerror(errno));
	rc = send_fd(p->control, pair[1]);
	close(pair[1]);
	if (rc == 0)
		return pair[0];
	close(pair[0]);
	return err_set(e, "parser: %s", strerror(errno));
}

static int receive_parts(int fd, const struct answer *a, struct buf part[PARTS], int64_t until)
{
	for (int i = 0; i < PARTS; i++) {
		char *at = a->bytes[i] <= part_max[i] ? buf_reserve(&part[i], a->bytes[i]) : NULL;

		if (!at || transfer(fd, POLLIN, at, a->bytes[i], until))
			return -1;
		at[part[i].len = a->bytes[i]] = '\0';
	}
	return 0;
}

/* What a worker says is believed only as far as it is checked: it has just read a stranger's bytes. */
static int accept_parts(struct buf part[PARTS], const char *sha256, struct parsed *out)
{
	char got[HASH_HEX];

	hash_hex(part[ORIGINAL].data, part[ORIGINAL].len, got);
	if (strcmp(got, sha256) || !part[XML].len || !part[SHAPE].len ||
	    strlen(part[SHAPE].data) != part[SHAPE].len || strlen(part[HOST].data) != part[HOST].len)
		return -1;
	if (!part[HOST].len)
		buf_free(&part[HOST]);
	*out = (struct parsed){ part[ORIGINAL], part[XML], part[SHAPE].data, part[HOST].data };
	return 0;
}

static enum parser_result converse(int fd, struct question *q, const struct buf *zip, struct parsed *out, struct err *e)
{
	int64_t until = now_ms() + 1000 * ANSWER_SECONDS;
	struct buf part[PARTS] = {0};
	enum parser_result rc = PARSER_FAILED;
	struct answer a;

	if (transfer(fd, POLLOUT, q, sizeof(*q), until) || transfer(fd, POLLOUT, zip->data, zip->len, until) ||
	    transfer(fd, POLLIN, &a, sizeof(a), until) || receive_parts(fd, &a, part, until)) {
		err_set(e, "%s: reading the document took too much time or memory", q->name);
	} else if (a.refused) {
		err_set(e, "%s: %s", q->name, part[0].data);
		rc = PARSER_REFUSED;
	} else if (accept_parts(part, q->sha256, out)) {
		err_set(e, "%s: the document broke its reader", q->name);
	} else {
		return PARSER_OK;
	}
	for (int i = 0; i < PARTS; i++)
		buf_free(&part[i]);
	return rc;
}

enum parser_result parser_read(struct parser *p, const char *name, const struct buf *zip, size_t length,
			       const char sha256[static HASH_HEX], struct parsed *out, struct err *e)
{
	struct question q = { .zip_bytes = zip->len, .length = length };
	enum parser_result rc = PARSER_FAILED;
	struct timespec until;
	int fd;

	strncpy(q.name, name, sizeof(q.name) - 1);
	memcpy(q.sha256, sha256, HASH_HEX);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += QUEUE_SECONDS;
	if (sem_timedwait(&p->free, &until)) {
		err_set(e, "parser: all workers are busy");
		return PARSER_FAILED;
	}
	if ((fd = worker_new(p, e)) >= 0) {
		rc = converse(fd, &q, zip, out, e);
		close(fd);
	}
	sem_post(&p->free);
	return rc;
}

void parsed_free(struct parsed *d)
{
	buf_free(&d->original);
	buf_free(&d->xml);
	free(d->shape);
	free(d->host);
	*d = (struct parsed){0};
}
