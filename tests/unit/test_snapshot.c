/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "table.h"
#include "shape/hostlist.h"
#include "shape/inventory.h"
#include "base/string_map.h"
#include "shape/snapshot.h"

OWNS(struct inventory *, inventory_free)
OWNS(struct snapshot *, snapshot_free)

#define HEAD "topiary-snapshot 1\n"

static void good_text(struct buf *b)
{
	snapshot_start(b);
	snapshot_add_shape(b, "s1", "Package:2 [NUMANode] Core:6 PU:1");
	snapshot_add_nodes(b, "cn[001-512]", "s1");
	snapshot_add_shape(b, "s2", "Package:4 Core:4 PU:1");
	snapshot_add_nodes(b, "big1", "s2");
	snapshot_end(b);
	assert_false(b->failed);
}

TEST(writes_and_reads)
{
	FREED(buf_free) struct buf b = {0};
	OWNED(snapshot_free) struct snapshot *s;

	good_text(&b);
	s = snapshot_parse(b.data, b.len, "snapshot", &err);
	assert_made(s);
	assert_int_equal(s->nshapes, 2);
	assert_int_equal(s->nnodes, 2);
	assert_string_equal(s->nodes[0].hosts, "cn[001-512]");
	assert_ptr_equal(s->nodes[0].shape, s->shapes[0].shape);
	assert_int_equal(s->nodes[1].shape->cores, 16);
	assert_true(s->sealed);
}

/* --- damage: what a program wrote is taken byte for byte, or not at all --- */

static void expect_refused(const char *text, size_t len, const char *what, size_t at)
{
	struct err e = {""};
	struct snapshot *s = snapshot_parse(text, len, "damaged", &e);

	if (s)
		fail_msg("accepted: %s %zu of\n%.*s", what, at, (int) len, text);
	assert_int_equal(strncmp(e.text, "damaged:", 8), 0);
}

/* 200 nodes of several shapes, in runs and one by one, with memory, devices and braces. */
static void larger_text(struct buf *b)
{
	static const char *const shapes[] = {
		"Package:2 [NUMANode(memory=64GiB)] L3Cache:2 Core:4 PU:2",
		"Package:1 Core:16 PU:1 + GPU@0-7 GPU@8-15 NIC@3",
		"{ Package:1 Core:8 PU:2 | Package:1 Core:4 PU:2 }",
		"Core:4",
	};
	OWNED(inventory_free) struct inventory *v = inventory_new();

	for (int i = 0; i < 200; i++) {
		char name[16];

		snprintf(name, sizeof(name), i < 150 ? "cn%03d" : "r%dx", i);
		assert_int_equal(inventory_add(v, name, shapes[i < 150 ? i / 50 : i % 4], NULL), 0);
	}
	assert_int_equal(inventory_snapshot(v, NULL, b, NULL), 0);
}

static void (*const writers[])(struct buf *b) = { good_text, larger_text };

TEST(refuses_every_flipped_bit_and_truncation)
{
	for (size_t w = 0; w < ROWS(writers); w++) {
		FREED(buf_free) struct buf b = {0};

		writers[w](&b);
		for (size_t bit = 0; bit < 8 * b.len; bit++) {
			b.data[bit / 8] ^= 1 << bit % 8;
			expect_refused(b.data, b.len, "flipped bit", bit);
			b.data[bit / 8] ^= 1 << bit % 8;
		}
		for (size_t n = 0; n < b.len; n++)
			expect_refused(b.data, n, "cut at", n);
	}
}

/* Also of " sha256=..." alone, which leaves what a person could have written. */
TEST(refuses_the_loss_of_any_part)
{
	FREED(buf_free) struct buf b = {0}, bad = {0};

	good_text(&b);
	for (size_t from = 0; from < b.len; from++)
		for (size_t to = from + 1; to <= b.len; to++) {
			bad.len = 0;
			buf_add(&bad, b.data, from);
			buf_add(&bad, b.data + to, b.len - to);
			expect_refused(bad.data, bad.len, "a part was lost from", from);
		}
}

