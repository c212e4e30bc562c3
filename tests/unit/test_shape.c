/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "topo/shape.h"

static unsigned count(const struct shape *s, enum level level)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->ndomains; i++)
		n += s->domains[i].level == level;
	return n;
}

static void reads_shapes(void **state)
{
	static const struct {
		const char *text;
		unsigned packages, numa, l3, cores, pus;
	} rows[] = {
		{ "Core:1 PU:1", 0, 0, 0, 1, 1 },
		{ "PU:4", 0, 0, 0, 4, 4 },
		{ "Core:4", 0, 0, 0, 4, 4 },
		{ "Package:2 [NUMANode] L3Cache:4 L2Cache:8 Core:1 PU:2", 2, 2, 8, 64, 128 },
		{ "[NUMANode(memory=64GB)] Package:2 Core:6 PU:1", 2, 1, 0, 12, 12 },
		{ "Package:1 Group:4 [NUMANode] [NUMANode] Core:16 PU:4", 1, 4, 0, 64, 256 },
		{ "Package:2 NUMANode:2 L3:2 Core:2", 2, 4, 8, 16, 16 },
		{ "{ Package:1 Core:8 PU:2 | Package:1 Core:4 PU:2 }", 2, 0, 0, 12, 24 },
		{ "Package:2 [NUMANode] { L3Cache:1 Core:4 PU:1 | L3Cache:2 Core:2 PU:1 }", 2, 2, 6, 16, 16 },
		{ "Package:1 { Core:6 PU:2 | Core:8 PU:1 }", 1, 0, 0, 14, 20 },
		{ "  package:1   core:2(x=1)  pu:1  ", 1, 0, 0, 2, 2 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e;
		struct shape *s = shape_parse(rows[i].text, &e);

		if (!s)
			fail_msg("%s: %s", rows[i].text, e.text);
		assert_int_equal(count(s, LEVEL_NODE), 1);
		assert_int_equal(count(s, LEVEL_PACKAGE), rows[i].packages);
		assert_int_equal(count(s, LEVEL_NUMA), rows[i].numa);
		assert_int_equal(count(s, LEVEL_L3), rows[i].l3);
		assert_int_equal(count(s, LEVEL_CORE), rows[i].cores);
		assert_int_equal(s->cores, rows[i].cores);
		assert_int_equal(s->pus, rows[i].pus);
		shape_free(s);
	}
	(void) state;
}

/* Every domain lies within its parent, and the children of a parent follow each other without a gap. */
static void nests_domains(void **state)
{
	struct shape *s = shape_parse("Package:2 [NUMANode] { L3Cache:1 Core:4 PU:1 | L3Cache:2 Core:2 PU:2 }", NULL);

	assert_non_null(s);
	assert_int_equal(s->domains[0].cores, 16);
	for (size_t i = 1; i < s->ndomains; i++) {
		const struct domain *d = &s->domains[i], *p = &s->domains[d->parent];

		assert_true(d->parent >= 0 && (size_t) d->parent < i);
		assert_true(d->cores > 0);
		assert_true(d->first >= p->first && d->first + d->cores <= p->first + p->cores);
		assert_true(d->level > p->level);
	}
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(s->threads[i], i % 8 < 4 ? 1 : 2);
	shape_free(s);
	(void) state;
}

static void refuses(void **state)
{
	static const char *const rows[] = {
		"", "   ", "Package:2", "Package", "Package:", "Package:0 Core:1", "Package:-1 Core:2", "Package:2 [NUMANode", "[",
		"Core:2(attr", "Core:70000", "Package:65536 Core:2", "{ Core:1", "{ Core:1 | }", "{ Core:1 } }", "Core:1 | Core:2",
		"{ Core:1 } Core:1", "Core:1 Core:1", "Core:1 PU:2000", "Core:1 PU:999999999999999999999", "\x01", "Core:1 %s%n",
		"A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 "
		"A:1 A:1 A:1 A:1 A:1 Core:1",
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = {""};

		if (shape_parse(rows[i], &e))
			fail_msg("accepted: '%s'", rows[i]);
		assert_true(*e.text);
	}
	(void) state;
}

static void names_levels(void **state)
{
	for (int l = 0; l < LEVEL_COUNT; l++)
		assert_int_equal(level_parse(level_name(l)), l);
	assert_int_equal(level_parse("L3Cache"), LEVEL_L3);
	assert_int_equal(level_parse("l4"), -1);
	assert_int_equal(level_parse(""), -1);
	(void) state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_shapes),
		cmocka_unit_test(nests_domains),
		cmocka_unit_test(refuses),
		cmocka_unit_test(names_levels),
	};

	return cmocka_run_group_tests_name("shape", tests, NULL, NULL);
}
