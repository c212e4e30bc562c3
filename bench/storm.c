/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * Many nodes that boot at once, as their agents behave (node_agent/deliver.c), out of one process: few threads, for
 * most nodes wait.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agenda.h"
#include "base/file.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/user.h"
#include "client/cred.h"
#include "clones.h"
#include "hwxml/canon.h"
#include "delta/pack.h"
#include "wire.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define URLS 8
#define BASES 64
#define VARIANTS (4 * (VARIANT_COUNT - 1))	/* of each base */
#define TIMEOUT 60				/* seconds for an exchange */
#define SPREAD_MAX 600
#define NODES_MAX 1000000
#define FIRST_ADDRESS 0x7f010001u		/* 127.1.0.1 */

enum mode { MODE_FULL, MODE_HASH, MODE_MIXED };

struct options {
	const char *config, *urls[URLS], *bases[BASES], *munge_socket, *registry_user, *log, *reader_path;
	unsigned nurls, nbases;
	unsigned long agents, first, threads, readers, reader_pause, window, deadline, pause_max, seed, generation,
		      variants, pad;
	enum mode mode;
	bool distinct;
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
	int64_t arrived;
	uint64_t length;		/* 0 until the document was made once */
	unsigned ack_us, whole_us;	/* the exchange that was acknowledged; all of it, from its arrival */
	char sha256[HASH_HEX];
};

struct storm {
	struct options o;
	struct sockaddr_in to[URLS];
	struct kind kinds[BASES];
	struct agenda *agenda;
	struct agent *agents;
	unsigned *stored;		/* numbers of acknowledged nodes, for readers */
	FILE *log;
	uid_t registry;
	pthread_mutex_t lock;		/* stored, last_reason */
	struct err last_reason;
	int64_t began;
	atomic_uint acknowledged, failed, retries, documents;
	atomic_ullong xml_bytes, sent_bytes;
	_Atomic int64_t last_ack;
	atomic_bool over;
};

enum outcome { ACKNOWLEDGED, WANTED, AGAIN, REFUSED };

/* What a thread keeps from one exchange to the next. */
struct worker {
	struct storm *s;
	struct buf xml, zip, head;
	struct wire_answer answer;
	struct err why;
};

static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 31) * 0x7fb5d329728ea185;
	x = (x ^ x >> 27) * 0x81dadef4bc2dd44d;
	return x ^ x >> 33;
}

/* At random, below n. */
static uint64_t draw(const struct storm *s, struct agent *a, uint64_t n)
{
	uint64_t x = mixed(mixed(s->o.seed + 1) + (a - s->agents) * UINT64_C(0x9e3779b97f4a7c15) + ++a->draws);

	return n ? x % n : 0;
}

/* --- one node's documents and claims */

static unsigned number_of(const struct storm *s, const struct agent *a)
{
	return s->o.first + (a - s->agents);
}

static void make_document(const struct storm *s, const struct agent *a, struct buf *xml)
{
	unsigned number = number_of(s, a), dice = mixed(number + 1) % 1000000;
	const struct kind *k = &s->kinds[number % s->o.nbases];
	const struct clones *c = k->nvariants && dice % 100 < s->o.variants ?
				  k->variants[dice / 100 % k->nvariants] : k->plain;

	clones_make(c, number, s->o.generation + (s->o.mode == MODE_MIXED && number % 10 == 0), xml);
}

static int know_document(struct worker *w, struct agent *a)
{
	if (a->length)
		return 0;
	make_document(w->s, a, &w->xml);
	if (w->xml.failed)
		return err_set(&w->why, "out of memory");
	a->length = w->xml.len;
	hash_hex(w->xml.data, w->xml.len, a->sha256);
	return 0;
}

static void next_seq(struct agent *a)
{
	struct timespec t;
	uint64_t now;

	clock_gettime(CLOCK_REALTIME, &t);
	now = t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
	a->seq = now > a->seq ? now : a->seq + 1;
}

