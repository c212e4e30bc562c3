/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "parser.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "belief.h"
#include "worker.h"

#define WORKERS_MIN 4
#define WORKERS_PER_CPU 2
#define QUEUE_SECONDS 10
#define ANSWER_SECONDS 7	/* the worker's own limits come first */

struct parser {
	int control;
	pid_t pid;
	sem_t free;
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* --- the workers' parent --- */

static unsigned workers_at_once(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus * WORKERS_PER_CPU > WORKERS_MIN ? cpus * WORKERS_PER_CPU : WORKERS_MIN;
}

static int parent_fork(struct parser *p, const struct sandbox *s)
{
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS };	/* with a parent that is stopped */
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	if ((p->pid = fork()) == 0) {
		close(pair[0]);
		worker_parent(pair[1], s);
	}
	close(pair[1]);
	p->control = pair[0];
	if (p->pid > 0 && setsockopt(p->control, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0)
		return 0;
	close(p->control);
	return -1;
}

struct parser *parser_start(struct err *e)
{
	struct parser *p = calloc(1, sizeof(*p));
	struct sandbox s;
	int rc;

	if (!p || sandbox_make(&s, e)) {
		free(p);
		return NULL;
	}
	if ((rc = parent_fork(p, &s)))
		err_set(e, "parser: %s", strerror(errno));
	sandbox_free(&s);
	if (rc) {
		free(p);
		return NULL;
	}
	sem_init(&p->free, 0, workers_at_once());
	return p;
}

void parser_stop(struct parser *p)
{
	if (!p)
		return;
	close(p->control);
	waitpid(p->pid, NULL, 0);
	sem_destroy(&p->free);
	free(p);
}

pid_t parser_pid(const struct parser *p)
{
	return p->pid;
}

/* --- a question and its answer --- */

/* Nobody can change the file any more: what a worker has mapped is neither cut short nor exchanged under it. */
static int documents_seal(const struct buf *const documents[2], struct question *q)
{
	int fd = memfd_create("documents", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	for (int i = 0; i < 2 && documents[i]; i++) {
		q->bytes[i] = documents[i]->len;
		if (file_write(fd, documents[i]->data, documents[i]->len))
			goto error;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
error:
	close(fd);
	return -1;
}

static int question_send(int control, struct question *q, const int fds[QUESTION_FDS])
{
	char space[CMSG_SPACE(sizeof(int[QUESTION_FDS]))] = {0};
	struct iovec io = { q, sizeof(*q) };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int[QUESTION_FDS]));
	memcpy(CMSG_DATA(c), fds, sizeof(int[QUESTION_FDS]));
	return sendmsg(control, &m, MSG_NOSIGNAL) == sizeof(*q) ? 0 : -1;
}

/* The socket on which a worker will answer, or -1 with errno. */
static int question_put(struct parser *p, struct question *q, const struct buf *const documents[2])
{
	int pair[2], fds[QUESTION_FDS], rc = -1;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	fds[QUESTION_SOCKET] = pair[1];
	if ((fds[QUESTION_FILE] = documents_seal(documents, q)) >= 0) {
		rc = question_send(p->control, q, fds);
		close(fds[QUESTION_FILE]);
	}
	close(pair[1]);
	if (rc == 0)
		return pair[0];
	close(pair[0]);
	return -1;
}

/* All len bytes before until, which is in now_ms. */
static int receive(int fd, void *data, size_t len, int64_t until)
{
	char *at = data;

	while (len) {
		int64_t left = until - now_ms();
		ssize_t n = left > 0 && poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, left) > 0 ? read(fd, at, len) : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		len -= n;
	}
	return 0;
}

static int answer_receive(int fd, enum ask ask, struct answer *a, struct buf part[PARTS])
{
	int64_t until = now_ms() + 1000 * ANSWER_SECONDS;

	if (receive(fd, a, sizeof(*a), until))
		return -1;
	for (int i = 0; i < PARTS; i++) {
		char *at = a->bytes[i] <= part_max[ask][i] ? buf_reserve(&part[i], a->bytes[i]) : NULL;

		if (!at || receive(fd, at, a->bytes[i], until))
			return -1;
		at[part[i].len = a->bytes[i]] = '\0';
	}
	return 0;
}

