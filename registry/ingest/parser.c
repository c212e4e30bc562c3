/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "parser.h"

#include <jansson.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "hwcmp/compare.h"
#include "shape/shape.h"
#include "worker.h"

/*
 * Notes
 *
 * Requests of all threads go through one socket, a message each, which the kernel keeps whole: there is no lock. `free`
 * counts the workers that may still be asked for; a reply comes through a socket of its own request.
 */
#define WORKERS_MIN 4
#define WORKERS_PER_CPU 2
#define QUEUE_SECONDS 10
#define REPLY_SECONDS 7	/* the worker's own limits expire first */

struct parser {
	int control;
	pid_t pid;
	unsigned workers;
	sem_t free;
};

/* --- the parent of the workers --- */

static int parent_fork(struct parser *p, const struct sandbox *s)
{
	const struct timeval timeout = { .tv_sec = REPLY_SECONDS };	/* in case the parent is stopped */
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	if ((p->pid = fork()) == 0) {
		close(pair[0]);
		worker_parent(pair[1], s);
	}
	close(pair[1]);
	p->control = pair[0];
	if (p->pid > 0 && setsockopt(p->control, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) == 0)
		return 0;
	close(p->control);
	return -1;
}

struct parser *parser_start(struct err *e)
{
	long workers = sysconf(_SC_NPROCESSORS_ONLN) * WORKERS_PER_CPU;
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
	p->workers = workers > WORKERS_MIN ? workers : WORKERS_MIN;
	sem_init(&p->free, 0, p->workers);
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

unsigned parser_workers(const struct parser *p)
{
	return p->workers;
}

/* --- requests and replies --- */

/* Sealed: the worker's mapping can be neither truncated nor changed. */
static int documents_seal(const struct buf *const documents[2], struct worker_request *q)
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

/* The socket for the worker's reply, or -1 with errno. */
static int request_submit(struct parser *p, struct worker_request *q, const struct buf *const documents[2])
{
	int pair[2], fds[REQUEST_FDS], rc = -1;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	fds[REQUEST_SOCKET] = pair[1];
	if ((fds[REQUEST_FILE] = documents_seal(documents, q)) >= 0) {
		char space[CMSG_SPACE(sizeof(fds))] = {0};
		struct iovec io = { q, sizeof(*q) };
		struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = space,
				   .msg_controllen = sizeof(space) };
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fds));
		memcpy(CMSG_DATA(c), fds, sizeof(fds));
		rc = sendmsg(p->control, &m, MSG_NOSIGNAL) == sizeof(*q) ? 0 : -1;
		close(fds[REQUEST_FILE]);
	}
	close(pair[1]);
	if (rc == 0)
		return pair[0];
	close(pair[0]);
	return -1;
}