static void make_claim(const struct storm *s, struct agent *a, struct claim *c)
{
	uint64_t boot = mixed(s->o.seed * UINT64_C(1000003) + number_of(s, a));

	next_seq(a);
	*c = (struct claim){ .purpose = CLAIM_EXPORT, .seq = a->seq, .length = a->length };
	snprintf(c->node, sizeof(c->node), "cn%06u", number_of(s, a));
	snprintf(c->boot_id, sizeof(c->boot_id),
		 "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-8%03" PRIx64 "-%012" PRIx64, boot >> 32,
		 boot >> 16 & 0xffff, boot >> 4 & 0xfff, boot & 0xfff, mixed(boot) >> 16);
	memcpy(c->sha256, a->sha256, sizeof(c->sha256));
}

/* --- one exchange */

/* PUT one of the two paths. 0, or -1 when there is no answer. */
static int put(struct worker *w, struct agent *a, const char *what, const struct buf *body, struct claim *c)
{
	const struct storm *s = w->s;
	unsigned to = (number_of(s, a) + a->exchanges++) % s->o.nurls;
	char *cred;
	int rc;

	make_claim(s, a, c);
	if (!(cred = cred_sign(c, s->registry, s->o.munge_socket, &w->why)))
		return -1;
	w->head.len = 0;
	buf_printf(&w->head, "PUT /v1/nodes/%s/%s HTTP/1.1\r\nHost: %s\r\n", c->node, what,
		   s->o.urls[to] + strlen("http://"));
	buf_printf(&w->head, "Authorization: Munge %s\r\n%sContent-Length: %zu\r\n\r\n", cred,
		   body ? "Content-Encoding: zstd\r\n" : "", body ? body->len : 0);
	free(cred);
	if (w->head.failed)
		return err_set(&w->why, "out of memory");
	rc = wire_exchange(&s->to[to], FIRST_ADDRESS + number_of(s, a), &w->head, body, TIMEOUT, &w->answer, &w->why);
	if (rc == 0)
		atomic_fetch_add(&w->s->sent_bytes, w->head.len + (body ? body->len : 0));
	return rc;
}

static enum outcome check_ack(struct worker *w, const struct claim *c)
{
	struct claim got;
	uid_t signer;

	if (!*w->answer.ack) {
		err_set(&w->why, "the answer carries no acknowledgement");
		return AGAIN;
	}
	if (cred_check(w->answer.ack, w->s->o.munge_socket, &got, &signer, &w->why))
		return AGAIN;
	if (signer != w->s->registry || strcmp(got.purpose, CLAIM_ACK) || strcmp(got.node, c->node) ||
	    strcmp(got.sha256, c->sha256) || strcmp(got.boot_id, c->boot_id) || got.seq != c->seq) {
		err_set(&w->why, "the acknowledgement is not this export's (signed by uid %u)", (unsigned) signer);
		return AGAIN;
	}
	return ACKNOWLEDGED;
}

static enum outcome judge(struct worker *w, const struct claim *c)
{
	int status = w->answer.status;

	if (status == 200)
		return check_ack(w, c);
	if (status == 202 && w->s->o.mode != MODE_HASH)
		return WANTED;
	err_set(&w->why, "the registry answers %d: %.*s", status, (int) strcspn(w->answer.body.data, "\n"),
		w->answer.body.data);
	return status < 500 && status != 409 && status != 429 ? REFUSED : AGAIN;
}

static enum outcome ask(struct worker *w, struct agent *a, struct claim *c)
{
	return know_document(w, a) || put(w, a, "boot", NULL, c) ? AGAIN : judge(w, c);
}

static enum outcome send_document(struct worker *w, struct agent *a, struct claim *c)
{
	enum outcome rc = AGAIN;

	make_document(w->s, a, &w->xml);
	buf_free(&w->zip);
	if (w->xml.failed || zip_make(w->xml.data, w->xml.len, &w->zip, &w->why) || put(w, a, "topology", &w->zip, c))
		return AGAIN;
	atomic_fetch_add(&w->s->documents, 1);
	atomic_fetch_add(&w->s->xml_bytes, w->xml.len);
	rc = judge(w, c);
	return rc == WANTED ? AGAIN : rc;
}

