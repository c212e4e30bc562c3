/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <dirent.h>
#include <iconv.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../../registry/ingest/parser.h"
#include "../../registry/ingest/worker.h"
#include "table.h"
#include "topology.h"
#include "hwxml/canon.h"
#include "hwcmp/compare.h"
#include "shape/shape.h"

#define SMALL "Package:2 [NUMANode] L3Cache:2 Core:4 PU:2"

static struct parser *parser;

/* --- documents --- */

static struct buf document(const char *synthetic)
{
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = topology_of_synthetic(synthetic);
	struct buf xml;

	hwloc_obj_add_info(hwloc_get_root_obj(t), "HostName", "alpha");
	xml = topology_export(t);
	return xml;
}

static void put(struct buf *out, const char *text)
{
	buf_add(out, text, strlen(text));
}

/* The first `from` becomes `to`. */
static struct buf changed(const struct buf *doc, const char *from, const char *to, size_t to_len)
{
	const char *at = strstr(doc->data, from);
	struct buf out = {0};

	assert_non_null(at);
	buf_add(&out, doc->data, at - doc->data);
	buf_add(&out, to, to_len);
	put(&out, at + strlen(from));
	return out;
}

static struct buf repeated(const char *text, unsigned n)
{
	struct buf out = {0};

	while (n--)
		put(&out, text);
	return out;
}

static enum parser_result read_it(const struct buf *doc, struct parsed *out, struct err *e)
{
	*out = (struct parsed){0};
	return parser_read(parser, "alpha", doc, out, NULL, e);
}

static void is_served(void)
{
	FREED(buf_free) struct buf doc = document(SMALL);
	FREED(parsed_free) struct parsed d;

	assert_ok(read_it(&doc, &d, &err) != PARSER_OK);
}

static void is_refused(const char *what, const struct buf *doc)
{
	struct buf canonical = {0};
	struct parsed d;

	if (read_it(doc, &d, &err) != PARSER_REFUSED || strncmp(err.text, "alpha: ", 7) || d.cores)
		fail_msg("%s: not refused: %s", what, err.text);
	if (parser_canon(parser, "alpha", doc, &canonical, &err) != PARSER_REFUSED || canonical.data)
		fail_msg("%s: it has a canonical form", what);
}

/* --- what a good document gives --- */

