/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * Many nodes that boot at once, as their agents behave (node_agent/deliver.c), out of one process: few threads, for
 * most nodes wait. What is due next is in a heap, shared by the threads. Each exchange has a connection of its own and
 * its node's own address: libcurl does the same for five times the CPU time, and here both ends share one machine.
 */
#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "base/cmd_line.h"
#include "base/file.h"
#include "base/log.h"
#include "base/settings.h"
#include "client/cred.h"
#include "clones.h"
#include "delta/pack.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define URLS 8
#define BASES 64
#define VARIANTS 16				/* of each base */
#define TIMEOUT 60				/* seconds for an exchange */
#define HEAD_MAX 8192
#define SPREAD_MAX 600
#define NODES_MAX 1000000
#define FIRST_ADDRESS 0x7f010001u		/* 127.1.0.1 */

enum mode { MODE_FULL, MODE_HASH, MODE_MIXED };

struct args {
	const char *config, *urls[URLS], *bases[BASES], *munge_socket, *log;
	unsigned nurls, nbases, agents, first, threads, readers, reader_pause, window, deadline, pause_max, seed,
		 generation, variants;
	int mode;
};

/* A base and the machines of its kind that are not quite like it. */
struct kind {
	struct clones *plain, *variants[VARIANTS];
	unsigned nvariants;
};

struct agent {
	enum { ASKS, SENDS, DONE } step;
	unsigned attempt, exchanges;
	uint64_t seq, draws;
	uint64_t length;		/* 0 until the document was made once */
	char sha256[HASH_HEX];
};

struct answer {
	int status;
	unsigned retry_after;		/* seconds, 0 when none were said */
	char ack[1024];			/* Topiary-Ack, or empty */
	struct buf body;		/* NUL-terminated */
};

/* What a thread keeps from one exchange to the next. */
struct worker {
	struct buf xml, zip, head;
	struct answer answer;
	struct err why;
};

enum outcome { ACKNOWLEDGED, WANTED, AGAIN, REFUSED };

static struct args o = { .agents = 100, .threads = 64, .deadline = 600, .pause_max = 300, .reader_pause = 50 };
static struct sockaddr_in to[URLS];
static struct kind kinds[BASES];
static struct agent *agents;
static unsigned *stored;		/* numbers of acknowledged nodes, for readers */
static FILE *acknowledgements;
static uid_t registry;
static pthread_mutex_t results = PTHREAD_MUTEX_INITIALIZER;	/* of stored, last_reason, ack_us, read_us */
static json_t *ack_us, *read_us;				/* microseconds of each */
static struct err last_reason;
static int64_t began;
static atomic_uint acknowledged, failed, retries, documents, read_failures;
static atomic_ullong xml_bytes;
static _Atomic int64_t last_ack;
static atomic_bool over;

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 31) * 0x7fb5d329728ea185;
	x = (x ^ x >> 27) * 0x81dadef4bc2dd44d;
	return x ^ x >> 33;
}

/* At random, below n. */
static uint64_t draw(struct agent *a, uint64_t n)
{
	uint64_t x = mixed(mixed(o.seed + 1) + (a - agents) * UINT64_C(0x9e3779b97f4a7c15) + ++a->draws);

	return n ? x % n : 0;
}

/* --- what is due when: agents in the order of their times, each at most once */

static struct due {
	int64_t time;
	unsigned agent;
} *heap;				/* heap[0] is the first */
static size_t nheap;
static bool is_led;			/* a thread waits for the first entry's time; all others follow */
static pthread_mutex_t agenda = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t lead, follow = PTHREAD_COND_INITIALIZER;

static void agenda_swap(size_t i, size_t k)
{
	struct due was = heap[i];

	heap[i] = heap[k];
	heap[k] = was;
}

static void agenda_add(unsigned agent, int64_t time)
{
	size_t i;

	pthread_mutex_lock(&agenda);
	i = nheap++;
	heap[i] = (struct due){ time, agent };
	for (; i && heap[(i - 1) / 2].time > time; i = (i - 1) / 2)
		agenda_swap(i, (i - 1) / 2);
	if (i == 0)
		pthread_cond_signal(&lead);
	pthread_mutex_unlock(&agenda);
}