/* --- what follows from it */

static void finish(struct storm *s, struct agent *a, const struct claim *c, int64_t since)
{
	int64_t now = agenda_now();

	a->step = DONE;
	a->ack_us = now - since;
	a->whole_us = now - a->arrived;
	if (s->log)
		fprintf(s->log, "%s %s %" PRIu64 " %s\n", c->node, c->boot_id, c->seq, c->sha256);
	pthread_mutex_lock(&s->lock);
	s->stored[s->acknowledged] = number_of(s, a);
	atomic_fetch_add(&s->acknowledged, 1);
	s->last_ack = now;
	pthread_mutex_unlock(&s->lock);
}

/* The first word of a window in {"send": ..., "spread": 12}: in seconds. */
static unsigned announced(const struct wire_answer *a)
{
	json_t *j = json_loadb(a->body.data, a->body.len, 0, NULL);
	json_int_t window = json_integer_value(json_object_get(j, "spread"));

	json_decref(j);
	return window < 0 ? 0 : window > SPREAD_MAX ? SPREAD_MAX : window;
}

/* Full jitter: from 0 to 1 s, doubled each time. */
static int64_t pause_after(const struct storm *s, struct agent *a)
{
	uint64_t limit = a->attempt < 9 ? UINT64_C(1000000) << a->attempt : UINT64_MAX,
		 most = s->o.pause_max * UINT64_C(1000000);

	return draw(s, a, (limit < most ? limit : most) + 1);
}

static void note(struct storm *s, const struct agent *a, const struct err *why)
{
	pthread_mutex_lock(&s->lock);
	err_set(&s->last_reason, "cn%06u: %s", number_of(s, a), why->text);
	pthread_mutex_unlock(&s->lock);
}

static void act(struct worker *w, unsigned i)
{
	struct storm *s = w->s;
	struct agent *a = &s->agents[i];
	int64_t since = agenda_now();
	struct claim c;

	w->answer.retry_after = 0;
	switch (a->step == ASKS ? ask(w, a, &c) : send_document(w, a, &c)) {
	case ACKNOWLEDGED:
		finish(s, a, &c, since);
		break;
	case WANTED:
		a->step = SENDS;
		agenda_add(s->agenda, i, agenda_now() + draw(s, a, announced(&w->answer) * UINT64_C(1000000)));
		break;
	case AGAIN:
		note(s, a, &w->why);
		atomic_fetch_add(&s->retries, 1);
		a->step = ASKS;
		agenda_add(s->agenda, i, agenda_now() + pause_after(s, a) + w->answer.retry_after * INT64_C(1000000));
		a->attempt++;
		break;
	case REFUSED:
		note(s, a, &w->why);
		a->step = DONE;
		atomic_fetch_add(&s->failed, 1);
		break;
	}
}

static void *work(void *arg)
{
	struct worker w = { .s = arg };
	unsigned i;

	while (agenda_take(w.s->agenda, &i) == 0)
		act(&w, i);
	buf_free(&w.xml);
	buf_free(&w.zip);
	buf_free(&w.head);
	buf_free(&w.answer.body);
	return NULL;
}

/* --- readers */

struct reader {
	struct storm *s;
	unsigned index, failures;
	unsigned *us;
	size_t n, cap;
	pthread_t thread;
};

static int read_node(struct reader *r, unsigned number, struct buf *head, struct wire_answer *a)
{
	const struct options *o = &r->s->o;
	unsigned to = number % o->nurls, stem = strcspn(o->reader_path, "*");
	const char *rest = o->reader_path + stem;
	struct err e;

	head->len = 0;
	buf_printf(head, "GET %.*s", (int) stem, o->reader_path);
	if (*rest)
		buf_printf(head, "cn%06u%s", number, rest + 1);
	buf_printf(head, " HTTP/1.1\r\nHost: %s\r\n\r\n", o->urls[to] + strlen("http://"));
	return head->failed || wire_exchange(&r->s->to[to], 0, head, NULL, TIMEOUT, a, &e) || a->status != 200 ? -1 : 0;
}

