/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "worker.h"

#include <jansson.h>
#include <libxml/parser.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/file.h"
#include "hwcmp/compare.h"
#include "hwxml/canon.h"
#include "shape/shape.h"
#include "shape/strings.h"

/*
 * Notes
 *
 * Processes with one thread each, forked by a parent that never had another. A worker parses what nobody trusts:
 * nothing of it is freed, and all that it returns is validated by parser.c.
 */
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
	struct tree *parsed;	/* the document, by OP_PARSE */
	struct worker_reply reply;
	const char *part[PARTS];
};

static void part_set(struct work *w, unsigned i, const char *data, size_t len)
{
	w->part[i] = data;
	w->reply.bytes[i] = len <= UINT32_MAX ? len : UINT32_MAX;
}

/* --- the operations --- */

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
	struct shape *shape;
	struct strings s;
	struct tree *t;

	/* Before parsing, so that refusing by size costs next to nothing. */
	if (check_count(w->document[0], w->q->bytes[0], "<info", "infos", e))
		return -1;
	if (!(t = tree_parse(w->document[0], w->q->bytes[0], "topology.xml", e)) || strings_make(t, &s, e))
		return -1;
	/* The snapshot for slurmctld: a shape that it could not read is refused here, where the node learns why. */
	if (!(shape = shape_parse(s.allocation, e)))
		return err_within(e, "its shape");
	if (shape->cores != s.ncores || shape->pus != s.npus)
		return err_set(e, "its shape has %u cores and %u PUs, but the document has %u and %u", shape->cores,
			       shape->pus, s.ncores, s.npus);
	w->parsed = t;
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

static char *changes_json(const struct changes *c, bool drift)
{
	json_t *list = json_array();
	size_t n = c->n, listed;
	bool failed = !list;
	char words[64];

	/* Most severe first: identity is at the end. */
	while (drift && n && c->list[n - 1].severity == SEVERITY_IDENTITY)
		n--;
	listed = n > CHANGES_MAX ? CHANGES_MAX : n;
	for (size_t i = 0; i < listed; i++)
		failed |= json_array_append_new(list, change_to_json(&c->list[i]));
	snprintf(words, sizeof(words), "%zu more changes", n - listed);
	if (listed < n)
		failed |= json_array_append_new(list, change_to_json(&(struct change){
			.severity = c->list[listed].severity, .direction = CHANGE_CHANGED,  .object = "machine",
			.what = "", .from = "", .to = "", .words = words }));
	return failed ? NULL : json_dumps(list, JSON_COMPACT);
}

static int op_compare(struct work *w, struct err *e)
{
	struct tree *from = tree_parse(w->document[0], w->q->bytes[0], "base.xml", e);
	struct tree *to = !from || w->parsed ? w->parsed :
			  tree_parse(w->document[1], w->q->bytes[1], "topology.xml", e);
	struct changes c;
	char *json;

	if (!from || !to || compare_trees(from, to, &c, e))
		return -1;
	if (!(json = changes_json(&c, w->q->drift)))
		return err_set(e, "out of memory");
	part_set(w, 0, json, strlen(json));
	return 0;
}

static int (*const operations[OP_COUNT])(struct work *w, struct err *e) = { op_parse, op_canon, op_compare };

/* --- the worker --- */

/* Exceeding the time refuses the document; a failure would make the node send it again. */
static void on_cpu_limit(int)
{
	static const char why[] = "parsing it takes more than " STRING(SANDBOX_CPU_SECONDS) " s of processor time";
	static const struct worker_reply a = { .refused = 1, .bytes = { sizeof(why) - 1 } };

	_exit(write(0, &a, sizeof(a)) == sizeof(a) && write(0, why, sizeof(why) - 1) == sizeof(why) - 1 ? 0 : 1);
}

static int read_all(void *data, size_t len)
{
	for (char *at = data; len;) {
		ssize_t n = read(0, at, len);

		if (n <= 0)
			return -1;
		at += n;
		len -= n;
	}
	return 0;
}

/* A document to compare with the one that was parsed. False at the end. */
static bool next_request(struct work *w, struct worker_request *q)
{
	char *from;

	if (!w->parsed || read_all(q, sizeof(*q)) || q->op != OP_COMPARE || q->bytes[0] > CANON_MAX_BYTES ||
	    !(from = malloc(q->bytes[0] + 1)) || read_all(from, q->bytes[0]))
		return false;
	w->q = q;
	w->document[0] = from;
	w->reply = (struct worker_reply){0};
	return true;
}