TEST(parses_documents)
{
	static const struct {
		const char *synthetic;
		unsigned cores, pus;
	} rows[] = {
		{ SMALL, 16, 32 },
		{ "Core:3 PU:1", 3, 3 },
		{ "Package:4 [NUMANode(memory=1073741824)] Core:1 PU:4", 4, 16 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf doc = document(rows[i].synthetic);
		struct shape *shape;
		FREED(parsed_free) struct parsed d;

		if (read_it(&doc, &d, &err) != PARSER_OK)
			fail_msg("%s: %s", rows[i].synthetic, err.text);
		assert_int_equal(d.ncores, rows[i].cores);
		assert_int_equal(d.npus, rows[i].pus);
		assert_non_null(strstr(d.facts, "\tmachine\tHostName\talpha\n"));
		shape = shape_parse(d.allocation, &err);
		assert_non_null(shape);
		assert_int_equal(shape->pus, rows[i].pus);
		shape_free(shape);
		assert_true(*d.cores && *d.hierarchy && *d.detail);
	}
}

TEST(returns_the_canonical_form)
{
	FREED(buf_free) struct buf doc = document(SMALL), got = {0};
	FREED(canon_free) struct canon c;

	assert_int_equal(canon_parse(doc.data, doc.len, "x", &c, &err), 0);
	assert_int_equal(parser_canon(parser, "alpha", &doc, &got, &err), PARSER_OK);
	assert_int_equal(got.len, c.xml.len);
	assert_string_equal(got.data, c.xml.data);
}

TEST(returns_changes)
{
	static const struct {
		const char *from, *to;
		int drift, severity;
		bool empty;
	} rows[] = {
		{ "\"alpha\"", "\"alpha\"", 0, SEVERITY_IDENTITY, true },
		{ "\"alpha\"", "\"beta\"", 0, SEVERITY_IDENTITY, false },
		{ "\"alpha\"", "\"beta\"", 1, SEVERITY_IDENTITY, true },
		{ "local_memory=\"1073741824\"", "local_memory=\"536870912\"", 1, SEVERITY_CAPACITY, false },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf from = document("Package:2 [NUMANode(memory=1073741824)] Core:4 PU:2");
		FREED(buf_free) struct buf to = changed(&from, rows[i].from, rows[i].to, strlen(rows[i].to));
		FREED(parsed_free) struct parsed d;
		int kept = -1;

		/* By a new worker, by the one that parsed the document, and by a new one when that one has ended. */
		assert_int_equal(parser_read(parser, "alpha", &to, &d, &kept, &err), PARSER_OK);
		assert_true(kept >= 0);
		for (int by = 0; by < 3; by++) {
			OWNED(free) char *json;
			int severity = -1;

			if (by == 2)
				shutdown(kept, SHUT_RDWR);
			if (parser_compare(parser, "alpha", &from, &to, rows[i].drift, by ? &kept : NULL, &json,
					   &severity, &err) != PARSER_OK)
				fail_msg("%s: %s", rows[i].to, err.text);
			assert_int_equal(severity, rows[i].severity);
			assert_int_equal(!strcmp(json, "[]"), rows[i].empty);
			assert_int_equal(kept >= 0, by < 2);
		}
	}
}

TEST(names_the_document_that_cannot_be_compared)
{
	FREED(buf_free) struct buf good = document(SMALL), bad = repeated("x", 3);
	char *json = NULL;
	int severity = -1;

	assert_int_equal(parser_compare(parser, "alpha", &good, &bad, 0, NULL, &json, &severity, &err), PARSER_REFUSED);
	assert_non_null(strstr(err.text, "alpha: topology.xml:1: "));
	assert_int_equal(parser_compare(parser, "alpha", &bad, &good, 0, NULL, &json, &severity, &err), PARSER_REFUSED);
	assert_non_null(strstr(err.text, "alpha: base.xml:1: "));
	assert_null(json);
	assert_int_equal(severity, -1);
}

/* --- bad documents --- */

#define BOMB "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\" [" \
	"<!ENTITY a \"xxxxxxxxxx\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">" \
	"<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;\">]>"
#define DOCTYPE "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">"

/* Each kind of bad document is a row of test_canon.c; here, those that end in libxml2 or beyond. */
TEST(refuses_changed_documents)
{
	static const struct {
		const char *from, *to;
		size_t len;	/* 0: to's own */
	} rows[] = {
		{ DOCTYPE, BOMB, 0 },
		{ DOCTYPE, "<!DOCTYPE topology SYSTEM \"http://127.0.0.1:1/x.dtd\">", 0 },
		{ DOCTYPE, "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\" [<!ENTITY % p SYSTEM \"file:///etc/passwd\">"
		  " %p;]>", 0 },
		{ "\"alpha\"", "\"al\0pha\"", 9 },
		{ "\"alpha\"", "\"\xc0\xaf\"", 0 },
		{ "\"alpha\"", "\"\xed\xa0\x80\"", 0 },
		{ "\"alpha\"", "\"\x01\"", 0 },
		{ "<topology", "<x:topology", 0 },
		{ "encoding=\"UTF-8\"", "encoding=\"UTF-16\"", 0 },
		{ "encoding=\"UTF-8\"", "encoding=\"EBCDIC-CP-US\"", 0 },
		{ "encoding=\"UTF-8\"", "encoding=\"EUC-JP\"", 0 },
		{ "encoding=\"UTF-8\"", "encoding=\"no-such\"", 0 },
		{ "</topology>", "", 0 },
		{ "type=\"PU\"", "type=\"Package\"", 0 },
	};
	FREED(buf_free) struct buf good = document(SMALL);

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf doc =
			changed(&good, rows[i].from, rows[i].to, rows[i].len ? rows[i].len : strlen(rows[i].to));

		is_refused(rows[i].to, &doc);
	}
	is_served();
}

TEST(refuses_other_encodings)
{
	static const char *const encodings[] = { "UTF-16", "UTF-16LE", "UTF-32", "IBM037", "UTF-7" };
	FREED(buf_free) struct buf good = document(SMALL);

	for (size_t i = 0; i < ROWS(encodings); i++) {
		iconv_t how = iconv_open(encodings[i], "UTF-8");
		FREED(buf_free) struct buf doc = {0};
		char *in = good.data, *to = buf_reserve(&doc, 5 * good.len);
		size_t left = good.len, room = 5 * good.len;

		assert_true(how != (iconv_t)-1);
		assert_int_equal(iconv(how, &in, &left, &to, &room), 0);
		iconv_close(how);
		doc.len = to - doc.data;
		is_refused(encodings[i], &doc);
	}
}