static void record(struct reader *r, unsigned us)
{
	if (r->n == r->cap) {
		unsigned *more = realloc(r->us, (r->cap = 2 * r->cap + 1024) * sizeof(*more));

		if (!more)
			abort();
		r->us = more;
	}
	r->us[r->n++] = us;
}

static void *read_on(void *arg)
{
	struct reader *r = arg;
	struct wire_answer answer = {0};
	struct buf head = {0};
	uint64_t x = mixed(r->s->o.seed + r->index + 77);

	while (!r->s->over) {
		unsigned known = r->s->acknowledged;
		int64_t since = agenda_now();

		x = mixed(x + 1);
		if (known && read_node(r, r->s->stored[x % known], &head, &answer))
			r->failures++;
		else if (known)
			record(r, agenda_now() - since);
		usleep(r->s->o.reader_pause * 1000);
	}
	buf_free(&head);
	buf_free(&answer.body);
	return NULL;
}

/* --- the result */

static int by_value(const void *a, const void *b)
{
	unsigned x = *(const unsigned *) a, y = *(const unsigned *) b;

	return (x > y) - (x < y);
}

/* Sorts us. */
static json_t *percentiles(unsigned *us, size_t n)
{
	if (!n)
		return json_null();
	qsort(us, n, sizeof(*us), by_value);
	return json_pack("{s:I, s:f, s:f, s:f}", "count", (json_int_t) n, "p50_ms", us[n / 2] / 1e3,
			 "p99_ms", us[n - 1 - n / 100] / 1e3, "max_ms", us[n - 1] / 1e3);
}

static json_t *of_acknowledged(const struct storm *s, size_t field)
{
	unsigned *us = calloc(s->o.agents, sizeof(*us));
	json_t *told = NULL;
	size_t n = 0;

	for (size_t i = 0; us && i < s->o.agents; i++)
		if (s->agents[i].step == DONE && s->agents[i].whole_us)
			us[n++] = *(const unsigned *) ((const char *) &s->agents[i] + field);
	if (us)
		told = percentiles(us, n);
	free(us);
	return told;
}

static json_t *of_reads(const struct reader *readers, unsigned n, unsigned *failures)
{
	struct reader all = {0};
	json_t *told;

	for (unsigned i = 0; i < n; i++) {
		*failures += readers[i].failures;
		for (size_t k = 0; k < readers[i].n; k++)
			record(&all, readers[i].us[k]);
	}
	told = percentiles(all.us, all.n);
	free(all.us);
	return told;
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int report(const struct storm *s, const struct reader *readers)
{
	unsigned acknowledged = s->acknowledged, read_failures = 0;
	double seconds = acknowledged ? (s->last_ack - s->began) / 1e6 : 0;
	json_t *reads = of_reads(readers, s->o.readers, &read_failures);
	json_t *j = json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:o, s:o, s:o, s:I, s:f, s:s}",
		"agents", (json_int_t) s->o.agents, "acknowledged", (json_int_t) acknowledged,
		"failed", (json_int_t) s->o.agents - acknowledged, "retries", (json_int_t) s->retries,
		"documents", (json_int_t) s->documents,
		"seconds", seconds, "per_second", seconds > 0 ? acknowledged / seconds : 0,
		"xml_bytes", (json_int_t) s->xml_bytes, "sent_bytes", (json_int_t) s->sent_bytes,
		"ack", of_acknowledged(s, offsetof(struct agent, ack_us)),
		"export", of_acknowledged(s, offsetof(struct agent, whole_us)),
		"reads", reads, "read_failures", (json_int_t) read_failures,
		"cpu_seconds", cpu_seconds(), "last_reason", s->last_reason.text);

	if (!j || json_dumpf(j, stdout, JSON_REAL_PRECISION(6)) || printf("\n") < 0 || fflush(stdout))
		return -1;
	json_decref(j);
	return acknowledged == s->o.agents ? 0 : -1;
}

/* --- options */