/* The next agent when its time has come; -1 once the storm is over. */
static int agenda_take(unsigned *agent)
{
	int rc = -1;

	pthread_mutex_lock(&agenda);
	while (is_led && !over)
		pthread_cond_wait(&follow, &agenda);
	is_led = true;
	while (!over && (!nheap || heap[0].time > now_us())) {
		int64_t time = nheap ? heap[0].time : now_us() + 1000000;

		pthread_cond_timedwait(&lead, &agenda, &(struct timespec){ time / 1000000, time % 1000000 * 1000 });
	}
	if (!over) {
		rc = 0;
		*agent = heap[0].agent;
		heap[0] = heap[--nheap];
		for (size_t i = 0, low; (low = 2 * i + 1) < nheap; i = low) {
			low += low + 1 < nheap && heap[low + 1].time < heap[low].time;
			if (heap[i].time <= heap[low].time)
				break;
			agenda_swap(i, low);
		}
	}
	is_led = false;
	pthread_cond_signal(&follow);
	pthread_mutex_unlock(&agenda);
	return rc;
}

/* --- one HTTP exchange */

static int dial(const struct sockaddr_in *address, in_addr_t from)
{
	const struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(from) };
	const struct timeval limit = { .tv_sec = TIMEOUT };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    /* The port is chosen when both ends are known: 65,536 nodes may share it. */
	    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &(int){1}, sizeof(int)) ||
	    (from && bind(fd, (const struct sockaddr *) &own, sizeof(own))) ||
	    connect(fd, (const struct sockaddr *) address, sizeof(*address))) {
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

/* The value of a header of `head`, up to the end of its line; "" without it. name: with its colon. */
static const char *header(const char *head, const char *name)
{
	const char *at = strcasestr(head, name);

	return at ? at + strlen(name) + strspn(at + strlen(name), " \t") : "";
}

static int receive(int fd, struct answer *a)
{
	char head[HEAD_MAX], *end = NULL;
	size_t have = 0, length;

	while (!end) {
		ssize_t n = have < HEAD_MAX - 1 ? recv(fd, head + have, HEAD_MAX - 1 - have, 0) : 0;

		if (n <= 0)
			return n ? -1 : (errno = ECONNRESET, -1);
		have += n;
		head[have] = '\0';
		end = strstr(head, "\r\n\r\n");
	}
	end[2] = '\0';
	if (sscanf(head, "HTTP/1.%*1[01] %d", &a->status) != 1 ||
	    sscanf(header(head, "\r\nContent-Length:"), "%zu", &length) != 1)
		return -1;
	a->retry_after = strtoul(header(head, "\r\nRetry-After:"), NULL, 10);
	if (sscanf(header(head, "\r\nTopiary-Ack:"), "%1023[^\r]", a->ack) != 1)
		*a->ack = '\0';
	a->body.len = 0;
	if (!buf_reserve(&a->body, length + HEAD_MAX))
		return -1;
	buf_add(&a->body, end + 4, head + have - (end + 4));
	while (a->body.len < length) {
		ssize_t n = recv(fd, a->body.data + a->body.len, length - a->body.len, 0);

		if (n <= 0)
			return n ? -1 : (errno = ECONNRESET, -1);
		a->body.len += n;
	}
	a->body.data[a->body.len] = '\0';
	return 0;
}

/* 0 whatever the status, -1 without a whole answer. from: a loopback address, 0: any. */
static int exchange(const struct sockaddr_in *address, in_addr_t from, const struct buf *head, const struct buf *body,
		    struct answer *a, struct err *e)
{
	int fd = dial(address, from), rc;

	if (fd < 0)
		return err_set(e, "connect: %s", strerror(errno));
	if ((rc = send_all(fd, head, body) || receive(fd, a) ? -1 : 0))
		err_set(e, "no whole answer: %s", strerror(errno));
	close(fd);
	return rc;
}

/* --- one node's documents and claims */

static unsigned number_of(const struct agent *a)
{
	return o.first + (a - agents);
}

static int make_document(struct worker *w, const struct agent *a)
{
	unsigned number = number_of(a), dice = mixed(number + 1) % 1000000;
	const struct kind *k = &kinds[number % o.nbases];

	clones_make(k->nvariants && dice % 100 < o.variants ? k->variants[dice / 100 % k->nvariants] : k->plain, number,
		    o.generation + (o.mode == MODE_MIXED && number % 10 == 0), &w->xml);
	return w->xml.failed ? err_set(&w->why, "out of memory") : 0;
}

static void make_claim(struct agent *a, struct claim *c)
{
	uint64_t boot = mixed(o.seed * UINT64_C(1000003) + number_of(a)), now;
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	now = t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
	a->seq = now > a->seq ? now : a->seq + 1;
	*c = (struct claim){ .purpose = CLAIM_EXPORT, .seq = a->seq, .length = a->length };
	snprintf(c->node, sizeof(c->node), "cn%06u", number_of(a));
	snprintf(c->boot_id, sizeof(c->boot_id),
		 "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-8%03" PRIx64 "-%012" PRIx64, boot >> 32,
		 boot >> 16 & 0xffff, boot >> 4 & 0xfff, boot & 0xfff, mixed(boot) >> 16);
	memcpy(c->sha256, a->sha256, sizeof(c->sha256));
	snprintf(c->key, sizeof(c->key), "%016" PRIx64 "%016" PRIx64, mixed(a->seq), mixed(boot + a->seq));
}

/* PUT one of the two paths. 0, or -1 when there is no answer. */
static int put(struct worker *w, struct agent *a, const char *what, const struct buf *body, struct claim *c)
{
	unsigned url = (number_of(a) + a->exchanges++) % o.nurls;
	char *cred;

	make_claim(a, c);
	if (!(cred = cred_sign(c, registry, o.munge_socket, &w->why)))
		return -1;
	w->head.len = 0;
	buf_printf(&w->head, "PUT /v1/nodes/%s/%s HTTP/1.1\r\nHost: %s\r\n", c->node, what,
		   o.urls[url] + strlen("http://"));
	buf_printf(&w->head, "Authorization: Munge %s\r\n%sContent-Length: %zu\r\n\r\n", cred,
		   body ? "Content-Encoding: zstd\r\n" : "", body ? body->len : 0);
	free(cred);
	if (w->head.failed)
		return err_set(&w->why, "out of memory");
	return exchange(&to[url], FIRST_ADDRESS + number_of(a), &w->head, body, &w->answer, &w->why);
}

static enum outcome judge(struct worker *w, const struct claim *c)
{
	int status = w->answer.status;
	char expected[CLAIM_MAC];

	if (status == 202 && o.mode != MODE_HASH)
		return WANTED;
	if (status != 200) {
		err_set(&w->why, "the registry answers %d: %.*s", status, (int) strcspn(w->answer.body.data, "\n"),
			w->answer.body.data);
		return status < 500 && status != 409 && status != 429 ? REFUSED : AGAIN;
	}
	if (!*w->answer.ack) {
		err_set(&w->why, "the answer carries no acknowledgement");
		return AGAIN;
	}
	if (claim_ack(c, expected) == 0 && !strcmp(w->answer.ack, expected))
		return ACKNOWLEDGED;
	err_set(&w->why, "the acknowledgement is not this export's");
	return AGAIN;
}

static enum outcome ask(struct worker *w, struct agent *a, struct claim *c)
{
	if (!a->length) {
		if (make_document(w, a))
			return AGAIN;
		a->length = w->xml.len;
		hash_hex(w->xml.data, w->xml.len, a->sha256);
	}
	return put(w, a, "boot", NULL, c) ? AGAIN : judge(w, c);
}

static enum outcome send_document(struct worker *w, struct agent *a, struct claim *c)
{
	enum outcome rc;

	buf_free(&w->zip);
	if (make_document(w, a) || zip_make(w->xml.data, w->xml.len, &w->zip, &w->why) ||
	    put(w, a, "topology", &w->zip, c))
		return AGAIN;
	atomic_fetch_add(&documents, 1);
	atomic_fetch_add(&xml_bytes, w->xml.len);
	rc = judge(w, c);
	return rc == WANTED ? AGAIN : rc;
}

/* --- what follows from it */

/* The window in {"send": ..., "spread": 12}: in seconds. */
static unsigned announced(const struct answer *a)
{
	json_t *j = json_loadb(a->body.data, a->body.len, 0, NULL);
	json_int_t window = json_integer_value(json_object_get(j, "spread"));

	json_decref(j);
	return window < 0 ? 0 : window > SPREAD_MAX ? SPREAD_MAX : window;
}

/* Full jitter: from 0 to 1 s, doubled each time. */
static int64_t pause_after(struct agent *a)
{
	uint64_t limit = a->attempt < 9 ? UINT64_C(1000000) << a->attempt : UINT64_MAX,
		 most = o.pause_max * UINT64_C(1000000);

	return draw(a, (limit < most ? limit : most) + 1);
}

static void act(struct worker *w, unsigned i)
{
	struct agent *a = &agents[i];
	int64_t since = now_us();
	enum outcome what;
	struct claim c;

	w->answer.retry_after = 0;
	what = a->step == ASKS ? ask(w, a, &c) : send_document(w, a, &c);
	pthread_mutex_lock(&results);
	if (what == ACKNOWLEDGED) {
		if (acknowledgements)
			fprintf(acknowledgements, "%s %s %" PRIu64 " %s\n", c.node, c.boot_id, c.seq, c.sha256);
		a->step = DONE;
		last_ack = now_us();
		json_array_append_new(ack_us, json_integer(last_ack - since));
		stored[acknowledged] = number_of(a);
		acknowledged++;
	} else if (what != WANTED) {
		err_set(&last_reason, "cn%06u: %s", number_of(a), w->why.text);
	}
	pthread_mutex_unlock(&results);
	if (what == WANTED) {
		a->step = SENDS;
		agenda_add(i, now_us() + draw(a, announced(&w->answer) * UINT64_C(1000000)));
	} else if (what == AGAIN) {
		retries++;
		a->step = ASKS;
		agenda_add(i, now_us() + pause_after(a) + w->answer.retry_after * INT64_C(1000000));
		a->attempt++;
	} else if (what == REFUSED) {
		a->step = DONE;
		failed++;
	}
}

static void *work(void *arg)
{
	struct worker w = {0};
	unsigned i;

	(void) arg;
	while (agenda_take(&i) == 0)
		act(&w, i);
	buf_free(&w.xml);
	buf_free(&w.zip);
	buf_free(&w.head);
	buf_free(&w.answer.body);
	return NULL;
}

/* --- readers */

static void *read_on(void *arg)
{
	struct answer answer = {0};
	struct buf head = {0};
	uint64_t x = mixed(o.seed + (uintptr_t) arg + 77);
	struct err e;

	for (; !over; usleep(o.reader_pause * 1000)) {
		unsigned known = acknowledged, number, url;
		int64_t since = now_us();

		x = mixed(x + 1);
		if (!known)
			continue;
		number = stored[x % known];
		url = number % o.nurls;
		head.len = 0;
		buf_printf(&head, "GET /v1/nodes/cn%06u HTTP/1.1\r\nHost: %s\r\n\r\n", number,
			   o.urls[url] + strlen("http://"));
		if (head.failed || exchange(&to[url], 0, &head, NULL, &answer, &e) || answer.status != 200) {
			read_failures++;
			continue;
		}
		pthread_mutex_lock(&results);
		json_array_append_new(read_us, json_integer(now_us() - since));
		pthread_mutex_unlock(&results);
	}
	buf_free(&head);
	buf_free(&answer.body);
	return NULL;
}

/* --- the result */

static int report(void)
{
	double seconds = acknowledged ? (last_ack - began) / 1e6 : 0;
	struct rusage u;
	json_t *j;

	getrusage(RUSAGE_SELF, &u);
	j = json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:o, s:o, s:I, s:f, s:s}",
		      "agents", (json_int_t) o.agents, "acknowledged", (json_int_t) acknowledged,
		      "failed", (json_int_t) o.agents - acknowledged, "retries", (json_int_t) retries,
		      "documents", (json_int_t) documents, "seconds", seconds,
		      "per_second", seconds > 0 ? acknowledged / seconds : 0, "xml_bytes", (json_int_t) xml_bytes,
		      "ack_us", ack_us, "read_us", read_us, "read_failures", (json_int_t) read_failures,
		      "cpu_seconds", u.ru_utime.tv_sec + u.ru_stime.tv_sec +
		      (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6, "last_reason", last_reason.text);
	if (!j || json_dumpf(j, stdout, JSON_REAL_PRECISION(6)) || printf("\n") < 0 || fflush(stdout))
		return -1;
	json_decref(j);
	return acknowledged == o.agents ? 0 : -1;
}