TEST(refuses_what_is_no_document)
{
	static const char *const texts[] = {
		"", " ", "<", "x", "#!/bin/sh\nreboot\n", "<?xml version='1.0'?><html/>", "<topology/>",
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" DOCTYPE "\n<topology version=\"2.0\"></topology>",
	};

	for (size_t i = 0; i < ROWS(texts); i++) {
		FREED(buf_free) struct buf doc = repeated(texts[i], 1);

		buf_reserve(&doc, 0);
		is_refused(texts[i], &doc);
	}
}

/* Large in one way or another; each within what a body may have. */
TEST(refuses_what_is_too_much)
{
	static const struct {
		const char *name, *from, *unit, *tail;
		unsigned n;
	} rows[] = {
		{ "deep", "</topology>", "<object type=\"Group\">", "", 3000 },
		{ "objects", "</topology>", "<object type=\"Misc\" gp_index=\"9\"/>", "</topology>", 200001 },
		{ "attributes", "<info ", "<info a=\"\" ", "", 200000 },
		{ "attributes of one", "name=\"HostName\"", " a=\"\"", " name=\"HostName\"", 130000 },
		{ "attribute", "\"alpha\"", "\"", "", 1 },
		{ "garbage", "<?xml", "<<<<<<<<<<<<<<<<", "", 1 << 20 },
	};
	FREED(buf_free) struct buf good = document(SMALL);

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf many = repeated(rows[i].unit, rows[i].n), doc;

		put(&many, rows[i].tail);
		doc = changed(&good, rows[i].from, many.data, many.len);
		is_refused(rows[i].name, &doc);
	}
	is_served();
}

/* A name of ten megabytes is a name; whatever becomes of it, the next document is read. */
TEST(survives_a_huge_attribute)
{
	FREED(buf_free) struct buf good = document(SMALL), name = repeated("\"", 1), doc;
	FREED(parsed_free) struct parsed d;

	for (int i = 0; i < 1 << 20; i++)
		put(&name, "0123456789");
	put(&name, "\"");
	doc = changed(&good, "\"alpha\"", name.data, name.len);
	assert_int_not_equal(read_it(&doc, &d, &err), PARSER_FAILED);
	is_served();
}

TEST(survives_flipped_bytes)
{
	FREED(buf_free) struct buf good = document(SMALL);
	unsigned results[3] = {0};

	srandom(20261121);
	for (int round = 0; round < 600; round++) {
		FREED(buf_free) struct buf doc = {0};
		FREED(parsed_free) struct parsed d;

		buf_add(&doc, good.data, good.len);
		for (long flips = 1 + random() % 4; flips; flips--)
			doc.data[random() % doc.len] ^= 1 << random() % 8;
		enum parser_result rc = read_it(&doc, &d, &err);

		if (rc == PARSER_FAILED)
			fail_msg("round %d: %s", round, err.text);
		results[rc]++;
	}
	assert_true(results[PARSER_OK] > 10 && results[PARSER_REFUSED] > 100);
}

/* --- what may happen to a worker --- */

struct asker {
	pthread_t thread;
	const struct buf *doc;
	unsigned n;
	enum parser_result result;
	struct err e;
};

static void *ask(void *arg)
{
	struct asker *a = arg;

	for (unsigned i = 0; i < a->n && a->result == PARSER_OK; i++) {
		FREED(parsed_free) struct parsed d = {0};

		a->result = parser_read(parser, "alpha", a->doc, &d, NULL, &a->e);
	}
	return NULL;
}