/* All len bytes before until, which is in clock_now. */
static int receive_bytes(int fd, void *data, size_t len, double until)
{
	char *at = data;

	while (len) {
		int left = 1000 * (until - clock_now());
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

static int reply_receive(int fd, enum worker_op op, struct worker_reply *a, struct buf part[PARTS])
{
	double until = clock_now() + REPLY_SECONDS;

	if (receive_bytes(fd, a, sizeof(*a), until))
		return -1;
	for (int i = 0; i < PARTS; i++) {
		char *at = a->bytes[i] <= part_max[op][i] ? buf_reserve(&part[i], a->bytes[i]) : NULL;

		if (!at || receive_bytes(fd, at, a->bytes[i], until))
			return -1;
		at[part[i].len = a->bytes[i]] = '\0';
	}
	return 0;
}

static int parsed_fill(const struct worker_reply *a, const struct buf part[PARTS], struct parsed *out)
{
	if (!parser_validate_line(&part[PART_CORES]) || !parser_validate_line(&part[PART_HIERARCHY]) ||
	    !parser_validate_line(&part[PART_DETAIL]) ||
	    !parser_validate_shape(&part[PART_ALLOCATION], a->ncores, a->npus) ||
	    !parser_validate_facts(&part[PART_FACTS]))
		return -1;
	*out = (struct parsed){ part[PART_CORES].data, part[PART_HIERARCHY].data, part[PART_DETAIL].data,
				part[PART_ALLOCATION].data,
				a->ncores, a->npus, part[PART_FACTS].data };
	return 0;
}

/* --- operations --- */

/*
 * The caller frees the parts in every case. kept, unless NULL: the worker that has parsed the second document, -1 for
 * none; set to the one that has now.
 */
static enum parser_result worker_call(struct parser *p, struct worker_request *q, const char *name,
				      const struct buf *const documents[2], int *kept, struct worker_reply *a,
				      struct buf part[PARTS], struct err *e)
{
	enum parser_result rc = PARSER_FAILED;
	int fd = kept ? *kept : -1;

	if (clock_take(&p->free, clock_now() + QUEUE_SECONDS)) {
		err_set(e, "%s: all parser workers are busy", name);
		return PARSER_FAILED;
	}
	if (fd >= 0)
		q->bytes[0] = documents[0]->len;
	if (fd >= 0 ? !file_write(fd, q, sizeof(*q)) && !file_write(fd, documents[0]->data, documents[0]->len) :
		      (fd = request_submit(p, q, documents)) >= 0) {
		if (reply_receive(fd, q->op, a, part)) {
			err_set(e, "%s: the parser worker did not reply: out of time or memory", name);
		} else if (a->refused) {
			err_set(e, "%s: %s", name,
				parser_validate_line(&part[0]) ? part[0].data : "the document was refused");
			rc = PARSER_REFUSED;
		} else {
			rc = PARSER_OK;
		}
	} else {
		err_set(e, "%s: cannot reach a parser worker: %s", name, strerror(errno));
	}
	if (fd >= 0 && (!kept || rc != PARSER_OK)) {
		close(fd);
		fd = -1;
	}
	if (kept)
		*kept = fd;
	sem_post(&p->free);
	return rc;
}

static enum parser_result invalid_reply(const char *name, struct err *e)
{
	err_set(e, "%s: the parser worker returned an invalid reply", name);
	return PARSER_FAILED;
}

static void parts_free(struct buf part[PARTS])
{
	for (int i = 0; i < PARTS; i++)
		buf_free(&part[i]);
}

enum parser_result parser_read(struct parser *p, const char *name, const struct buf *xml, struct parsed *out,
			       int *kept, struct err *e)
{
	struct worker_request q = { .op = OP_PARSE };
	struct buf part[PARTS] = {0};
	struct worker_reply a;
	enum parser_result rc = worker_call(p, &q, name, (const struct buf *[2]){ xml }, kept, &a, part, e);

	if (rc == PARSER_OK && parsed_fill(&a, part, out))
		rc = invalid_reply(name, e);
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

enum parser_result parser_canon(struct parser *p, const char *name, const struct buf *xml, struct buf *out,
				struct err *e)
{
	struct worker_request q = { .op = OP_CANON };
	struct buf part[PARTS] = {0};
	struct worker_reply a;
	enum parser_result rc = worker_call(p, &q, name, (const struct buf *[2]){ xml }, NULL, &a, part, e);

	if (rc == PARSER_OK && !parser_validate_text(&part[0]))
		rc = invalid_reply(name, e);
	if (rc == PARSER_OK) {
		*out = part[0];
		part[0] = (struct buf){0};
	}
	parts_free(part);
	return rc;
}

enum parser_result parser_compare(struct parser *p, const char *name, const struct buf *from, const struct buf *to,
				  int drift, int *kept, char **json, int *severity, struct err *e)
{
	struct worker_request q = { .op = OP_COMPARE, .drift = drift };
	const struct buf *documents[2] = { from, to };
	struct buf part[PARTS] = {0};
	struct worker_reply a;
	enum parser_result rc = PARSER_FAILED;
	int gravest;

	if (kept && *kept >= 0)
		rc = worker_call(p, &q, name, documents, kept, &a, part, e);
	/* Its time may be over, which another worker has. */
	if (rc == PARSER_FAILED) {
		parts_free(part);
		rc = worker_call(p, &q, name, documents, NULL, &a, part, e);
	}
	gravest = rc == PARSER_OK ? parser_validate_changes(&part[0]) : -1;
	if (rc == PARSER_OK && gravest < 0)
		rc = invalid_reply(name, e);
	if (rc == PARSER_OK) {
		*json = part[0].data;
		*severity = gravest;
		part[0] = (struct buf){0};
	}
	parts_free(part);
	return rc;
}

/* --- replies of workers, which have just parsed untrusted bytes --- */

bool parser_validate_text(const struct buf *b)
{
	json_t *j = strlen(b->data) == b->len ? json_stringn(b->data, b->len) : NULL;
	bool is = j;

	json_decref(j);
	return is;
}

bool parser_validate_line(const struct buf *b)
{
	for (size_t i = 0; i < b->len; i++)
		if ((unsigned char)b->data[i] < ' ' || b->data[i] == 0x7f)
			return false;
	return b->len && parser_validate_text(b);
}

static bool is_fact(const char *line, const char *end)
{
	int tabs = 0;

	for (const char *p = line + strspn(line, "0123456789"); p < end; p++) {
		if ((unsigned char)*p < ' ' && *p != '\t')
			return false;
		if (tabs == 0 && *p != '\t')
			return false;
		tabs += *p == '\t';
	}
	return *line != '\t' && tabs == 3;
}

bool parser_validate_facts(const struct buf *b)
{
	const char *end;

	for (const char *p = b->data; *p; p = end + 1)
		if (!(end = strchr(p, '\n')) || !is_fact(p, end))
			return false;
	return parser_validate_text(b);
}

bool parser_validate_shape(const struct buf *text, unsigned cores, unsigned pus)
{
	struct shape *s = parser_validate_line(text) ? shape_parse(text->data, NULL) : NULL;
	bool fits = s && s->cores == cores && s->pus == pus;

	shape_free(s);
	return fits;
}

static bool is_change(json_t *change, int *severity)
{
	static const char *const keys[] = { "severity", "direction", "object", "what", "from", "to", "words" };
	const size_t n = sizeof(keys) / sizeof(keys[0]);
	const char *name = json_string_value(json_object_get(change, keys[0]));

	for (size_t i = 0; i < n; i++)
		if (!json_is_string(json_object_get(change, keys[i])))
			return false;
	*severity = severity_parse(name);
	return json_object_size(change) == n && *severity >= 0;
}

int parser_validate_changes(const struct buf *text)
{
	json_t *list = json_loadb(text->data, text->len, JSON_REJECT_DUPLICATES, NULL), *change;
	int gravest = json_is_array(list) ? SEVERITY_IDENTITY : -1, severity;
	size_t i;

	json_array_foreach(list, i, change) {
		if (!is_change(change, &severity)) {
			gravest = -1;
			break;
		}
		gravest = severity > gravest ? severity : gravest;
	}
	json_decref(list);
	return gravest;
}