/* --- the command line */

static void url_add(void *args, const char *text, struct argp_state *state)
{
	struct args *a = args;

	if (a->nurls == URLS)
		argp_error(state, "--url=%s: at most %u of these", text, URLS);
	a->urls[a->nurls++] = text;
}

static void base_add(void *args, const char *text, struct argp_state *state)
{
	struct args *a = args;

	if (a->nbases == BASES)
		argp_error(state, "--base=%s: at most %u of these", text, BASES);
	a->bases[a->nbases++] = text;
}

static int mode_parse(const char *name)
{
	static const char *const modes[] = { [MODE_FULL] = "full", [MODE_HASH] = "hash", [MODE_MIXED] = "mixed" };

	for (size_t i = 0; i < COUNT(modes); i++)
		if (!strcmp(modes[i], name))
			return i;
	return -1;
}

static void check_together(void *args, struct argp_state *state)
{
	struct args *a = args;

	if (!a->nbases || a->first + a->agents > NODES_MAX)
		argp_error(state, "expected a --base, and node numbers below %u", NODES_MAX);
}

static const struct cmd_option options[] = {
	{ "agents", 0, "N", CMD_NUMBER(agents, 1, NODES_MAX), "Nodes that boot (100)" },
	{ "first", 0, "N", CMD_NUMBER(first, 0, NODES_MAX - 1), "Number of the first one" },
	{ "base", 'b', "FILE", CMD_SET(base_add),
	  "The templates of a machine to make them from, those of its variants behind it; several take turns" },
	{ "variants", 0, "PERCENT", CMD_NUMBER(variants, 0, 100), "Nodes that are made from a variant" },
	{ "generation", 0, "N", CMD_NUMBER(generation, 0, 65535), "The nodes after N repairs" },
	{ "mode", 'm', "MODE", CMD_KEYWORD(mode, mode_parse, "full, hash, mixed"),
	  "full: what the registry asks for; hash: it knows all of them; mixed: each tenth was repaired" },
	{ "window", 0, "SECONDS", CMD_NUMBER(window, 0, 86400), "They boot within this time (0)" },
	{ "deadline", 0, "SECONDS", CMD_NUMBER(deadline, 1, 86400),
	  "What is not acknowledged by then has failed (600)" },
	{ "pause-max", 0, "SECONDS", CMD_NUMBER(pause_max, 0, 300), "Longest pause between two attempts (300)" },
	{ "threads", 0, "N", CMD_NUMBER(threads, 1, 1024), "Exchanges at a time (64)" },
	{ "readers", 0, "N", CMD_NUMBER(readers, 0, 64), "Threads that read nodes meanwhile (0)" },
	{ "reader-pause", 0, "MS", CMD_NUMBER(reader_pause, 0, 10000), "Between two of a reader's requests (50)" },
	{ "seed", 0, "N", CMD_NUMBER(seed, 0, UINT32_MAX), "Of all that is random; another seed is another boot" },
	{ "config", 'c', "FILE", CMD_TEXT(config), "Read FILE instead of the usual topiary.conf" },
	{ "url", 'u', "URL", CMD_SET(url_add), "Of topiaryd instead of RegistryURL; several take turns" },
	{ "munge-socket", 0, "PATH", CMD_TEXT(munge_socket), "Of the nodes' munged instead of MungeSocket" },
	{ "log", 'l', "FILE", CMD_TEXT(log), "A line for each acknowledged export: node, boot, sequence, sha256" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, NULL, "Nodes that boot at once and export their topologies to a registry.", { .form = ARG_NONE }, NULL,
	check_together,
};

/* --- the storm */

/* Where to, and who must answer: the configuration's, where no option says otherwise. */
static int load_settings(struct settings *conf, struct err *e)
{
	char host[64];
	unsigned port;

	if (settings_load(o.config, conf, e) || settings_uid(conf->registry_user, &registry, e))
		return -1;
	if (!o.nurls)
		o.urls[o.nurls++] = conf->registry_url;
	if (!o.munge_socket)
		o.munge_socket = conf->munge_socket;
	for (unsigned i = 0; i < o.nurls; i++) {
		to[i].sin_family = AF_INET;
		if (sscanf(o.urls[i], "http://%63[0-9.]:%u", host, &port) != 2 || port > 65535 ||
		    inet_pton(AF_INET, host, &to[i].sin_addr) != 1)
			return err_set(e, "%s: expected http://ADDRESS:PORT", o.urls[i]);
		to[i].sin_port = htons(port);
	}
	return 0;
}

static int load_kind(const char *path, struct kind *k, struct err *e)
{
	struct buf text = {0};
	char *rest, *one;

	if (file_read(path, 64 << 20, &text, e))
		return -1;
	rest = text.data;
	k->plain = clones_new(strsep(&rest, "\f"), path, e);
	while (k->plain && k->nvariants < VARIANTS && (one = strsep(&rest, "\f")))
		if (!(k->variants[k->nvariants++] = clones_new(one, path, e)))
			return -1;
	buf_free(&text);
	return k->plain ? 0 : -1;
}

static int prepare(struct settings *conf, struct err *e)
{
	pthread_condattr_t clock;

	if (load_settings(conf, e))
		return -1;
	for (unsigned i = 0; i < o.nbases; i++)
		if (load_kind(o.bases[i], &kinds[i], e))
			return -1;
	if (o.log && !(acknowledgements = fopen(o.log, "we")))
		return err_set(e, "%s: %s", o.log, strerror(errno));
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&lead, &clock);
	heap = calloc(o.agents, sizeof(*heap));
	agents = calloc(o.agents, sizeof(*agents));
	stored = calloc(o.agents, sizeof(*stored));
	ack_us = json_array();
	read_us = json_array();
	return heap && agents && stored && ack_us && read_us ? 0 : err_set(e, "out of memory");
}