enum key {
	KEY_AGENTS = 256, KEY_FIRST, KEY_THREADS, KEY_READERS, KEY_READER_PAUSE, KEY_WINDOW, KEY_DEADLINE,
	KEY_PAUSE_MAX, KEY_SEED, KEY_GENERATION, KEY_VARIANTS, KEY_PAD, KEY_NUMBERS_END, KEY_DISTINCT, KEY_READER_PATH,
	KEY_MUNGE_SOCKET, KEY_REGISTRY_USER,
};

static const struct argp_option option_list[] = {
	{ "agents", KEY_AGENTS, "N", 0, "Nodes that boot (100)", 0 },
	{ "first", KEY_FIRST, "N", 0, "Number of the first one", 0 },
	{ "base", 'b', "XML", 0, "A machine to make them from; several take turns", 0 },
	{ "pad", KEY_PAD, "BYTES", 0, "Grow each document to about BYTES", 0 },
	{ "distinct-structure", KEY_DISTINCT, NULL, 0, "Each node has devices that no other has together", 0 },
	{ "variants", KEY_VARIANTS, "PERCENT", 0,
	  "Nodes with a card, a core or memory missing, or a card in another slot", 0 },
	{ "generation", KEY_GENERATION, "N", 0, "The nodes after N repairs", 0 },
	{ "mode", 'm', "MODE", 0,
	  "full: what the registry asks for; hash: it knows all of them; mixed: each tenth was repaired", 0 },
	{ "window", KEY_WINDOW, "SECONDS", 0, "They boot within this time (0)", 0 },
	{ "deadline", KEY_DEADLINE, "SECONDS", 0, "What is not acknowledged by then has failed (600)", 0 },
	{ "pause-max", KEY_PAUSE_MAX, "SECONDS", 0, "Longest pause between two attempts (300)", 0 },
	{ "threads", KEY_THREADS, "N", 0, "Exchanges at a time (64)", 0 },
	{ "readers", KEY_READERS, "N", 0, "Threads that read nodes meanwhile (0)", 0 },
	{ "reader-path", KEY_READER_PATH, "PATH", 0, "What they read, '*' is the node (/v1/nodes/*)", 0 },
	{ "reader-pause", KEY_READER_PAUSE, "MS", 0, "Between two of a reader's requests (50)", 0 },
	{ "seed", KEY_SEED, "N", 0, "Of all that is random; another seed is another boot", 0 },
	{ "config", 'c', "FILE", 0, "Read FILE instead of the usual topiary.conf", 0 },
	{ "url", 'u', "URL", 0, "Of topiaryd instead of RegistryURL; several take turns", 0 },
	{ "munge-socket", KEY_MUNGE_SOCKET, "PATH", 0, "Of the nodes' munged instead of MungeSocket", 0 },
	{ "registry-user", KEY_REGISTRY_USER, "NAME", 0, "Who must sign acknowledgements instead of RegistryUser", 0 },
	{ "log", 'l', "FILE", 0, "A line for each acknowledged export: node, boot, sequence, sha256", 0 },
	{0},
};

static const struct number_option {
	enum key key;
	size_t offset;
	unsigned long min, max;
} number_options[] = {
	{ KEY_AGENTS, offsetof(struct options, agents), 1, NODES_MAX },
	{ KEY_FIRST, offsetof(struct options, first), 0, NODES_MAX - 1 },
	{ KEY_THREADS, offsetof(struct options, threads), 1, 1024 },
	{ KEY_READERS, offsetof(struct options, readers), 0, 64 },
	{ KEY_READER_PAUSE, offsetof(struct options, reader_pause), 0, 10000 },
	{ KEY_WINDOW, offsetof(struct options, window), 0, 86400 },
	{ KEY_DEADLINE, offsetof(struct options, deadline), 1, 86400 },
	{ KEY_PAUSE_MAX, offsetof(struct options, pause_max), 0, 300 },
	{ KEY_SEED, offsetof(struct options, seed), 0, UINT32_MAX },
	{ KEY_GENERATION, offsetof(struct options, generation), 0, 65535 },
	{ KEY_VARIANTS, offsetof(struct options, variants), 0, 100 },
	{ KEY_PAD, offsetof(struct options, pad), 0, CANON_MAX_BYTES },
};