TEST(refuses_every_inserted_byte)
{
	FREED(buf_free) struct buf b = {0}, bad = {0};

	good_text(&b);
	for (size_t at = 0; at <= b.len; at++)
		for (int byte = 0; byte < 256; byte++) {
			char c = byte;

			bad.len = 0;
			buf_add(&bad, b.data, at);
			buf_add(&bad, &c, 1);
			buf_add(&bad, b.data + at, b.len - at);
			expect_refused(bad.data, bad.len, "a byte put in at", at);
		}
}

/* The right checksum, in a way in which we do not write it. */
TEST(refuses_another_way_to_write_the_checksum)
{
	static const char *const rows[] = { " end sha256=", "end  sha256=", "end\tsha256=", "end SHA256=",
					    "end sha256= ", "end " };
	FREED(buf_free) struct buf b = {0};
	size_t above;
	char *sum;

	good_text(&b);
	sum = strchr(strstr(b.data, "\nend "), '=') + 1;
	above = sum - strlen("end sha256=") - b.data;
	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf other = {0};

		buf_add(&other, b.data, above);
		buf_puts(&other, rows[i]);
		buf_puts(&other, sum);
		expect_refused(other.data, other.len, "row", i);
	}
	sum = strpbrk(sum, "abcdef");
	*sum -= 'a' - 'A';
	expect_refused(b.data, b.len, "upper case at", sum - b.data);
}

TEST(reads_handwritten_files)
{
	static const char *const rows[] = {
		HEAD "end\n",
		HEAD "# mine\n\n  shape a Core:4\n\tnodes n[1-4]  a \n end \n\n# after\n",
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(snapshot_free) struct snapshot *s = snapshot_parse(rows[i], strlen(rows[i]), "hand", &err);

		if (!s)
			fail_msg("row %zu: %s", i, err.text);
		assert_false(s->sealed);
	}
}

TEST(refuses)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "", "hand:0: truncated" },
		{ "topiary-snapshot 2\nend\n", "hand:1: not a snapshot" },
		{ HEAD, "hand:1: truncated" },
		{ HEAD "shape a Core:4\n", "hand:2: truncated" },
		{ HEAD "shape\nend\n", "hand:2: missing shape name" },
		{ HEAD "shape a Core:0\nend\n", "hand:2: count out of range" },
		{ HEAD "shape a Core:4\nshape a Core:4\nend\n", "hand:3: duplicate shape name" },
		{ HEAD "nodes n1 a\nend\n", "hand:2: undefined shape" },
		{ HEAD "shape a Core:4\nnodes n1\nend\n", "hand:3: expected 'nodes HOSTS SHAPE'" },
		{ HEAD "shape a Core:4\nnodes n1 a b\nend\n", "hand:3: expected 'nodes HOSTS SHAPE'" },
		{ HEAD "what\nend\n", "hand:2: expected 'shape', 'nodes' or 'end'" },
		{ HEAD "end\nshape a Core:4\n", "hand:3: unexpected text after the end" },
		{ HEAD "end\nend\n", "hand:3: unexpected text after the end" },
		{ HEAD "end", "hand:2: truncated: no newline at the end" },
		{ "topiary-snapshot 1", "hand:1: truncated: no newline at the end" },
		{ HEAD "sealed\nend\n", "hand:3: missing checksum" },
		{ HEAD "sealed twice\nend\n", "hand:2: unexpected text after 'sealed'" },
		{ HEAD "end sha256=00\n", "hand:2: checksum does not match" },
		{ HEAD "end crc=00\n", "hand:2: checksum does not match" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = {""};

		if (snapshot_parse(rows[i].text, strlen(rows[i].text), "hand", &e))
			fail_msg("accepted row %zu", i);
		if (strncmp(e.text, rows[i].error, strlen(rows[i].error)))
			fail_msg("row %zu: '%s' is not '%s...'", i, e.text, rows[i].error);
	}
	assert_null(snapshot_parse(HEAD "end\n\0", sizeof(HEAD "end\n\0") - 1, "hand", NULL));
}

