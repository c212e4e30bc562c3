/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "table.h"
#include "shape/shape.h"

OWNS(struct shape *, shape_free)

static unsigned count(const struct shape *s, enum level level)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->ndomains; i++)
		n += s->domains[i].level == level;
	return n;
}

TEST(reads_shapes)
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
		OWNED(shape_free) struct shape *s = shape_parse(rows[i].text, &err);

		if (!s)
			fail_msg("%s: %s", rows[i].text, err.text);
		assert_int_equal(count(s, LEVEL_NODE), 1);
		assert_int_equal(count(s, LEVEL_PACKAGE), rows[i].packages);
		assert_int_equal(count(s, LEVEL_NUMA), rows[i].numa);
		assert_int_equal(count(s, LEVEL_L3), rows[i].l3);
		assert_int_equal(count(s, LEVEL_CORE), rows[i].cores);
		assert_int_equal(s->cores, rows[i].cores);
		assert_int_equal(s->pus, rows[i].pus);
	}
}

TEST(reads_memory)
{
	static const struct {
		const char *text;
		unsigned long long memory;	/* of the first NUMA domain */
	} rows[] = {
		{ "[NUMANode] Core:1", 0 },
		{ "[NUMANode()] Core:1", 0 },
		{ "[NUMANode(memory=1)] Core:1", 1 },
		{ "[NUMANode(memory=64kB)] Core:1", 64000 },
		{ "[NUMANode(memory=64KiB)] Core:1", 65536 },
		{ "[NUMANode(memory=3mb)] Core:1", 3000000 },
		{ "[NUMANode(memory=3MiB)] Core:1", 3ull << 20 },
		{ "[NUMANode(memory=64GB)] Core:1", 64000000000 },
		{ "[NUMANode(memory=64GiB)] Core:1", 64ull << 30 },
		{ "[NUMANode(memory=2TB)] Core:1", 2000000000000 },
		{ "[NUMANode(memory=2TiB)] Core:1", 2ull << 40 },
		{ "[NUMANode(indexes=1,0 memory=7)] Core:1", 7 },
		{ "[NUMANode(memory=7 indexes=1,0)] Core:1", 7 },
		{ "[NUMANode(sidememory=7)] Core:1", 0 },
		{ "[NUMANode(memory=8)] [NUMANode(memory=16)] Core:2", 24 },
		{ "Package:2 NUMANode:2(memory=5) L3:2 Core:2", 5 },
		{ "Core:2 [NUMANode(memory=9)] PU:2", 9 },
		{ "[NUMANode(memory=18446744073709551615)] Core:1", ~0ull },
		{ "[NUMANode(memory=8)] [NUMANode(memory=16 tier=hbm)] Core:2", 8 },
		{ "[NUMANode(memory=16 tier=HBM)] [NUMANode(memory=8)] [NUMANode(memory=4 tier=dram)] Core:2", 12 },
		{ "[NUMANode(tier=gpu memory=16)] [NUMANode(memory=8 tier=nvm)] Core:2", 8 },
		{ "NUMANode:2(memory=5 tier=hbm) Core:2", 5 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(shape_free) struct shape *s = shape_parse(rows[i].text, &err);
		size_t d = 0;

		if (!s)
			fail_msg("%s: %s", rows[i].text, err.text);
		while (s->domains[d].level != LEVEL_NUMA)
			assert_true(++d < s->ndomains);
		if (s->domains[d].memory != rows[i].memory)
			fail_msg("%s: %llu bytes", rows[i].text, s->domains[d].memory);
	}
}

TEST(reads_kinds)
{
	static const struct {
		const char *text, *kinds;	/* "": all of one */
		unsigned nkinds;
	} rows[] = {
		{ "Core:4", "", 1 },
		{ "Core:2(kind=0) PU:2", "", 1 },
		{ "Core:2(kind=1) PU:2", "11", 2 },
		{ "Package:2 { Core:2(kind=1) PU:2 | Core:2 }", "11001100", 2 },
		{ "{ Core:1(kind=2) | Core:1(size=7 kind=1) | PU:3 }", "21000", 3 },
		{ "{ PU:70 | Core:1(kind=7) }",
		  "00000000000000000000000000000000000000000000000000000000000000000000007", 8 },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		char text[128] = "";
		OWNED(shape_free) struct shape *s = shape_parse(rows[i].text, &err);

		if (!s)
			fail_msg("%s: %s", rows[i].text, err.text);
		for (unsigned c = 0; s->kinds && c < s->cores; c++)
			text[c] = '0' + s->kinds[c];
		assert_string_equal(text, rows[i].kinds);
		assert_int_equal(s->nkinds, rows[i].nkinds);
	}
}

TEST(reads_devices)
{
	static const struct {
		const char *text, *devices;
	} rows[] = {
		{ "Core:4", "" },
		{ "Core:4 + GPU0@0", "GPU 0 0 1;" },
		{ "Core:4 +GPU2@0-3", "GPU 2 0 4;" },
		{ "  Package:2 Core:2 PU:1  +  GPU1@0-1   GPU0@2-3 NIC@3 ", "GPU 1 0 2;GPU 0 2 2;NIC 0 3 1;" },
		{ "{ Core:2 PU:2 | Core:2 PU:1 } + nvme0@1-2", "nvme 0 1 2;" },
		/* without numbers: which is which only matters where they are near different cores */
		{ "PU:4 + GPU@3", "GPU 0 3 1;" },
		{ "PU:4 + GPU@0-3 NIC@0 GPU@0-3 NIC@1", "GPU 0 0 4;NIC -1 0 1;GPU 1 0 4;NIC -1 1 1;" },
		{ "PU:4 + GPU@0-1 GPU@2-3", "GPU -1 0 2;GPU -1 2 2;" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		char text[256] = "";
		OWNED(shape_free) struct shape *s = shape_parse(rows[i].text, &err);

		if (!s)
			fail_msg("%s: %s", rows[i].text, err.text);
		for (size_t d = 0; d < s->ndevices; d++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %d %u %u;", s->devices[d].type,
				 s->devices[d].number, s->devices[d].first, s->devices[d].cores);
		assert_string_equal(text, rows[i].devices);
	}
}

TEST(has_the_first_cores_alone)
{
	static const struct {
		const char *text;
		unsigned cores, packages, last, numas, pus;	/* last: cores of the last package */
		const char *devices;
	} rows[] = {
		{ "Package:2 [NUMANode(memory=8GiB)] Core:4 PU:2 + GPU0@0-3 GPU1@4-7", 6, 2, 2, 2, 12, "0 4;4 2;" },
		{ "Package:2 [NUMANode(memory=8GiB)] Core:4 PU:2 + GPU0@0-3 GPU1@4-7", 5, 2, 1, 0, 10, "0 4;4 1;" },
		{ "Package:2 [NUMANode(memory=8GiB)] Core:4 PU:2 + GPU0@0-3 GPU1@4-7", 4, 1, 4, 0, 8, "0 4;4 0;" },
		{ "Package:1 Core:8 + NIC@6", 7, 1, 7, 0, 7, "6 1;" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(shape_free) struct shape *all = shape_parse(rows[i].text, &err);
		OWNED(shape_free) struct shape *s = shape_first_cores(all, rows[i].cores, &err);
		char text[64] = "";
		unsigned last = 0;

		for (size_t d = 0; d < s->ndomains; d++) {
			assert_true(s->domains[d].cores && s->domains[d].first + s->domains[d].cores <= rows[i].cores);
			last = s->domains[d].level == LEVEL_PACKAGE ? s->domains[d].cores : last;
		}
		for (size_t d = 0; d < s->ndevices; d++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u %u;", s->devices[d].first,
				 s->devices[d].cores);
		assert_int_equal(s->cores, rows[i].cores);
		assert_int_equal(s->pus, rows[i].pus);
		assert_int_equal(count(s, LEVEL_PACKAGE), rows[i].packages);
		assert_int_equal(last, rows[i].last);
		assert_int_equal(s->numas.count, rows[i].numas);
		assert_string_equal(text, rows[i].devices);
	}
}

/* Every domain has cores, also where memory or caches are told within a core. */
TEST(cuts_at_nothing_within_a_core)
{
	static const char *const rows[] = {
		"Core:2 [NUMANode] PU:2", "Core:2 L2Cache:2 L1Cache:1 PU:1", "Core:2 L1Cache:2 [NUMANode] PU:1",
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(shape_free) struct shape *s = shape_parse(rows[i], NULL);

		assert_non_null(s);
		assert_int_equal(s->cores, 2);
		assert_int_equal(s->pus, 4);
		for (size_t d = 0; d < s->ndomains; d++)
			assert_true(s->domains[d].cores > 0 && s->domains[d].first + s->domains[d].cores <= 2);
	}
}

/* Every domain lies within its parent, and the children of a parent follow each other without a gap. */
TEST(nests_domains)
{
	struct shape *s = shape_parse("Package:2 [NUMANode] { L3Cache:1 Core:4 PU:1 | L3Cache:2 Core:2 PU:2 }", NULL);

	assert_non_null(s);
	assert_int_equal(s->domains[0].cores, 16);
	for (size_t i = 1; i < s->ndomains; i++) {
		const struct shape_domain *d = &s->domains[i], *p = &s->domains[d->parent];

		assert_true(d->parent >= 0 && (size_t) d->parent < i);
		assert_true(d->cores > 0);
		assert_true(d->first >= p->first && d->first + d->cores <= p->first + p->cores);
		assert_true(d->level > p->level);
	}
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(s->threads[i], i % 8 < 4 ? 1 : 2);
	shape_free(s);
}

TEST(refuses)
{
	static const char *const rows[] = {
		"", "   ", "Package:2", "Package", "Package:", "Package:0 Core:1", "Package:-1 Core:2",
		"Package:2 [NUMANode", "[", "Core:2(attr", "Core:70000", "Package:65536 Core:2", "{ Core:1",
		"{ Core:1 | }", "{ Core:1 } }", "Core:1 | Core:2", "{ Core:1 } Core:1", "Core:1 Core:1",
		"Core:1 PU:2000", "Core:1 { PU:1000 | PU:1000 }", "Core:1 PU:999999999999999999999", "\x01",
		"[NUMANode(memory=)] Core:1", "[NUMANode(memory=x)] Core:1", "[NUMANode(memory=-1)] Core:1",
		"[NUMANode(memory=1PB)] Core:1", "[NUMANode(memory=18446744073709551616)] Core:1",
		"[NUMANode(memory=18446744073709551615kB)] Core:1",
		"[NUMANode(memory=18446744073709551615)] [NUMANode(memory=1)] Core:1", "[NUMANode(memory=1 Core:1",
		"[NUMANode(memory=1)] [NUMANode(memory=1 tier=hbm)] [NUMANode(memory=18446744073709551615 tier=nvm)]"
			       " Core:1",
		"[NUMANode(tier=)] Core:1", "[NUMANode(tier=fast)] Core:1", "[NUMANode(tier=hbmhbmhbmhbm)] Core:1",
		"Core:1(kind=)", "Core:1(kind=8)", "Core:1(kind=10)", "Core:1(kind=-1)", "Core:1(kind=a)",
		"Core:4 +", "Core:4 + GPU", "Core:4 + GPU@", "Core:4 + GPU@4", "Core:4 + GPU@0-4", "Core:4 + GPU@2-1",
		"Core:4 + GPU@-1", "Core:4 + GPU@0,1", "Core:4 + GPU@0 +", "Core:4 + @0", "Core:4 + ABCDEFGH@0",
		"Core:4 + 4@0",
		"+ GPU@0", "{ Core:4 + GPU@0 }", "{ Core:4 | Core:2 + GPU@0 }", "Core:4 + GPU@99999999999999999999999",
		"Core:1 %s%n", "A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1 A:1"
			       " A:1 A:1 A:1 A:1 A:1 A:1 "
		"A:1 A:1 A:1 A:1 A:1 Core:1",
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = {""};

		if (shape_parse(rows[i], &e))
			fail_msg("accepted: '%s'", rows[i]);
		assert_true(*e.text);
	}
}

static void refused_for_work(const char *text)
{
	struct err e = {""};

	assert_null(shape_parse(text, &e));
	assert_non_null(strstr(e.text, "too many objects"));
}

/* A text that stands for many objects, or for many bytes, is refused before it takes long. */
TEST(bounds_its_work)
{
	static const char head[] = "Core:65536 [NUMANode(x=", tail[] = ")] PU:1";
	size_t len = 1 << 20;
	OWNED(free) char *text = malloc(len + sizeof(head) + sizeof(tail));

	assert_non_null(text);
	strcpy(text, head);
	memset(text + strlen(head), 'x', len);
	strcpy(text + strlen(head) + len, tail);
	refused_for_work(text);
	refused_for_work("Core:60000 L1Cache:60000 A:60000");
}

TEST(names_levels)
{
	for (int l = 0; l < LEVEL_COUNT; l++)
		assert_int_equal(level_parse(level_name(l)), l);
	assert_int_equal(level_parse("L3Cache"), LEVEL_L3);
	assert_int_equal(level_parse("l4"), -1);
	assert_int_equal(level_parse(""), -1);
}

TESTS_MAIN(NULL, NULL)
