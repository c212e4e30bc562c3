/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "worker.h"

#include <errno.h>
#include <jansson.h>
#include <libxml/parser.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "hwxml/canon.h"
#include "hwcmp/compare.h"
#include "shape/shape.h"
#include "shape/strings.h"

#define STRING(x) STRING_OF(x)
#define STRING_OF(x) #x
#define FACTS_MAX 20000u	/* the largest machines have hundreds; each is a row in the database */
#define CHANGES_MAX 1000	/* listed one by one */

const uint32_t part_max[OP_COUNT][PARTS] = {
	[OP_PARSE] = { 1 << 20, 1 << 20, CANON_MAX_BYTES, 1 << 20, 2 * CANON_MAX_BYTES },
	[OP_CANON] = { 2 * CANON_MAX_BYTES },
	[OP_COMPARE] = { 4 << 20 },
};

/* Nothing is freed: the worker exits. */
struct work {
	const struct worker_request *q;
	const char *document[2];
	struct worker_reply reply;
	const char *part[PARTS];
};

static void part_set(struct work *w, unsigned i, const char *data, size_t len)
{
	w->part[i] = data;
	w->reply.bytes[i] = len <= UINT32_MAX ? len : UINT32_MAX;
}

/* --- the operations --- */

/* The snapshot for slurmctld: a shape that it could not read is refused here, where the node learns why. */
static int check_allocation(const struct strings *s, struct err *e)
{
	struct shape *shape = shape_parse(s->allocation, e);
	int rc = 0;

	if (!shape)
		rc = err_within(e, "its shape");
	else if (shape->cores != s->ncores || shape->pus != s->npus)
		rc = err_set(e, "its shape has %u cores and %u PUs, but the document has %u and %u", shape->cores,
			     shape->pus, s->ncores, s->npus);
	shape_free(shape);
	return rc;
}

/* At most FACTS_MAX occurrences of a word. */
static int check_count(const char *text, size_t len, const char *word, const char *what, struct err *e)
{
	const char *end = text + len;
	unsigned n = 0;

	for (; (text = memmem(text, end - text, word, strlen(word))); text += strlen(word))
		if (++n > FACTS_MAX)
			return err_set(e, "more than %u %s, which is the most that is allowed", FACTS_MAX, what);
	return 0;
}

static int op_parse(struct work *w, struct err *e)
{
	struct buf facts = {0};
	struct strings s;
	struct tree *t;

	/* Before parsing, so that refusing by size costs next to nothing. */
	if (check_count(w->document[0], w->q->bytes[0], "<info", "infos", e))
		return -1;
	if (!(t = tree_parse(w->document[0], w->q->bytes[0], "topology.xml", e)) || strings_make(t, &s, e) ||
	    check_allocation(&s, e))
		return -1;
	tree_facts(t, &facts);
	if (facts.failed)
		return err_set(e, "out of memory");
	if (facts.len && check_count(facts.data, facts.len, "\n", "facts", e))
		return -1;
	w->reply.ncores = s.ncores;
	w->reply.npus = s.npus;
	part_set(w, PART_CORES, s.cores, strlen(s.cores));
	part_set(w, PART_HIERARCHY, s.hierarchy, strlen(s.hierarchy));
	part_set(w, PART_DETAIL, s.detail, strlen(s.detail));
	part_set(w, PART_ALLOCATION, s.allocation, strlen(s.allocation));
	part_set(w, PART_FACTS, facts.data, facts.len);
	return 0;
}

static int op_canon(struct work *w, struct err *e)
{
	struct canon c;

	if (canon_parse(w->document[0], w->q->bytes[0], "topology.xml", &c, e))
		return -1;
	part_set(w, 0, c.xml.data, c.xml.len);
	return 0;
}

/* In place of the changes beyond CHANGES_MAX. */
static json_t *rest_json(const struct changes *c, size_t from, size_t n)
{
	char words[64];

	snprintf(words, sizeof(words), "%zu more changes", n);
	return change_to_json(&(struct change){ .severity = c->list[from].severity, .direction = CHANGE_CHANGED,
					     .object = "machine",
					     .what = "", .from = "", .to = "", .words = words });
}

static char *changes_json(const struct changes *c, bool drift)
{
	json_t *list = json_array();
	size_t n = c->n, listed;
	bool failed = !list;

	/* Most severe first: identity is at the end. */
	while (drift && n && c->list[n - 1].severity == SEVERITY_IDENTITY)
		n--;
	listed = n > CHANGES_MAX ? CHANGES_MAX : n;
	for (size_t i = 0; i < listed; i++)
		failed |= json_array_append_new(list, change_to_json(&c->list[i]));
	if (listed < n)
		failed |= json_array_append_new(list, rest_json(c, listed, n - listed));
	return failed ? NULL : json_dumps(list, JSON_COMPACT);
}