static int rage(void)
{
	static pthread_t readers[64], threads[1024];

	began = last_ack = now_us();
	for (unsigned i = 0; i < o.agents; i++)
		agenda_add(i, began + draw(&agents[i], o.window * UINT64_C(1000000)));
	for (unsigned i = 0; i < o.threads; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			abort();
	for (unsigned i = 0; i < o.readers; i++)
		if (pthread_create(&readers[i], NULL, read_on, (void *) (uintptr_t) i))
			abort();
	while (acknowledged + failed < o.agents && now_us() < began + o.deadline * INT64_C(1000000))
		usleep(50000);
	pthread_mutex_lock(&agenda);
	over = true;
	pthread_cond_broadcast(&lead);
	pthread_cond_broadcast(&follow);
	pthread_mutex_unlock(&agenda);
	for (unsigned i = 0; i < o.threads; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < o.readers; i++)
		pthread_join(readers[i], NULL);
	return report();
}

int main(int argc, char **argv)
{
	static struct settings conf;
	struct err e;

	log_open("storm");
	cmd_line_parse(&syntax, &o, NULL, NULL, argc, argv);
	if (prepare(&conf, &e)) {
		log_error("%s", e.text);
		return 1;
	}
	if (rage()) {
		log_error("%s", last_reason.text);
		return 1;
	}
	if (acknowledgements && fclose(acknowledgements)) {
		log_error("%s: %s", o.log, strerror(errno));
		return 1;
	}
	return 0;
}