static void set_number(struct options *o, int key, const char *value, const struct argp_state *state)
{
	for (const struct number_option *n = number_options; n < number_options + COUNT(number_options); n++) {
		unsigned long *field = (unsigned long *) ((char *) o + n->offset);
		char *end;

		if ((int) n->key != key)
			continue;
		*field = strtoul(value, &end, 10);
		if (end == value || *end || *field < n->min || *field > n->max)
			argp_error(state, "'%s': a number from %lu to %lu is wanted", value, n->min, n->max);
	}
}

static int mode_parse(const char *name)
{
	static const char *const modes[] = { [MODE_FULL] = "full", [MODE_HASH] = "hash", [MODE_MIXED] = "mixed" };

	for (size_t i = 0; i < COUNT(modes); i++)
		if (!strcmp(modes[i], name))
			return i;
	return -1;
}

static void add_text(const char **list, unsigned *n, unsigned max, const char *value, const struct argp_state *state)
{
	if (*n == max)
		argp_error(state, "%s: at most %u of these", value, max);
	list[(*n)++] = value;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct options *o = state->input;
	int mode;

	switch (key) {
	case 'b':
		add_text(o->bases, &o->nbases, BASES, value, state);
		return 0;
	case 'u':
		add_text(o->urls, &o->nurls, URLS, value, state);
		return 0;
	case 'm':
		if ((mode = mode_parse(value)) < 0)
			argp_error(state, "--mode=%s: full, hash or mixed", value);
		o->mode = mode;
		return 0;
	case 'c':
		o->config = value;
		return 0;
	case 'l':
		o->log = value;
		return 0;
	case KEY_DISTINCT:
		o->distinct = true;
		return 0;
	case KEY_READER_PATH:
		o->reader_path = value;
		return 0;
	case KEY_MUNGE_SOCKET:
		o->munge_socket = value;
		return 0;
	case KEY_REGISTRY_USER:
		o->registry_user = value;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is wanted");
		return 0;
	case ARGP_KEY_END:
		if (!o->nbases || o->first + o->agents > NODES_MAX)
			argp_error(state, "a --base is wanted, and node numbers below %u", NODES_MAX);
		return 0;
	}
	if (key < KEY_AGENTS || key >= KEY_NUMBERS_END)
		return ARGP_ERR_UNKNOWN;
	set_number(o, key, value, state);
	return 0;
}

static const struct argp argp = {
	option_list, parse_option, NULL, "Nodes that boot at once and export their topologies to a registry.",
	NULL, NULL, NULL,
};

/* --- the storm */

/* Where to, and who must answer: the configuration's, where no option says otherwise. */
static int load_settings(struct storm *s, struct settings *conf, struct err *e)
{
	struct options *o = &s->o;

	if (settings_load(o->config, conf, e))
		return -1;
	if (!o->nurls)
		o->urls[o->nurls++] = conf->registry_url;
	if (!o->munge_socket)
		o->munge_socket = conf->munge_socket;
	if (!o->registry_user)
		o->registry_user = conf->registry_user;
	if (user_uid(o->registry_user, &s->registry, e))
		return -1;
	for (unsigned i = 0; i < o->nurls; i++)
		if (wire_address(o->urls[i], &s->to[i], e))
			return -1;
	return 0;
}

static int load_kind(const struct options *o, const char *path, struct kind *k, struct err *e)
{
	struct clones_how how = { .pad = o->pad, .distinct = o->distinct };
	struct buf xml = {0};
	int rc = -1;

	if (file_read(path, CANON_MAX_BYTES, &xml, e))
		return -1;
	if (!(k->plain = clones_new(xml.data, xml.len, path, &how, e)))
		goto done;
	/* What a machine has none of cannot be missing in it. */
	for (unsigned i = 0; o->variants && i < VARIANTS; i++) {
		how.variant = 1 + i % (VARIANT_COUNT - 1);
		how.which = i;
		if ((k->variants[k->nvariants] = clones_new(xml.data, xml.len, path, &how, e)))
			k->nvariants++;
	}
	rc = 0;
done:
	buf_free(&xml);
	return rc;
}