static _Noreturn void worker_run(struct worker_request *q, const int fds[REQUEST_FDS], const struct sandbox *s)
{
	struct work w = { .q = q };
	size_t len = q->bytes[0] + q->bytes[1];
	char *all = len ? mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fds[REQUEST_FILE], 0) : "";

	signal(SIGXCPU, on_cpu_limit);
	prctl(PR_SET_NAME, "topiaryd-worker");
	if (all == MAP_FAILED || sandbox_enter(s, fds[REQUEST_SOCKET]))
		_exit(1);
	w.document[0] = all;
	w.document[1] = all + q->bytes[0];
	do {
		struct buf out = {0};
		struct err e = {0};
		int rc = operations[q->op](&w, &e);

		for (int i = 0; rc == 0 && i < PARTS; i++)
			if (w.reply.bytes[i] > part_max[q->op][i])
				rc = err_set(&e, "%u bytes of results, at most %u are allowed", w.reply.bytes[i],
					     part_max[q->op][i]);
		if (rc) {
			w.parsed = NULL;
			w.reply = (struct worker_reply){ .refused = 1 };
			part_set(&w, 0, e.text, strlen(e.text));
		}
		/* In one write: each would wake topiaryd. */
		buf_add(&out, &w.reply, sizeof(w.reply));
		for (int i = 0; i < PARTS; i++)
			buf_add(&out, w.part[i], w.reply.bytes[i]);
		if (out.failed || file_write(0, out.data, out.len))
			_exit(1);
	} while (next_request(&w, q));
	_exit(0);
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

/* --- its confinement --- */

#define WALL_SECONDS 5
#define FILTER_MAX 4096	/* instructions; the kernel's BPF_MAXINSNS */

struct limit {
	int what;
	rlim_t limit;
};

static const struct limit inherited[] = {
#ifndef __SANITIZE_ADDRESS__	/* its shadow memory takes terabytes of address space */
	{ RLIMIT_AS, 256u << 20 },
#endif
	{ RLIMIT_CORE, 0 },
	{ RLIMIT_FSIZE, 0 },
	{ .what = -1 },
};

/* For the worker alone: the parent forks and receives descriptors. */
static const struct limit own[] = {
	{ RLIMIT_NPROC, 0 },
	{ RLIMIT_NOFILE, 0 },
	{ .what = -1 },
};

static const struct {
	int call;
	uint32_t action;
} rules[] = {
	{ SCMP_SYS(read), SCMP_ACT_ALLOW },
	{ SCMP_SYS(write), SCMP_ACT_ALLOW },
	{ SCMP_SYS(brk), SCMP_ACT_ALLOW },
	{ SCMP_SYS(munmap), SCMP_ACT_ALLOW },
	{ SCMP_SYS(mremap), SCMP_ACT_ALLOW },
	{ SCMP_SYS(madvise), SCMP_ACT_ALLOW },
	{ SCMP_SYS(futex), SCMP_ACT_ALLOW },
	{ SCMP_SYS(getrandom), SCMP_ACT_ALLOW },
	{ SCMP_SYS(clock_gettime), SCMP_ACT_ALLOW },
	{ SCMP_SYS(sysinfo), SCMP_ACT_ALLOW },	/* qsort(3) reads the size of memory */
	{ SCMP_SYS(exit_group), SCMP_ACT_ALLOW },
	/* libc may load a module for a document's encoding: refuse the document instead of killing the worker. */
	{ SCMP_SYS(openat), SCMP_ACT_ERRNO(EACCES) },
	{ SCMP_SYS(newfstatat), SCMP_ACT_ERRNO(EACCES) },
};

static int filter_rules(scmp_filter_ctx ctx)
{
	int rc = 0;

	for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]) && rc == 0; i++)
		rc = seccomp_rule_add(ctx, rules[i].action, rules[i].call, 0);
	/* Anonymous mappings only. */
	return rc ? rc : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
					  SCMP_A4(SCMP_CMP_MASKED_EQ, 0xffffffff, 0xffffffff));
}

/* libseccomp exports to files only. */
static int filter_export(scmp_filter_ctx ctx, struct sock_fprog *out)
{
	struct sock_filter space[FILTER_MAX];
	int fd = memfd_create("filter", MFD_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0 && seccomp_export_bpf(ctx, fd) == 0)
		n = pread(fd, space, sizeof(space), 0);
	if (fd >= 0)
		close(fd);
	if (n <= 0 || !(out->filter = malloc(n)))
		return -1;
	memcpy(out->filter, space, n);
	out->len = n / sizeof(space[0]);
	return 0;
}

int sandbox_make(struct sandbox *s, struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int rc = ctx && filter_rules(ctx) == 0 ? filter_export(ctx, &s->filter) : -1;

	seccomp_release(ctx);
	return rc ? err_set(e, "cannot create the system call filter: %s", strerror(errno)) : 0;
}

void sandbox_free(struct sandbox *s)
{
	free(s->filter.filter);
	*s = (struct sandbox){0};
}

static int set_limits(const struct limit *l)
{
	for (; l->what >= 0; l++)
		if (setrlimit(l->what, &(struct rlimit){ l->limit, l->limit }))
			return -1;
	return 0;
}

int sandbox_prepare(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return -1;
	return set_limits(inherited);
}

int sandbox_enter(const struct sandbox *s, int fd)
{
	if (dup2(fd, 0) < 0 || close_range(1, ~0u, 0))
		return -1;
	/* The default action of SIGALRM kills; the filter allows neither alarm nor sigaction. */
	signal(SIGALRM, SIG_DFL);
	alarm(WALL_SECONDS);
	/* SIGXCPU at the soft limit, SIGKILL at the hard one. */
	if (setrlimit(RLIMIT_CPU, &(struct rlimit){ SANDBOX_CPU_SECONDS, SANDBOX_CPU_SECONDS + 1 }))
		return -1;
	return set_limits(own) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &s->filter) ? -1 : 0;
}
