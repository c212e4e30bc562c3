/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "worker.h"

#include <errno.h>
#include <jansson.h>
#include <libxml/parser.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "topo/canon.h"
#include "topo/compare.h"
#include "topo/shape.h"
#include "topo/strings.h"

#define CHANGES_MAX 1000	/* told one by one; nobody reads more */

const uint32_t part_max[ASK_COUNT][PARTS] = {
	[ASK_READ] = { 1 << 20, 1 << 20, CANON_MAX_BYTES, 1 << 20, 2 * CANON_MAX_BYTES },
	[ASK_CANON] = { 2 * CANON_MAX_BYTES },
	[ASK_COMPARE] = { 4 << 20 },
};

/* Nothing that a worker makes is freed: its end does that at once. */
struct work {
	const struct question *q;
	const char *document[2];
	struct answer answer;
	const char *part[PARTS];
};

static void part_put(struct work *w, unsigned i, const char *data, size_t len)
{
	w->part[i] = data;
	w->answer.bytes[i] = len <= UINT32_MAX ? len : UINT32_MAX;
}

/* --- the three questions --- */

/* What Slurm's controller will be given: a document that it could not read is refused here, where the node is told why. */
static int check_allocation(const struct strings *s, struct err *e)
{
	struct shape *shape = shape_parse(s->allocation, e);
	int rc = 0;

	if (!shape)
		rc = err_within(e, "its shape");
	else if (shape->cores != s->ncores || shape->pus != s->npus)
		rc = err_set(e, "its shape has %u cores and %u PUs, and the document %u and %u", shape->cores, shape->pus,
			     s->ncores, s->npus);
	shape_free(shape);
	return rc;
}

static int ask_read(struct work *w, struct err *e)
{
	struct tree *t = tree_parse(w->document[0], w->q->bytes[0], "topology.xml", e);
	struct buf facts = {0};
	struct strings s;

	if (!t || strings_make(t, &s, e) || check_allocation(&s, e))
		return -1;
	tree_facts(t, &facts);
	if (facts.failed)
		return err_set(e, "out of memory");
	w->answer.ncores = s.ncores;
	w->answer.npus = s.npus;
	part_put(w, PART_CORES, s.cores, strlen(s.cores));
	part_put(w, PART_HIERARCHY, s.hierarchy, strlen(s.hierarchy));
	part_put(w, PART_DETAIL, s.detail, strlen(s.detail));
	part_put(w, PART_ALLOCATION, s.allocation, strlen(s.allocation));
	part_put(w, PART_FACTS, facts.data, facts.len);
	return 0;
}

static int ask_canon(struct work *w, struct err *e)
{
	struct canon c;

	if (canon_parse(w->document[0], w->q->bytes[0], "topology.xml", &c, e))
		return -1;
	part_put(w, 0, c.xml.data, c.xml.len);
	return 0;
}

static json_t *change_json(const struct change *c)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "severity", severity_name(c->severity),
			 "direction", direction_name(c->direction), "object", c->object, "what", c->what, "from", c->from,
			 "to", c->to, "words", c->words);
}

/* In place of those that are too many to tell. */
static json_t *rest_json(const struct changes *c, size_t from, size_t n)
{
	char words[64];

	snprintf(words, sizeof(words), "%zu more changes", n);
	return change_json(&(struct change){ .severity = c->list[from].severity, .direction = CHANGE_CHANGED, .object = "machine",
					     .what = "", .from = "", .to = "", .words = words });
}

static char *changes_json(const struct changes *c, bool drift)
{
	json_t *list = json_array();
	size_t n = c->n, told;
	bool failed = !list;

	/* Gravest first: identity stands at the end. */
	while (drift && n && c->list[n - 1].severity == SEVERITY_IDENTITY)
		n--;
	told = n > CHANGES_MAX ? CHANGES_MAX : n;
	for (size_t i = 0; i < told; i++)
		failed |= json_array_append_new(list, change_json(&c->list[i]));
	if (told < n)
		failed |= json_array_append_new(list, rest_json(c, told, n - told));
	return failed ? NULL : json_dumps(list, JSON_COMPACT);
}