/* Few bytes of text that would be gigabytes of shapes. */
TEST(refuses_shapes_too_large_together)
{
	FREED(buf_free) struct buf b = {0};
	struct err e = {""};

	snapshot_start(&b);
	for (unsigned i = 0; i <= SNAPSHOT_MAX_DOMAINS / SHAPE_MAX_CORES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "s%u", i);
		snapshot_add_shape(&b, name, "Core:65536");
	}
	snapshot_end(&b);
	assert_null(snapshot_parse(b.data, b.len, "large", &e));
	assert_non_null(strstr(e.text, "together are too large"));
	assert_null(snapshot_parse((char[4096]){0}, 4096, "zeros", &e));
	assert_string_equal(e.text, "zeros: not a text file: contains a NUL byte");
}

/* --- string maps --- */

TEST(numbers_names)
{
	struct string_map r = {0};
	char name[16];

	assert_true(string_map_find(&r, "cn0") == STRING_MAP_NONE);
	for (size_t i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "cn%zu", i / 2);
		assert_true(string_map_add(&r, name) == i / 2);
	}
	assert_int_equal(r.count, 10000);
	for (size_t i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "cn%zu", i);
		assert_true(string_map_find(&r, name) == i);
	}
	assert_true(string_map_find(&r, "cn10000") == STRING_MAP_NONE);
	assert_true(string_map_find(&r, "") == STRING_MAP_NONE);
	assert_true(string_map_add(&r, "") == 10000 && string_map_find(&r, "") == 10000);
	assert_true(string_map_find_bytes(&r, "cn0\0a", 5) == STRING_MAP_NONE);
	assert_true(string_map_add_bytes(&r, "cn0\0a", 5) == 10001 && string_map_add_bytes(&r, "cn0\0b", 5) == 10002);
	assert_true(string_map_find_bytes(&r, "cn0\0b", 5) == 10002 && string_map_find(&r, "cn0") == 0);
	string_map_free(&r);
	assert_int_equal(r.count, 0);
}

/* --- host lists --- */

static int gather(const char *name, void *user)
{
	struct buf *b = user;

	buf_printf(b, "%s%s", b->len ? " " : "", name);
	return 0;
}