static int parsed_take(const struct answer *a, const struct buf part[PARTS], struct parsed *out)
{
	if (!belief_line(&part[PART_CORES]) || !belief_line(&part[PART_HIERARCHY]) || !belief_line(&part[PART_DETAIL]) ||
	    !belief_shape(&part[PART_ALLOCATION], a->ncores, a->npus) || !belief_facts(&part[PART_FACTS]))
		return -1;
	*out = (struct parsed){ part[PART_CORES].data, part[PART_HIERARCHY].data, part[PART_DETAIL].data, part[PART_ALLOCATION].data,
				a->ncores, a->npus, part[PART_FACTS].data };
	return 0;
}

/* --- the whole --- */

static enum parser_result converse(int fd, enum ask ask, const char *name, struct answer *a, struct buf part[PARTS], struct err *e)
{
	if (answer_receive(fd, ask, a, part)) {
		err_set(e, "%s: reading the document took too much time or memory", name);
		return PARSER_FAILED;
	}
	if (!a->refused)
		return PARSER_OK;
	err_set(e, "%s: %s", name, belief_line(&part[0]) ? part[0].data : "the document is refused");
	return PARSER_REFUSED;
}

/* Parts are the caller's, whatever comes back. */
static enum parser_result ask_worker(struct parser *p, struct question *q, const char *name, const struct buf *const documents[2],
				     struct answer *a, struct buf part[PARTS], struct err *e)
{
	enum parser_result rc = PARSER_FAILED;
	struct timespec until;
	int fd;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += QUEUE_SECONDS;
	if (sem_timedwait(&p->free, &until)) {
		err_set(e, "%s: all readers of documents are busy", name);
		return PARSER_FAILED;
	}
	if ((fd = question_put(p, q, documents)) >= 0) {
		rc = converse(fd, q->ask, name, a, part, e);
		close(fd);
	} else {
		err_set(e, "%s: no reader for the document: %s", name, strerror(errno));
	}
	sem_post(&p->free);
	return rc;
}

static enum parser_result answer_broken(const char *name, struct err *e)
{
	err_set(e, "%s: the document broke its reader", name);
	return PARSER_FAILED;
}

static void parts_free(struct buf part[PARTS])
{
	for (int i = 0; i < PARTS; i++)
		buf_free(&part[i]);
}

enum parser_result parser_read(struct parser *p, const char *name, const struct buf *xml, struct parsed *out, struct err *e)
{
	struct question q = { .ask = ASK_READ };
	struct buf part[PARTS] = {0};
	struct answer a;
	enum parser_result rc = ask_worker(p, &q, name, (const struct buf *[2]){ xml }, &a, part, e);

	if (rc == PARSER_OK && parsed_take(&a, part, out))
		rc = answer_broken(name, e);
	if (rc != PARSER_OK)
		parts_free(part);
	return rc;
}

void parsed_free(struct parsed *d)
{
	free(d->cores);
	free(d->hierarchy);
	free(d->detail);
	free(d->allocation);
	free(d->facts);
	*d = (struct parsed){0};
}

enum parser_result parser_canon(struct parser *p, const char *name, const struct buf *xml, struct buf *out, struct err *e)
{
	struct question q = { .ask = ASK_CANON };
	struct buf part[PARTS] = {0};
	struct answer a;
	enum parser_result rc = ask_worker(p, &q, name, (const struct buf *[2]){ xml }, &a, part, e);

	if (rc == PARSER_OK && !belief_text(&part[0]))
		rc = answer_broken(name, e);
	if (rc == PARSER_OK) {
		*out = part[0];
		part[0] = (struct buf){0};
	}
	parts_free(part);
	return rc;
}

enum parser_result parser_compare(struct parser *p, const char *name, const struct buf *from, const struct buf *to, int drift,
				  char **json, int *severity, struct err *e)
{
	struct question q = { .ask = ASK_COMPARE, .drift = drift };
	struct buf part[PARTS] = {0};
	struct answer a;
	enum parser_result rc = ask_worker(p, &q, name, (const struct buf *[2]){ from, to }, &a, part, e);
	int gravest = rc == PARSER_OK ? belief_changes(&part[0]) : -1;

	if (rc == PARSER_OK && gravest < 0)
		rc = answer_broken(name, e);
	if (rc == PARSER_OK) {
		*json = part[0].data;
		*severity = gravest;
		part[0] = (struct buf){0};
	}
	parts_free(part);
	return rc;
}