static int ask_compare(struct work *w, struct err *e)
{
	struct tree *from = tree_parse(w->document[0], w->q->bytes[0], "base.xml", e);
	struct tree *to = from ? tree_parse(w->document[1], w->q->bytes[1], "topology.xml", e) : NULL;
	struct changes c;
	char *json;

	if (!to || compare_trees(from, to, &c, e))
		return -1;
	if (!(json = changes_json(&c, w->q->drift)))
		return err_set(e, "out of memory");
	part_put(w, 0, json, strlen(json));
	return 0;
}

static int (*const asks[ASK_COUNT])(struct work *w, struct err *e) = { ask_read, ask_canon, ask_compare };

static int check_sizes(const struct work *w, struct err *e)
{
	for (int i = 0; i < PARTS; i++)
		if (w->answer.bytes[i] > part_max[w->q->ask][i])
			return err_set(e, "%u bytes would have to be kept about it, at most %u are allowed", w->answer.bytes[i],
				       part_max[w->q->ask][i]);
	return 0;
}

/* --- the worker --- */

static int documents_map(struct work *w, int fd)
{
	const struct question *q = w->q;
	size_t len = q->bytes[0] + q->bytes[1];
	char *all = len ? mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0) : "";

	if (all == MAP_FAILED)
		return -1;
	w->document[0] = all;
	w->document[1] = all + q->bytes[0];
	return 0;
}

/* In one piece: each write would wake topiaryd. */
static int answer_write(const struct work *w)
{
	struct buf out = {0};

	buf_add(&out, &w->answer, sizeof(w->answer));
	for (int i = 0; i < PARTS; i++)
		buf_add(&out, w->part[i], w->answer.bytes[i]);
	return out.failed ? -1 : file_write(0, out.data, out.len);
}

static _Noreturn void worker(const struct question *q, const int fds[QUESTION_FDS], const struct sandbox *s)
{
	struct work w = { .q = q };
	struct err e = {0};

	prctl(PR_SET_NAME, "topiaryd-worker");
	if (documents_map(&w, fds[QUESTION_FILE]) || sandbox_enter(s, fds[QUESTION_SOCKET]))
		_exit(1);
	if (asks[q->ask](&w, &e) || check_sizes(&w, &e)) {
		w.answer = (struct answer){ .refused = 1 };
		part_put(&w, 0, e.text, strlen(e.text));
	}
	_exit(answer_write(&w) ? 1 : 0);
}

/* --- the workers' parent --- */

/* 1, 0 at the end, -1 for a message that is none. */
static int question_take(int control, struct question *q, int fds[QUESTION_FDS])
{
	char space[CMSG_SPACE(sizeof(int[QUESTION_FDS]))];
	struct iovec io = { q, sizeof(*q) };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	struct cmsghdr *c;
	ssize_t n;

	while ((n = recvmsg(control, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (n <= 0)
		return 0;
	c = CMSG_FIRSTHDR(&m);
	if (n != sizeof(*q) || !c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int[QUESTION_FDS])))
		return -1;
	memcpy(fds, CMSG_DATA(c), sizeof(int[QUESTION_FDS]));
	return 1;
}

_Noreturn void worker_parent(int control, const struct sandbox *s)
{
	int fds[QUESTION_FDS], got;
	struct question q;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "topiaryd-parse");
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* A terminal's Ctrl-C reaches the whole group; topiaryd ends us when its requests are done. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	if (sandbox_prepare())
		_exit(1);
	/* What libraries would open a file for in each worker, where there are none to open. */
	xmlInitParser();
	json_object_seed(0);
	while ((got = question_take(control, &q, fds))) {
		if (got < 0)
			continue;
		if (fork() == 0)
			worker(&q, fds, s);
		close(fds[QUESTION_SOCKET]);
		close(fds[QUESTION_FILE]);
	}
	_exit(0);
}