TEST(expands_host_lists)
{
	static const struct {
		const char *list, *names;
	} rows[] = {
		{ "cn1", "cn1" },
		{ "a,b-c.d_e,a", "a b-c.d_e a" },
		{ "cn[1-3]", "cn1 cn2 cn3" },
		{ "cn[8-11]", "cn8 cn9 cn10 cn11" },
		{ "cn[08-11]", "cn08 cn09 cn10 cn11" },
		{ "cn[1,3,05-06],x", "cn1 cn3 cn05 cn06 x" },
		{ "r[0-1]n[1-2]", "r0n1 r0n2 r1n1 r1n2" },
		{ "r[0-1]n7-ib,[1-2]", "r0n7-ib r1n7-ib 1 2" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf names = {0};

		if (hostlist_expand(rows[i].list, gather, &names, &err))
			fail_msg("%s: %s", rows[i].list, err.text);
		assert_string_equal(names.data, rows[i].names);
	}
}

static int count(const char *name, void *user)
{
	(void) name;
	++*(size_t *) user;
	return 0;
}

static int is_in(const char *name, void *set)
{
	if (!hostset_has(set, name))
		fail_msg("%s: not known", name);
	return 0;
}

static int is_out(const char *name, void *set)
{
	if (hostset_has(set, name))
		fail_msg("%s: known", name);
	return 0;
}

struct told {
	size_t names, bytes;
};

static int tell(const char *name, void *user)
{
	struct told *t = user;

	t->names++;
	t->bytes += strlen(name) + 1;
	return 0;
}

static const char *const no_lists[] = {
	"", ",", "a,", ",a", "a,,b", "a b", "cn[", "cn[1", "cn[1-", "cn[1-]", "cn[]", "cn[1,]", "cn[,1]", "cn[3-1]",
	"cn[a]", "cn[1-2", "cn]", "cn[1]]", "cn[[1]]", "a/b", "a\tb", "\xc3\xa4", "cn[1-2000000]", "cn[0-999][0-9999]",
	"cn[1-9999999999999999]", "cn[-1]",
};

TEST(refuses_invalid_host_lists)
{
	char longest[HOSTLIST_MAX_NAME + 2];

	for (size_t i = 0; i < ROWS(no_lists); i++) {
		struct err e = {""};
		size_t n = 0;

		if (hostlist_expand(no_lists[i], count, &n, &e) == 0)
			fail_msg("accepted: '%s'", no_lists[i]);
		assert_true(*e.text && n <= HOSTLIST_MAX_NAMES);
	}
	memset(longest, 'a', sizeof(longest));
	longest[HOSTLIST_MAX_NAME + 1] = '\0';
	assert_int_equal(hostlist_expand(longest, count, &(size_t){0}, NULL), -1);
	longest[HOSTLIST_MAX_NAME] = '\0';
	assert_int_equal(hostlist_expand(longest, count, &(size_t){0}, NULL), 0);
}

TEST(folds_host_lists)
{
	static const struct {
		const char *list, *folded;
	} rows[] = {
		{ "cn1", "cn1" },
		{ "cn2,cn1,cn2", "cn[1-2]" },
		{ "cn3,cn1,x,cn2,cn5", "cn[1-3,5],x" },
		{ "cn[9-11],cn8,cn100,cn99", "cn[8-11,99-100]" },
		{ "cn[08-11],cn8,cn9", "cn[8-9,08-11]" },
		{ "cn099,cn0100,cn100", "cn[099-100,0100]" },
		{ "cn99,cn0100", "cn[99,0100]" },
		{ "cn,cn1,cnx", "cn,cn1,cnx" },
		{ "r[0-1]n[1-2]", "r0n[1-2],r1n[1-2]" },
		{ "a2-ib,a1-ib", "a1-ib,a2-ib" },
		{ "[3,1-2]", "[1-3]" },
		{ "n0000000000000000000001,n0000000000000000000002", "n0000000[000000000000001-000000000000002]" },
		{ "cn[000000-099999]", "cn[000000-065535,065536-099999]" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf out = {0};

		if (hostlist_fold(rows[i].list, &out, &err))
			fail_msg("%s: %s", rows[i].list, err.text);
		assert_string_equal(out.data, rows[i].folded);
	}
	assert_int_equal(hostlist_fold("cn[", &(struct buf){0}, NULL), -1);
}

TEST(finds_names_in_a_list)
{
	static const struct {
		const char *list;
		size_t names;
		const char *in, *out;	/* lists, too */
	} rows[] = {
		{ "cn1", 1, "cn1", "cn,cn2,cn01,cn11,c1,x" },
		{ "cn[1-3],cn2,cn[2-5]", 8, "cn[1-5]", "cn0,cn6,cn01,cn" },
		{ "cn[8-11]", 4, "cn8,cn9,cn10,cn11", "cn08,cn09,cn7,cn12,cn011,cn1" },
		{ "cn[08-11]", 4, "cn[08-11]", "cn8,cn9,cn07,cn12,cn011" },
		{ "cn[098-101]", 4, "cn098,cn101", "cn98,cn0100,cn102" },
		{ "cn1[0-12]", 13, "cn10,cn19,cn110,cn112", "cn1,cn9,cn113,cn20,cn100" },
		{ "cn0[0-12]", 13, "cn00,cn012", "cn0,cn000,cn12,cn013" },
		{ "r[0-1]n[1-2]", 4, "r0n1,r1n2", "r2n1,r0n3,r0n0,rn1" },
		{ "r[0-1]n[1-12]-ib,[1-2]", 26, "r0n7-ib,r1n12-ib,1,2", "r0n7,r0n13-ib,3,r2n1-ib" },
		{ "a,b-c.d_e,a", 3, "a,b-c.d_e", "b,b-c.d_,aa" },
		{ "cn[0-999999]", 1000000, "cn0,cn999999", "cn1000000,cn00" },
		{ "n0000000000000000[1-3]", 3, "n00000000000000001", "n1,n0000000000000001,n00000000000000004" },
		{ "n[000000000000001-3]", 3, "n000000000000003", "n3" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct hostset *s = hostset_parse(rows[i].list, &err);

		if (!s)
			fail_msg("%s: %s", rows[i].list, err.text);
		assert_int_equal(hostset_names(s), rows[i].names);
		assert_int_equal(hostlist_expand(rows[i].list, is_in, s, NULL), 0);
		assert_int_equal(hostlist_expand(rows[i].in, is_in, s, NULL), 0);
		assert_int_equal(hostlist_expand(rows[i].out, is_out, s, NULL), 0);
		hostset_free(s);
	}
	for (size_t i = 0; i < ROWS(no_lists); i++)
		assert_null(hostset_parse(no_lists[i], NULL));
}

/* What is told and what it takes stay bounded, whatever a few bytes stand for. */
TEST(bounds_host_list_bombs)
{
	static const struct {
		unsigned letters;	/* before the rest */
		const char *rest;
		unsigned times;
		bool taken, known;	/* by hostlist_expand and by hostset_parse */
	} rows[] = {
		{ 2, "[0-999999]", 1, true, true },
		{ 235, "[0-999999]", 1, false, true },
		{ 235, "[0-99999]", 1, true, true },
		{ 2, "[0-999999]", 2, false, false },
		{ 2, "[0-999],", 1000, true, true },
		{ 2, "[0-999],", 1100, false, false },
		{ 2, "[0-999999]-ib", 1, true, false },
		{ 2, "[0-99999]-ib", 1, true, true },
		{ 230, "[0-999999]-ib", 1, false, false },
		{ 2, "[0-999][0-9999]", 1, false, false },
		{ 2, "[0-99][0-99][0-99][0-99][0-99][0-99]", 1, false, false },
		{ 2, "[0-999999][0-999999][0-999999][", 1, false, false },
		{ 250, ",", 100000, true, true },	/* long as it is: its text is there already */
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf list = {0};
		struct told told = {0};
		struct hostset *s;
		struct err e = {""};

		for (unsigned n = 0; n < rows[i].times; n++) {
			for (unsigned k = 0; k < rows[i].letters; k++)
				buf_puts(&list, "a");
			buf_puts(&list, rows[i].rest);
		}
		if (list.data[list.len - 1] == ',')
			list.data[list.len - 1] = '\0';
		assert_int_equal(hostlist_expand(list.data, tell, &told, &e), rows[i].taken ? 0 : -1);
		assert_true(rows[i].taken || *e.text);
		assert_true(told.names <= HOSTLIST_MAX_NAMES && told.bytes <= HOSTLIST_MAX_BYTES + list.len);
		s = hostset_parse(list.data, &e);
		assert_int_equal(!!s, rows[i].known);
		hostset_free(s);
	}
}

/* Many lines of a snapshot, each of which could be taken, have the limits of one. */
TEST(bounds_many_lists)
{
	static const char head[] = "topiary-snapshot 1\nshape S Package:1 Core:1 PU:1\n";
	FREED(directory_free) struct directory d = {0};
	OWNED(inventory_free) struct inventory *v = inventory_new();
	FREED(buf_free) struct buf text = {0};
	OWNED(snapshot_free) struct snapshot *s;

	buf_puts(&text, head);
	for (unsigned i = 0; i < 20; i++)
		buf_printf(&text, "nodes n%u-[0-99999] S\n", i);
	buf_puts(&text, "end\n");
	s = snapshot_parse(text.data, text.len, "file", &err);
	assert_non_null(s);
	assert_int_equal(directory_fill(&d, s, &err), -1);
	assert_non_null(strstr(err.text, "more than"));
	assert_true(d.names.count <= HOSTLIST_MAX_NAMES);
	for (size_t i = 0; i < s->nnodes; i++)
		assert_int_equal(inventory_add(v, s->nodes[i].hosts, "Package:1 Core:1 PU:1", &err), i < 10 ? 0 : -1);
}

/* --- inventories --- */

static struct buf inventory_text(struct inventory *v)
{
	struct buf b = {0};

	assert_ok(inventory_snapshot(v, NULL, &b, &err));
	inventory_free(v);
	return b;
}

TEST(gathers_nodes_by_shape)
{
	struct inventory *v = inventory_new();
	OWNED(snapshot_free) struct snapshot *s;
	FREED(buf_free) struct buf b;

	assert_int_equal(inventory_add(v, "cn3,cn1", "Core:4", NULL), 0);
	assert_int_equal(inventory_add(v, "big", "Core:8", NULL), 0);
	assert_int_equal(inventory_add(v, "cn[1-2]", "Core:4", NULL), 0);
	b = inventory_text(v);
	s = snapshot_parse(b.data, b.len, "inventory", NULL);
	assert_non_null(s);
	assert_int_equal(s->nnodes, 2);
	for (size_t i = 0; i < s->nnodes; i++)
		assert_string_equal(s->nodes[i].hosts, s->nodes[i].shape->cores == 4 ? "cn[1-3]" : "big");
	assert_true(strcmp(s->shapes[0].name, s->shapes[1].name) < 0);
}

TEST(refuses_invalid_inventories)
{
	OWNED(inventory_free) struct inventory *v = inventory_new();
	struct err e = {""};
	struct buf b = {0};

	assert_int_equal(inventory_add(v, "cn[1", "Core:4", &e), -1);
	assert_non_null(strstr(e.text, "cn[1"));
	assert_int_equal(inventory_add(v, "cn1", "Core:0", &e), -1);
	assert_non_null(strstr(e.text, "cn1"));
	assert_int_equal(inventory_add(v, "cn2,b@d", "Core:2", &e), -1);
	assert_int_equal(inventory_add(v, "cn[2-4]", "Core:4", &e), 0);
	assert_int_equal(inventory_snapshot(v, NULL, &b, &e), 0);
	assert_null(strstr(b.data, "Core:2"));
	buf_free(&b);
	assert_int_equal(inventory_add(v, "cn3", "Core:8", &e), 0);
	assert_int_equal(inventory_snapshot(v, NULL, &b, &e), -1);
	assert_non_null(strstr(e.text, "cn3"));
	assert_null(b.data);
}

/* The worst order of a large cluster: each node another shape than its neighbour. */
TEST(holds_a_large_cluster)
{
	struct inventory *v = inventory_new();
	OWNED(snapshot_free) struct snapshot *s;
	size_t nodes = 0;
	FREED(buf_free) struct buf b;

	for (int i = 0; i < 100000; i++) {
		char name[32], shape[64];

		snprintf(name, sizeof(name), "cn%06d", i);
		snprintf(shape, sizeof(shape), "Package:2 [NUMANode(memory=64GiB)] Core:%d PU:2", 4 + i % 20);
		assert_int_equal(inventory_add(v, name, shape, NULL), 0);
	}
	b = inventory_text(v);
	assert_true(b.len <= 1000000);
	s = snapshot_parse(b.data, b.len, "large", NULL);
	assert_non_null(s);
	assert_int_equal(s->nshapes, 20);
	for (size_t i = 0; i < s->nnodes; i++)
		assert_int_equal(hostlist_expand(s->nodes[i].hosts, count, &nodes, NULL), 0);
	assert_int_equal(nodes, 100000);
}

/* A file of these nodes and this database, and what would replace it. */
TEST(keeps_a_snapshot_that_would_lose_most_nodes)
{
	static const struct {
		const char *nodes, *database, *then, *of;
		int rc;
		const char *says;
	} rows[] = {
		{ "cn[1-15]", "A 0", "cn[1-14]", "A 0", 1, NULL },
		{ "cn[1-15]", "A 0", "cn[1-8]", "A 0", 1, NULL },
		{ "cn[1-15]", "A 0", "cn[1-7]", "A 0", -1, "without most of its 15 nodes, which topiary forget has" },
		{ "cn[1-15]", "A 0", "cn1", "A 7", 1, NULL },
		{ "cn[1-15]", "A 3", "cn1", "A 9", -1, "without most of its 15 nodes" },
		{ "cn[1-15]", "A 9", "cn1", "A 3", -1, "without most of its 15 nodes" },
		{ "cn[1-15]", "A", "cn1", "A", -1, "without most of its 15 nodes" },	/* of an older release */
		{ "cn[1-15]", "A 0", "cn[1-15],dn1", "A 0", 1, NULL },
		{ "cn[1-15]", "A 0", "cn[1-15]", "A 0", 0, NULL },
		{ "cn[1-3]", "A 0", "cn1", "A 0", -1, "without most of its 3 nodes" },
		{ "cn[1-2]", "A 0", "cn1", "A 0", 1, NULL },
		{ "cn[1-15]", "A 0", "cn[1-15]", "B 0", -1, "of another database, B; the file is of A." },
		{ "cn[1-15]", NULL, "cn1", "A 0", 1, NULL },		/* written by hand */
		{ "cn[1-15]", "A 0", NULL, "A 0", -1, "without nodes" },
		{ NULL, "A 0", "cn1", "A 0", 1, NULL },
	};
	char path[4096];

	snprintf(path, sizeof(path), "%s/snapshot", folder_new());
	for (size_t i = 0; i < ROWS(rows); i++) {
		const char *const nodes[] = { rows[i].nodes, rows[i].then };
		const char *const of[] = { rows[i].database, rows[i].of };
		struct buf text[2] = {{0}};
		int rc;

		for (int k = 0; k < 2; k++) {
			OWNED(inventory_free) struct inventory *v = inventory_new();

			if (nodes[k])
				assert_ok(inventory_add(v, nodes[k], "Core:4", &err));
			assert_ok(inventory_snapshot(v, of[k], &text[k], &err));
		}
		unlink(path);
		assert_int_equal(snapshot_replace(path, &text[0], false, &err), 1);
		rc = snapshot_replace(path, &text[1], false, &err);
		if (rc != rows[i].rc || (rc < 0 && !strstr(err.text, rows[i].says)))
			fail_msg("%s to %s: %d %s", rows[i].nodes, rows[i].then, rc, rc < 0 ? err.text : "");
		assert_int_equal(snapshot_replace(path, &text[1], true, &err), rc < 0);
		buf_free(&text[0]);
		buf_free(&text[1]);
	}
}

TEST(knows_one_spelling_of_a_host)
{
	static const struct {
		const char *name, *is, *full;	/* NULL: refused */
	} rows[] = {
		{ "n5", "n5", "n5" }, { "N5", "n5", "n5" }, { "n5.", "n5", "n5" },
		{ "N5.Cluster.example.", "n5", "n5.cluster.example" }, { "rack1.2", "rack1", "rack1.2" },
		{ "1234.cluster.example", NULL, "1234.cluster.example" },
		{ "10.1.2.3", NULL, NULL }, { "0306.19.65.2", NULL, NULL }, { "0xc6.0x13.1.2", NULL, NULL },
		{ "0XC6134102", NULL, NULL }, { "3322102018", NULL, NULL }, { "10.1.2.3.", NULL, NULL },
		{ ".", NULL, NULL },
	};
	char name[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int full = 0; full < 2; full++) {
			const char *is = full ? rows[i].full : rows[i].is;

			snprintf(name, sizeof(name), "%s", rows[i].name);
			if (hostlist_name_canonical(name, full) != !!is || (is && strcmp(name, is)))
				fail_msg("%s: %s", rows[i].name, name);
		}
}

TESTS_MAIN(NULL, NULL)