static int prepare(struct storm *s, struct settings *conf, struct err *e)
{
	if (load_settings(s, conf, e))
		return -1;
	for (unsigned i = 0; i < s->o.nbases; i++)
		if (load_kind(&s->o, s->o.bases[i], &s->kinds[i], e))
			return -1;
	if (s->o.log && !(s->log = fopen(s->o.log, "we")))
		return err_set(e, "%s: %s", s->o.log, strerror(errno));
	s->agenda = agenda_new(s->o.agents);
	s->agents = calloc(s->o.agents, sizeof(*s->agents));
	s->stored = calloc(s->o.agents, sizeof(*s->stored));
	return s->agenda && s->agents && s->stored ? 0 : err_set(e, "out of memory");
}

static int release(struct storm *s)
{
	int rc = s->log && fclose(s->log) ? err_set(&s->last_reason, "%s: %s", s->o.log, strerror(errno)) : 0;

	for (unsigned i = 0; i < s->o.nbases; i++) {
		clones_free(s->kinds[i].plain);
		for (unsigned k = 0; k < s->kinds[i].nvariants; k++)
			clones_free(s->kinds[i].variants[k]);
	}
	agenda_free(s->agenda);
	free(s->agents);
	free(s->stored);
	return rc;
}

static void arrive(struct storm *s)
{
	s->began = s->last_ack = agenda_now();
	for (unsigned i = 0; i < s->o.agents; i++) {
		s->agents[i].arrived = s->began + draw(s, &s->agents[i], s->o.window * UINT64_C(1000000));
		agenda_add(s->agenda, i, s->agents[i].arrived);
	}
}

static void watch(const struct storm *s)
{
	bool terminal = isatty(STDERR_FILENO);
	int64_t until = s->began + s->o.deadline * INT64_C(1000000);

	for (unsigned ticks = 0; s->acknowledged + s->failed < s->o.agents && agenda_now() < until; ticks++) {
		if (terminal && ticks % 10 == 0)
			fprintf(stderr, "\r%u of %lu acknowledged, %u retries, %" PRId64 " s ", s->acknowledged,
				s->o.agents, s->retries, (agenda_now() - s->began) / 1000000);
		usleep(50000);
	}
	if (terminal)
		fprintf(stderr, "\r\033[K");
}

static int rage(struct storm *s)
{
	pthread_t *threads = calloc(s->o.threads, sizeof(*threads));
	struct reader *readers = calloc(s->o.readers + 1, sizeof(*readers));
	int rc = -1;

	if (!threads || !readers)
		goto done;
	arrive(s);
	for (unsigned i = 0; i < s->o.threads; i++)
		if (pthread_create(&threads[i], NULL, work, s))
			abort();
	for (unsigned i = 0; i < s->o.readers; i++) {
		readers[i] = (struct reader){ .s = s, .index = i };
		if (pthread_create(&readers[i].thread, NULL, read_on, &readers[i]))
			abort();
	}
	watch(s);
	s->over = true;
	agenda_close(s->agenda);
	for (unsigned i = 0; i < s->o.threads; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < s->o.readers; i++)
		pthread_join(readers[i].thread, NULL);
	rc = report(s, readers);
	for (unsigned i = 0; i < s->o.readers; i++)
		free(readers[i].us);
done:
	free(threads);
	free(readers);
	return rc;
}

int main(int argc, char **argv)
{
	struct storm s = {
		.o = { .agents = 100, .threads = 64, .deadline = 600, .pause_max = 300, .reader_path = "/v1/nodes/*",
		       .reader_pause = 50 },
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	struct settings conf = {0};
	struct err e;
	int rc;

	log_open("storm");
	argp_parse(&argp, argc, argv, 0, NULL, &s.o);
	rc = prepare(&s, &conf, &e);
	if (rc) {
		log_error("%s", e.text);
	} else if ((rc = rage(&s))) {
		log_error("%s", s.last_reason.text);
	}
	rc |= release(&s);
	settings_free(&conf);
	return rc ? 1 : 0;
}
