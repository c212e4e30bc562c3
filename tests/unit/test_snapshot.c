/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "topo/snapshot.h"

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

static void writes_and_reads(void **state)
{
	struct buf b = {0};
	struct err e;
	struct snapshot *s;

	good_text(&b);
	s = snapshot_parse(b.data, b.len, "snapshot", &e);
	if (!s)
		fail_msg("%s", e.text);
	assert_int_equal(s->nshapes, 2);
	assert_int_equal(s->nnodes, 2);
	assert_string_equal(s->nodes[0].hosts, "cn[001-512]");
	assert_ptr_equal(s->nodes[0].shape, s->shapes[0].shape);
	assert_int_equal(s->nodes[1].shape->cores, 16);
	snapshot_free(s);
	buf_free(&b);
	(void) state;
}

/* Cut anywhere before its last line is whole, or with any byte of it changed, it is refused. */
static void notices_any_damage(void **state)
{
	struct buf b = {0};
	struct err e;

	good_text(&b);
	for (size_t n = 0; n < b.len - 1; n++) {
		struct snapshot *s = snapshot_parse(b.data, n, "snapshot", &e);

		/* A cut inside the checksum is a wrong checksum; right after the word `end` it is a snapshot written by hand. */
		if (s && memcmp(b.data + n - 3, "end", 3) && memcmp(b.data + n - 4, "end ", 4))
			fail_msg("accepted when cut at %zu", n);
		snapshot_free(s);
	}
	for (size_t n = 0; n < b.len - 1; n++) {
		b.data[n] ^= 1;
		if (snapshot_parse(b.data, b.len, "snapshot", &e))
			fail_msg("accepted with byte %zu changed", n);
		b.data[n] ^= 1;
	}
	buf_free(&b);
	(void) state;
}

static void reads_what_a_person_writes(void **state)
{
	static const char *const rows[] = {
		HEAD "end\n",
		HEAD "end",
		HEAD "# mine\n\n  shape a Core:4\n\tnodes n[1-4]  a \nend\n\n# after\n",
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e;
		struct snapshot *s = snapshot_parse(rows[i], strlen(rows[i]), "hand", &e);

		if (!s)
			fail_msg("row %zu: %s", i, e.text);
		snapshot_free(s);
	}
	(void) state;
}

static void refuses(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "", "hand:0: cut short" },
		{ "topiary-snapshot 2\nend\n", "hand:1: not a snapshot" },
		{ HEAD, "hand:1: cut short" },
		{ HEAD "shape a Core:4\n", "hand:2: cut short" },
		{ HEAD "shape\nend\n", "hand:2: a shape without a name" },
		{ HEAD "shape a Core:0\nend\n", "hand:2: a count out of range" },
		{ HEAD "shape a Core:4\nshape a Core:4\nend\n", "hand:3: a shape with the name" },
		{ HEAD "nodes n1 a\nend\n", "hand:2: nodes of a shape that is not above" },
		{ HEAD "shape a Core:4\nnodes n1\nend\n", "hand:3: 'nodes HOSTS SHAPE'" },
		{ HEAD "shape a Core:4\nnodes n1 a b\nend\n", "hand:3: 'nodes HOSTS SHAPE'" },
		{ HEAD "what\nend\n", "hand:2: 'shape', 'nodes' or 'end'" },
		{ HEAD "end\nshape a Core:4\n", "hand:3: text after the end" },
		{ HEAD "end sha256=00\n", "hand:2: the checksum" },
		{ HEAD "end crc=00\n", "hand:2: the checksum" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = {""};

		if (snapshot_parse(rows[i].text, strlen(rows[i].text), "hand", &e))
			fail_msg("accepted row %zu", i);
		if (strncmp(e.text, rows[i].error, strlen(rows[i].error)))
			fail_msg("row %zu: '%s' is not '%s...'", i, e.text, rows[i].error);
	}
	assert_null(snapshot_parse(HEAD "end\n\0", sizeof(HEAD "end\n\0") - 1, "hand", NULL));
	(void) state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_and_reads),
		cmocka_unit_test(notices_any_damage),
		cmocka_unit_test(reads_what_a_person_writes),
		cmocka_unit_test(refuses),
	};

	return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