static int op_compare(struct work *w, struct err *e)
{
	struct tree *from = tree_parse(w->document[0], w->q->bytes[0], "base.xml", e);
	struct tree *to = from ? tree_parse(w->document[1], w->q->bytes[1], "topology.xml", e) : NULL;
	struct changes c;
	char *json;

	if (!to || compare_trees(from, to, &c, e))
		return -1;
	if (!(json = changes_json(&c, w->q->drift)))
		return err_set(e, "out of memory");
	part_set(w, 0, json, strlen(json));
	return 0;
}

static int (*const operations[OP_COUNT])(struct work *w, struct err *e) = { op_parse, op_canon, op_compare };

static int check_sizes(const struct work *w, struct err *e)
{
	for (int i = 0; i < PARTS; i++)
		if (w->reply.bytes[i] > part_max[w->q->op][i])
			return err_set(e, "%u bytes of results, at most %u are allowed", w->reply.bytes[i],
				       part_max[w->q->op][i]);
	return 0;
}

/* --- the worker --- */

/* Exceeding the time refuses the document; a failure would make the node send it again. */
static void on_cpu_limit(int signal)
{
	static const char why[] = "parsing it takes more than " STRING(SANDBOX_CPU_SECONDS) " s of processor time";
	static const struct worker_reply a = { .refused = 1, .bytes = { sizeof(why) - 1 } };

	(void) signal;
	_exit(write(0, &a, sizeof(a)) == sizeof(a) && write(0, why, sizeof(why) - 1) == sizeof(why) - 1 ? 0 : 1);
}

static int documents_map(struct work *w, int fd)
{
	const struct worker_request *q = w->q;
	size_t len = q->bytes[0] + q->bytes[1];
	char *all = len ? mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0) : "";

	if (all == MAP_FAILED)
		return -1;
	w->document[0] = all;
	w->document[1] = all + q->bytes[0];
	return 0;
}

/* In one write: each would wake topiaryd. */
static int reply_write(const struct work *w)
{
	struct buf out = {0};

	buf_add(&out, &w->reply, sizeof(w->reply));
	for (int i = 0; i < PARTS; i++)
		buf_add(&out, w->part[i], w->reply.bytes[i]);
	return out.failed ? -1 : file_write(0, out.data, out.len);
}

static _Noreturn void worker_run(const struct worker_request *q, const int fds[REQUEST_FDS], const struct sandbox *s)
{
	struct work w = { .q = q };
	struct err e = {0};

	signal(SIGXCPU, on_cpu_limit);
	prctl(PR_SET_NAME, "topiaryd-worker");
	if (documents_map(&w, fds[REQUEST_FILE]) || sandbox_enter(s, fds[REQUEST_SOCKET]))
		_exit(1);
	if (operations[q->op](&w, &e) || check_sizes(&w, &e)) {
		w.reply = (struct worker_reply){ .refused = 1 };
		part_set(&w, 0, e.text, strlen(e.text));
	}
	_exit(reply_write(&w) ? 1 : 0);
}

/* --- the parent of the workers --- */

/* 1, 0 at the end, -1 for an invalid message. */
static int request_receive(int control, struct worker_request *q, int fds[REQUEST_FDS])
{
	char space[CMSG_SPACE(sizeof(int[REQUEST_FDS]))];
	struct iovec io = { q, sizeof(*q) };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	struct cmsghdr *c;
	ssize_t n;

	while ((n = recvmsg(control, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (n <= 0)
		return 0;
	c = CMSG_FIRSTHDR(&m);
	if (n != sizeof(*q) || !c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int[REQUEST_FDS])))
		return -1;
	memcpy(fds, CMSG_DATA(c), sizeof(int[REQUEST_FDS]));
	return 1;
}

_Noreturn void worker_parent(int control, const struct sandbox *s)
{
	int fds[REQUEST_FDS], got;
	struct worker_request q;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "topiaryd-parse");
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* A terminal signals the whole group; topiaryd stops the parent when its requests are done. */
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	if (sandbox_prepare())
		_exit(1);
	/* Libraries would open files for this in each worker, which may open none. */
	xmlInitParser();
	json_object_seed(0);
	while ((got = request_receive(control, &q, fds))) {
		if (got < 0)
			continue;
		if (fork() == 0)
			worker_run(&q, fds, s);
		close(fds[REQUEST_SOCKET]);
		close(fds[REQUEST_FILE]);
	}
	_exit(0);
}