static bool is_named(pid_t pid, const char *name)
{
	char path[64], got[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	if (!(f = fopen(path, "re")))
		return false;
	if (!fgets(got, sizeof(got), f))
		*got = '\0';
	fclose(f);
	got[strcspn(got, "\n")] = '\0';
	return !strcmp(got, name);
}

static pid_t child_of(pid_t parent, const char *name)
{
	char path[64];
	pid_t pid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
	if (!(f = fopen(path, "re")))
		return 0;
	while (fscanf(f, "%d", &pid) == 1 && !is_named(pid, name))
		pid = 0;
	fclose(f);
	return is_named(pid, name) ? pid : 0;
}

/* Ask, and send the worker a signal before it has read the document. */
static void ask_and_signal(struct asker *a, int signal)
{
	pid_t worker = 0;

	assert_int_equal(pthread_create(&a->thread, NULL, ask, a), 0);
	for (int i = 0; i < 1000 && !(worker = child_of(parser_pid(parser), "topiaryd-worker")); i++)
		usleep(1000);
	assert_true(worker > 0);
	assert_int_equal(kill(worker, signal), 0);
	pthread_join(a->thread, NULL);
}

TEST(a_killed_worker_is_a_failure)
{
	FREED(buf_free) struct buf doc = document("Package:40 [NUMANode] Core:40 PU:4");
	struct asker a = { .doc = &doc, .n = 1 };

	ask_and_signal(&a, SIGKILL);
	assert_int_equal(a.result, PARSER_FAILED);
	assert_non_null(strstr(a.e.text, "alpha: "));
	is_served();
	a.result = PARSER_OK;
	ask(&a);
	assert_int_equal(a.result, PARSER_OK);
}

/* As the kernel tells a worker that its time is over. One that is told before it has its socket cannot say so. */
TEST(a_worker_without_time_refuses)
{
	FREED(buf_free) struct buf doc = document("Package:40 [NUMANode] Core:40 PU:4");
	struct asker a = { .result = PARSER_FAILED };

	for (int i = 0; i < 50 && a.result != PARSER_REFUSED; i++) {
		a = (struct asker){ .doc = &doc, .n = 1 };
		ask_and_signal(&a, SIGXCPU);
	}
	assert_int_equal(a.result, PARSER_REFUSED);
	assert_string_equal(a.e.text, "alpha: parsing it takes more than 2 s of processor time");
}

TEST(serves_concurrent_requests)
{
	FREED(buf_free) struct buf small = document(SMALL), large = document("Package:8 [NUMANode] Core:16 PU:2");
	struct asker a[24];

	for (size_t i = 0; i < ROWS(a); i++) {
		a[i] = (struct asker){ .doc = i % 2 ? &small : &large, .n = 10 };
		assert_int_equal(pthread_create(&a[i].thread, NULL, ask, &a[i]), 0);
	}
	for (size_t i = 0; i < ROWS(a); i++) {
		pthread_join(a[i].thread, NULL);
		if (a[i].result != PARSER_OK)
			fail_msg("%s", a[i].e.text);
	}
}

TEST(reports_a_missing_parent)
{
	FREED(buf_free) struct buf doc = document(SMALL);
	struct parser *own, *other = parser;
	struct parsed d;

	assert_non_null(own = parser_start(&err));
	kill(parser_pid(own), SIGKILL);
	parser = own;
	assert_int_equal(read_it(&doc, &d, &err), PARSER_FAILED);
	parser = other;
	parser_stop(own);
	parser_stop(NULL);
	is_served();
}

/* --- what an attacked worker may say --- */

#define CHANGE(severity, more) \
	"{\"severity\":\"" severity "\",\"direction\":\"gone\",\"object\":\"PU 1\",\"what\":\"\"," \
	"\"from\":\"\",\"to\":\"\",\"words\":\"PU 1 gone\"" more "}"

static struct buf said(const char *text, size_t len)
{
	struct buf b = {0};

	buf_add(&b, text, len);
	return b;
}

TEST(validates_texts)
{
	static const struct {
		const char *text;
		size_t len;
		bool is_text, is_line, is_facts;
	} rows[] = {
#define ROW(text, ...) { text, sizeof(text) - 1, __VA_ARGS__ }
		ROW("", true, false, true),
		ROW("Core:4 PU:2", true, true, false),
		ROW("\xc3\xa4", true, true, false),
		ROW("a\0b", false, false, false),
		ROW("a\nb", true, false, false),
		ROW("\x1b[31m", true, false, false),
		ROW("\xc3", false, false, false),
		ROW("\xc0\xaf", false, false, false),
		ROW("\xed\xa0\x80", false, false, false),
		ROW("\xf4\x90\x80\x80", false, false, false),
		ROW("3\tmachine\tHostName\tn1\n", true, false, true),
		ROW("3\tmachine\tHostName\tn1\n14\tcore 2\t\t\n", true, false, true),
		ROW("3\tmachine\tHostName\tn1", true, false, false),
		ROW("\tmachine\tHostName\tn1\n", true, false, false),
		ROW("-3\tmachine\tHostName\tn1\n", true, false, false),
		ROW("3\tmachine\tHostName\n", true, false, false),
		ROW("3\tmachine\tHostName\tn1\tn2\n", true, false, false),
		ROW("3\tmachine\tHostName\tn\r1\n", true, false, false),
		ROW("3\tmachine\tHostName\tn1\n\n", true, false, false),
		ROW("3\tmachine\tHostName\t\xff\n", false, false, false),
#undef ROW
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf b = said(rows[i].text, rows[i].len);

		if (parser_validate_text(&b) != rows[i].is_text || parser_validate_line(&b) != rows[i].is_line ||
		    parser_validate_facts(&b) != rows[i].is_facts)
			fail_msg("row %zu: %s", i, rows[i].text);
	}
}

TEST(validates_shapes)
{
	static const struct {
		const char *text;
		unsigned cores, pus;
		bool is;
	} rows[] = {
		{ "Core:4 PU:2", 4, 8, true },
		{ "Core:4 PU:2", 4, 4, false },
		{ "Core:4 PU:2", 8, 8, false },
		{ "Core:4 PU", 4, 4, false },
		{ "", 0, 0, false },
		{ "Core:999999999 PU:2", 999999999, 1999999998, false },
		{ "{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{", 1, 1, false },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf b = said(rows[i].text, strlen(rows[i].text));

		if (parser_validate_shape(&b, rows[i].cores, rows[i].pus) != rows[i].is)
			fail_msg("row %zu: %s", i, rows[i].text);
	}
}

TEST(validates_lists_of_changes)
{
	static const struct {
		const char *text;
		int gravest;
	} rows[] = {
		{ "[]", SEVERITY_IDENTITY },
		{ "[" CHANGE("wiring", "") "]", SEVERITY_WIRING },
		{ "[" CHANGE("cosmetic", "") "," CHANGE("capacity", "") "]", SEVERITY_CAPACITY },
		{ "", -1 },
		{ "{}", -1 },
		{ "[", -1 },
		{ "[[]]", -1 },
		{ "[{}]", -1 },
		{ "[1]", -1 },
		{ "[]x", -1 },
		{ "[" CHANGE("fatal", "") "]", -1 },
		{ "[" CHANGE("wiring", ",\"more\":\"\"") "]", -1 },
		{ "[" CHANGE("wiring", ",\"words\":\"\"") "]", -1 },
		{ "[" CHANGE("wiring", "") ",null]", -1 },
		{ "[" CHANGE("wiring\\u0000", "") "]", -1 },
		{ "[" CHANGE("wiring", "") "," CHANGE("\xff", "") "]", -1 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf b = said(rows[i].text, strlen(rows[i].text));

		if (parser_validate_changes(&b) != rows[i].gravest)
			fail_msg("row %zu: %s", i, rows[i].text);
	}
}

/* --- the sandbox --- */

enum attempt { NOTHING, OPEN, MEMORY, SOCKET, FORK, KILL, ALARM, FILE_MEMORY, ENDLESS_WORK };

/* 0: it went as it should. */
static int attempt(enum attempt what)
{
	switch (what) {
	case NOTHING:
		return 0;
	case OPEN:
		return open("/etc/passwd", O_RDONLY) < 0 && errno == EACCES ? 0 : 1;
	case MEMORY:
		return malloc(300u << 20) ? 1 : 0;
	case SOCKET:
		return socket(AF_INET, SOCK_STREAM, 0) < 0;
	case FORK:
		return fork() < 0;
	case KILL:
		return kill(getppid(), 0);
	case ALARM:
		return alarm(1000) != 0;
	case FILE_MEMORY:
		return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 0, 0) == MAP_FAILED;
	case ENDLESS_WORK:
		for (volatile bool more = true; more;)
			;
	}
	return 1;
}

TEST(sandbox_allows_nothing_else)
{
	/* The signal that ends each, 0: ends well; SIGALRM ends the last on a busy machine. */
	static const int signals[] = { [SOCKET] = SIGSYS, [FORK] = SIGSYS, [KILL] = SIGSYS, [ALARM] = SIGSYS,
				       [FILE_MEMORY] = SIGSYS, [ENDLESS_WORK] = SIGXCPU };
	FREED(sandbox_free) struct sandbox s;

#ifdef __SANITIZE_ADDRESS__
	skip();	/* its own calls at a process's end are among the forbidden ones */
#endif
	assert_int_equal(sandbox_make(&s, &err), 0);
	for (size_t i = 0; i < ROWS(signals); i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(sandbox_prepare() || sandbox_enter(&s, 0) ? 100 : attempt(i));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status != signals[i] && (i != ENDLESS_WORK || status != SIGALRM))
			fail_msg("attempt %zu: status %#x", i, (unsigned)status);
	}
}

FIXTURE(begin)
{
	assert_made(parser = parser_start(&err));
	return 0;
}

FIXTURE(end)
{
	parser_stop(parser);
	return 0;
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	return tests_run(begin, end);
}
