/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <math.h>
#include <sys/mman.h>

#include "base/file.h"
#include "damage.h"
#include "topology.h"
#include "table.h"
#include "trace/block.h"
#include "trace/formula.h"
#include "trace/phases.h"
#include "trace/reader.h"
#include "trace/view.h"
#include "trace/writer.h"

OWNS(struct trace *, trace_close)
OWNS(struct trace_view *, trace_view_free)

#define TICKS 150u		/* two full blocks and a part of one */
#define SECOND 1000000000ull

/* Counters of each PU, one of each NUMA node, and a gauge of the machine. */
static const struct {
	const char *name, *level;
	enum trace_kind kind;
} events[] = {
	{ "cycles", "PU", TRACE_COUNTER }, { "instructions", "PU", TRACE_COUNTER },
	{ "fills", "NUMANode", TRACE_COUNTER },
	{ "power", "Machine", TRACE_GAUGE },
};
enum { CYCLES, INSTRUCTIONS, FILLS, POWER };

static struct trace_head head_of(const char *synthetic, hwloc_const_bitmap_t pus)
{
	struct trace_head h = { .node = "cn1", .start = 1795000000ll * SECOND, .period = SECOND };
	FREED(buf_free) struct buf xml = {0};
	OWNED(hwloc_topology_destroy) hwloc_topology_t t;

	export_synthetic(synthetic, &xml);
	assert_non_null(t = machine_load(xml.data, xml.len, &err));
	assert_ok(trace_head_tree(&h, t, pus, &err));
	assert_non_null(h.events = calloc(ROWS(events), sizeof(*h.events)));
	for (; h.nevents < ROWS(events); h.nevents++) {
		struct trace_event *x = &h.events[h.nevents];

		strcpy(x->name, events[h.nevents].name);
		x->kind = events[h.nevents].kind;
		x->level = trace_head_level(&h, events[h.nevents].level);
	}
	assert_ok(trace_head_check(&h, &err));
	return h;
}

/* Any size of number, absent now and then if wanted. */
static uint64_t value_roll(struct dice *d, bool gaps)
{
	uint64_t v = dice_roll(d, 1ull << 62) >> dice_roll(d, 62);

	return gaps && !dice_roll(d, 20) ? TRACE_ABSENT : v >> 8;
}

/* bytes: of the file; may be NULL. */
static struct trace *record(struct trace_head *h, uint64_t *values, unsigned ticks, bool close_it, struct buf *bytes)
{
	int fd = memfd_create("trace", MFD_CLOEXEC), copy = dup(fd);
	char path[64];
	struct trace_writer *w = trace_writer_new(fd, "made", h, &err);
	struct trace *t;

	assert_non_null(w);
	for (unsigned i = 0; i < ticks; i++)
		assert_ok(trace_writer_tick(w, (i + 1) * SECOND, values + (size_t) i * h->columns, &err));
	assert_ok(close_it && trace_writer_close(w, &err));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
	assert_ok((bytes && file_read(path, 1 << 20, bytes, &err)) || !(t = trace_open_fd(copy, "made", &err)));
	if (!close_it)
		trace_writer_close(w, &err);
	return t;
}

static uint64_t *roll_values(const struct trace_head *h, unsigned ticks, bool gaps)
{
	struct dice d = { 42 };
	uint64_t *values = calloc((size_t) ticks * h->columns, sizeof(*values));

	assert_non_null(values);
	for (size_t i = 0; i < (size_t) ticks * h->columns; i++)
		values[i] = value_roll(&d, gaps);
	return values;
}

/* --- the file --- */

static void column_compare(const struct trace_head *h, const struct trace_block *b, unsigned first,
			   const uint64_t *values, unsigned column, enum trace_kind kind)
{
	uint64_t wrote = 0, sum = 0, read = 0, before = 0;

	for (unsigned t = 0; t < b->n; t++) {
		uint64_t v = values[(size_t) (first + t) * h->columns + column],
			 got = b->values[(size_t) column * b->n + t];
		uint64_t apart = got > v ? got - v : v - got;

		assert_int_equal(got == TRACE_ABSENT, v == TRACE_ABSENT);
		if (v == TRACE_ABSENT)
			continue;
		wrote = v;
		sum += v;
		read = kind == TRACE_COUNTER ? read + got : got;
		assert_true(apart <= (kind == TRACE_COUNTER ? v / 512 + before / 512 + 1 : v / 512));
		if (v > before)
			before = v;
	}
	assert_int_equal(read, kind == TRACE_COUNTER ? sum : wrote);
}

TEST(sums_are_exact)
{
	FREED(trace_head_free) struct trace_head h = head_of("Package:2 [numa] L3:2 Core:2 PU:2", NULL);

	for (int gaps = 0; gaps < 2; gaps++) {
		OWNED(free) uint64_t *values = roll_values(&h, TICKS, gaps);
		OWNED(trace_close) struct trace *t = record(&h, values, TICKS, true, NULL);
		FREED(trace_block_free) struct trace_block b = {0};
		unsigned first = 0;

		assert_false(t->open_end);
		assert_int_equal(t->ticks, TICKS);
		assert_int_equal(t->nblocks, 3);
		for (unsigned i = 0; i < t->nblocks; first += b.n, i++) {
			assert_int_equal(trace_read(t, i, &b, &err), 0);
			assert_int_equal(b.begin, first * SECOND);
			for (unsigned x = 0; x < h.nevents; x++)
				for (unsigned c = 0; c < h.levels[h.events[x].level].n; c++)
					column_compare(&h, &b, first, values, h.events[x].column + c, h.events[x].kind);
		}
	}
}

TEST(head_comes_back)
{
	FREED(trace_head_free) struct trace_head h = head_of("Package:2 [numa] L3:2 Core:2 PU:2", NULL), back;
	FREED(buf_free) struct buf text = {0}, again = {0};

	assert_non_null(h.formulas = strdup("IPC {PU, instructions / cycles}"));
	assert_int_equal(trace_head_write(&h, &text, &err), 0);
	assert_ok(trace_head_parse(text.data, text.len, &back, &err));
	assert_int_equal(trace_head_write(&back, &again, &err), 0);
	assert_string_equal(text.data, again.data);
	assert_int_equal(back.pus, 16);
	assert_int_equal(back.columns, 16 + 16 + 2 + 1);
}

/* A recorder that was killed, at any byte: the blocks that are complete are read, and all of them. */
TEST(cut_trace_keeps_what_is_complete)
{
	FREED(trace_head_free) struct trace_head h = head_of("Package:1 [numa] Core:2 PU:1", NULL);
	OWNED(free) uint64_t *values = roll_values(&h, TICKS, true);
	struct buf bytes;
	OWNED(trace_close) struct trace *whole = record(&h, values, TICKS, true, &bytes),
		*live = record(&h, values, TICKS, false, NULL);
	unsigned seen = 0;

	assert_true(live->open_end);
	assert_int_equal(live->ticks, 120);
	for (size_t len = 0; len < bytes.len; len++) {
		int fd = memfd_create("cut", MFD_CLOEXEC);
		FREED(trace_block_free) struct trace_block b = {0};
		struct trace *t;

		assert_int_equal(file_write(fd, bytes.data, len), 0);
		if (!(t = trace_open_fd(fd, "cut", &err))) {
			assert_memory_equal(err.text, "cut: ", 5);
			assert_int_equal(seen, 0);
			continue;
		}
		assert_true(t->open_end && t->ticks >= seen);
		seen = t->ticks;
		for (unsigned i = 0; i < t->nblocks; i++)
			assert_int_equal(trace_read(t, i, &b, &err), 0);
		trace_close(t);
	}
	assert_int_equal(seen, TICKS);
	buf_free(&bytes);
}

/* Followed while it is written, byte by byte: each block when it is complete, and complete with the last byte. */
TEST(growing_trace_is_followed)
{
	FREED(trace_head_free) struct trace_head h = head_of("Package:1 [numa] Core:2 PU:1", NULL);
	OWNED(free) uint64_t *values = roll_values(&h, TICKS, true);
	struct buf bytes;
	struct trace *whole = record(&h, values, TICKS, true, &bytes), *t = NULL;
	int fd = memfd_create("growing", MFD_CLOEXEC);
	FREED(trace_block_free) struct trace_block expected = {0}, b = {0};
	unsigned read = 0;

	for (size_t len = 0; len < bytes.len; len++) {
		assert_int_equal(file_write(fd, bytes.data + len, 1), 0);
		if (!t && !(t = trace_open_fd(dup(fd), "growing", &err)))
			continue;
		assert_int_equal(trace_follow(t, &err), 0);
		assert_int_equal(t->open_end, len + 1 < bytes.len);
		for (; read < t->nblocks; read++) {
			assert_int_equal(trace_read(t, read, &b, &err), 0);
			assert_int_equal(trace_read(whole, read, &expected, &err), 0);
			assert_memory_equal(b.values, expected.values, (size_t) b.n * h.columns * sizeof(*b.values));
		}
	}
	assert_true(read == 3 && t->ticks == TICKS && t->end == whole->end);
	trace_close(t);
	assert_int_equal(ftruncate(fd, bytes.len - 1), 0);
	assert_non_null(t = trace_open_fd(dup(fd), "growing", &err));
	assert_int_equal(ftruncate(fd, bytes.len / 2), 0);
	assert_int_equal(trace_follow(t, &err), -1);
	assert_string_equal(err.text, "growing: was cut or recorded anew while it was read");
	trace_close(t);
	close(fd);
	buf_free(&bytes);
	trace_close(whole);
}

/* TRACE_DAMAGES=1000000 for more. What is read of a damaged file is what was written, or one error that names it. */
TEST(damage_is_one_error)
{
	unsigned times = getenv("TRACE_DAMAGES") ? atoi(getenv("TRACE_DAMAGES")) : 5000, refused = 0;
	FREED(trace_head_free) struct trace_head h = head_of("Package:1 [numa] Core:2 PU:1", NULL);
	OWNED(free) uint64_t *values = roll_values(&h, TICKS, true);
	FREED(buf_free) struct buf good, bad = {0};
	OWNED(trace_close) struct trace *whole = record(&h, values, TICKS, true, &good);
	struct dice d = { 7 };

	for (unsigned i = 0; i < times; i++) {
		int fd = memfd_create("bad", MFD_CLOEXEC), rc = 0;
		FREED(trace_block_free) struct trace_block b = {0};
		OWNED(trace_close) struct trace *t;

		damage(&good, &d, &bad);
		assert_int_equal(file_write(fd, bad.data, bad.len), 0);
		err.text[0] = '\0';
		t = trace_open_fd(fd, "bad", &err);
		for (unsigned n = 0; t && rc == 0 && n < t->nblocks; n++)
			rc = trace_read(t, n, &b, &err);
		if (!t || rc) {
			assert_memory_equal(err.text, "bad: ", 5);
			refused++;
		}
	}
	assert_true(refused > times / 4);
}

/* Damage to a head within a chunk whose checksum is good: one error, or a head whose tree can be summed. */
TEST(damaged_heads)
{
	struct trace_head h = head_of("Package:2 [numa] Core:2 PU:1", NULL), back;
	FREED(buf_free) struct buf good = {0}, bad = {0};
	struct dice d = { 11 };
	unsigned refused = 0;

	assert_int_equal(trace_head_write(&h, &good, &err), 0);
	for (unsigned i = 0; i < 20000; i++) {
		struct trace_view *v;

		damage(&good, &d, &bad);
		err.text[0] = '\0';
		if (trace_head_parse(bad.data, bad.len, &back, &err)) {
			assert_true(err.text[0] && !back.levels && !back.events);
			refused++;
			continue;
		}
		assert_non_null(v = trace_view_new(&back, TRACE_RATE));
		for (unsigned l = 0; l < back.nlevels; l++)
			assert_int_equal(trace_view_add_events(v, back.levels[l].type, &err), 0);
		trace_view_free(v);
		trace_head_free(&back);
	}
	assert_true(refused > 10000);
	trace_head_free(&h);
}

TEST(hostile_heads_are_refused)
{
#define LEVELS "\"levels\":[{\"type\":\"PU\",\"objects\":[[0,0,0,1],[1,1,1,1]]}]"
#define EVENTS "\"events\":[{\"name\":\"a\",\"unit\":\"\",\"kind\":\"counter\",\"level\":\"PU\"}]"
#define OF_NODE(name) "{\"version\":1,\"node\":\"" name "\",\"topology\":\"\",\"start\":0,\"period\":1,"
#define FIRST "{\"version\":1,\"node\":\"n\",\"topology\":\"\",\"start\":0,\"period\":1,"
	static const struct {
		const char *text, *error;	/* NULL: is good */
	} rows[] = {
		{ FIRST LEVELS "," EVENTS "}", NULL },
		{ "", "not JSON" },
		{ "[]", "not a trace of version 1" },
		{ "{\"version\":2}", "not a trace of version 1" },
		{ FIRST LEVELS "}", "lacks a member" },
		{ FIRST "\"levels\":[]," EVENTS "}", "no level 'PU'" },
		{ FIRST "\"levels\":[{\"type\":\"PU\",\"objects\":[[0,0,1,1],[1,1,0,1]]}]," EVENTS "}",
		  "not in order" },
		{ FIRST "\"levels\":[{\"type\":\"PU\",\"objects\":[[0,0,0,4294967296]]}]," EVENTS "}", "out of range" },
		{ FIRST "\"levels\":[{\"type\":\"PU\",\"objects\":[[0,0,0,2]]}]," EVENTS "}", "not among" },
		{ FIRST "\"levels\":[{\"type\":\"PU\",\"objects\":[]}]," EVENTS "}", "has no objects" },
		{ FIRST "\"levels\":[{\"type\":\"P\\\"U\",\"objects\":[[0,0,0,1]]},"
		  "{\"type\":\"PU\",\"objects\":[[0,0,0,1]]}],"
		  EVENTS "}", "no type of object" },
		{ FIRST LEVELS ",\"events\":[]}", "1 to 256 events" },
		{ FIRST LEVELS ",\"events\":[{\"name\":\"a,b\",\"unit\":\"\",\"kind\":\"counter\",\"level\":\"PU\"}]}",
		  "name of an event" },
		{ FIRST LEVELS ",\"events\":["
		  "{\"name\":\"a\\u001b\",\"unit\":\"\",\"kind\":\"counter\",\"level\":\"PU\"}]}",
		  "control" },
		/* C1 of Unicode: a terminal obeys U+009B as ESC and '['. */
		{ OF_NODE("cn\\u009b2J") LEVELS "," EVENTS "}", "node: has control" },
		{ OF_NODE("cn\xc2\x9b" "2J") LEVELS "," EVENTS "}", "node: has control" },
		{ OF_NODE("cn\xc2\x80") LEVELS "," EVENTS "}", "node: has control" },
		{ OF_NODE("cn\\u007f") LEVELS "," EVENTS "}", "node: has control" },
		{ OF_NODE("cn\xc2\xa0\xc3\x9b") LEVELS "," EVENTS "}", NULL },
		{ FIRST LEVELS ",\"events\":["
		  "{\"name\":\"a\",\"unit\":\"B\\u009f\",\"kind\":\"counter\",\"level\":\"PU\"}]}",
		  "unit: has control" },
		{ FIRST LEVELS "," EVENTS ",\"formulas\":\"x {PU,\\ta}\\r\\n# n\"}", NULL },
		{ FIRST LEVELS "," EVENTS ",\"formulas\":\"x {PU, a}\\n\\u009b2J\"}", "formulas: has control" },
		{ FIRST LEVELS "," EVENTS ",\"formulas\":\"\\u001b[2J\"}", "formulas: has control" },
		{ FIRST LEVELS ",\"events\":[{\"name\":\"a\",\"unit\":\"\",\"kind\":\"x\",\"level\":\"PU\"}]}",
		  "expected counter or gauge" },
		{ FIRST LEVELS ",\"events\":["
		  "{\"name\":\"a\\\"\",\"unit\":\"\",\"kind\":\"counter\",\"level\":\"PU\"}]}",
		  "name of an event" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(trace_head_free) struct trace_head h;
		struct err e = {""};
		int rc = trace_head_parse(rows[i].text, strlen(rows[i].text), &h, &e);

		if (!rc != !rows[i].error || (rc && !strstr(e.text, rows[i].error)))
			fail_msg("row %zu: %s", i, e.text);
	}
}

/* --- sums up the tree --- */

static double value_of(const struct trace_view *v, unsigned metric, unsigned object, const struct trace_block *b,
		       unsigned tick)
{
	return v->metrics[metric].values[(size_t) object * b->n + tick];
}

static void add_formulas(struct trace_view *v, const char *text)
{
	struct formula_list l;

	assert_ok(formula_list_parse(text, strlen(text), "formulas", &l, &err) || trace_view_add_list(v, &l, &err));
}

/* Two packages, each of a NUMA node and 4 PUs; PU i counts i + 1 and twice as many instructions. */
TEST(sums_go_up_the_tree)
{
	FREED(trace_head_free) struct trace_head h = head_of("Package:2 [numa] Core:2 PU:2", NULL);
	uint64_t values[8 + 8 + 2 + 1] = { 1, 2, 3, 4, 5, 6, 7, 8, 2, 4, 6, 8, 10, 12, 14, TRACE_ABSENT, 100, 200, 7 };
	OWNED(trace_close) struct trace *t = record(&h, values, 1, true, NULL);
	OWNED(trace_view_free) struct trace_view *v = trace_view_new(&t->head, TRACE_RATE);
	FREED(trace_block_free) struct trace_block b = {0};
	struct trace_statistics s;

	assert_non_null(v);
	add_formulas(v, "c {Core, cycles}\np {Package, cycles}\nm {Machine, cycles}\nn {numa, cycles / fills}\n"
			"i {Package, instructions / cycles}\nf {Machine, fills}\nlow {PU, fills}\n"
			"z {PU, cycles / (cycles - 3)}\nnone {PU, unknown + 1}\nw {Machine, power * seconds}\n");
	assert_int_equal(trace_read(t, 0, &b, &err), 0);
	assert_int_equal(trace_view_block(v, &b, &err), 0);
	assert_true(value_of(v, 0, 0, &b, 0) == 3 && value_of(v, 0, 3, &b, 0) == 15);
	assert_true(value_of(v, 1, 0, &b, 0) == 10 && value_of(v, 1, 1, &b, 0) == 26);
	assert_true(value_of(v, 2, 0, &b, 0) == 36);
	assert_true(value_of(v, 3, 0, &b, 0) == 0.1 && value_of(v, 3, 1, &b, 0) == 0.13);
	/* A sum of which one part is absent is absent, not less. */
	assert_true(value_of(v, 4, 0, &b, 0) == 2 && isnan(value_of(v, 4, 1, &b, 0)));
	assert_true(value_of(v, 5, 0, &b, 0) == 300);
	/* What is counted above a level is not known there, nor is what was not counted. */
	assert_true(isnan(value_of(v, 6, 0, &b, 0)));
	assert_string_equal(v->metrics[6].missing, "fills");
	assert_true(isnan(value_of(v, 7, 2, &b, 0)) && value_of(v, 7, 3, &b, 0) == 4);
	assert_string_equal(v->metrics[8].missing, "unknown");
	assert_string_equal(v->metrics[7].missing, "");
	assert_true(value_of(v, 9, 0, &b, 0) == 7);
	s = trace_view_statistics(v, 2, 0);
	assert_true(s.has_total && s.total == 36 && s.min == 36 && s.max == 36 && s.average == 36 && s.absent == 0);
	s = trace_view_statistics(v, 4, 1);
	assert_true(!s.has_total && isnan(s.min) && isnan(s.average) && s.absent == 1);
}

/* min, max and avg are over the objects where their events are counted; the same values of two ticks. */
TEST(least_greatest_and_mean)
{
	static const struct {
		const char *formula;
		double first, second;	/* of the level's first and second object */
		const char *missing;
	} rows[] = {
		{ "{Package, max(cycles)}", 4, 8, "" }, { "{Package, min(cycles)}", 1, 5, "" },
		{ "{Package, avg(cycles)}", 2.5, 6.5, "" },
		{ "{Package, max(cycles) / avg(cycles)}", 1.6, 8 / 6.5, "" },
		{ "{Package, cycles - max(cycles)}", 6, 18, "" }, { "{PU, min(cycles)}", 1, 2, "" },
		{ "{Package, max(instructions / cycles)}", 2, NAN, "" }, { "{Package, avg(instructions)}", 5, NAN, "" },
		{ "{numa, max(cycles / fills)}", .1, .13, "" }, { "{Package, max(fills) - min(fills)}", 0, 0, "" },
		{ "{PU, max(fills)}", NAN, NAN, "fills" }, { "{PU, max(cycles + unknown)}", NAN, NAN, "unknown" },
	};
	FREED(trace_head_free) struct trace_head h = head_of("Package:2 [numa] Core:2 PU:2", NULL);
	uint64_t values[2 * (8 + 8 + 2 + 1)] = {
		1, 2, 3, 4, 5, 6, 7, 8, 2, 4, 6, 8, 10, 12, 14, TRACE_ABSENT, 100, 200, 7,
		1, 2, 3, 4, 5, 6, 7, 8, 2, 4, 6, 8, 10, 12, 14, TRACE_ABSENT, 100, 200, 7,
	};
	OWNED(trace_close) struct trace *t = record(&h, values, 2, true, NULL);
	FREED(trace_block_free) struct trace_block b = {0};

	assert_int_equal(trace_read(t, 0, &b, &err), 0);
	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(trace_view_free) struct trace_view *v = trace_view_new(&t->head, TRACE_RATE);
		char text[64];

		snprintf(text, sizeof(text), "f %s", rows[i].formula);
		add_formulas(v, text);
		assert_string_equal(v->metrics[0].missing, rows[i].missing);
		assert_int_equal(trace_view_block(v, &b, &err), 0);
		for (unsigned object = 0; object < 2; object++) {
			struct trace_statistics s = trace_view_statistics(v, 0, object);
			double wanted = object ? rows[i].second : rows[i].first, found = value_of(v, 0, object, &b, 1);

			if (isnan(wanted) ? !isnan(found) || !isnan(s.average) || s.absent != 2 :
			    !(fabs(found - wanted) < 1e-12 && fabs(s.average - wanted) < 1e-12 && !s.has_total))
				fail_msg("%s: %g, average %g", rows[i].formula, found, s.average);
		}
	}
}

/* Three ticks of one PU; the average of a ratio is that of the sums. */
TEST(modes_and_statistics)
{
	static const struct {
		enum trace_mode mode;
		double last, min, max, average;
	} rows[] = {
		{ TRACE_RATE, 60, 10, 60, 30 }, { TRACE_PER_TICK, 60, 10, 60, 30 },
		{ TRACE_ACCUMULATED, 90, 10, 90, 90 },
	};
	FREED(trace_head_free) struct trace_head h = head_of("Core:1 PU:1", NULL);
	uint64_t values[] = { 10, 10, 5, 1, 20, 40, 5, 1, 60, 240, 5, 4 };
	OWNED(trace_close) struct trace *t = record(&h, values, 3, true, NULL);

	for (size_t i = 0; i < ROWS(rows); i++) {
		OWNED(trace_view_free) struct trace_view *v = trace_view_new(&t->head, rows[i].mode);
		struct trace_statistics s;
		FREED(trace_block_free) struct trace_block b = {0};

		add_formulas(v, "c {PU, cycles} ratio {PU, instructions / cycles} g {Machine, power}");
		assert_int_equal(trace_read(t, 0, &b, &err), 0);
		assert_int_equal(trace_view_block(v, &b, &err), 0);
		s = trace_view_statistics(v, 0, 0);
		assert_true(value_of(v, 0, 0, &b, 2) == rows[i].last && s.min == rows[i].min && s.max == rows[i].max &&
			    s.average == rows[i].average && s.total == 90);
		s = trace_view_statistics(v, 1, 0);
		assert_true(fabs(s.average - 290. / 90) < 1e-12);
		s = trace_view_statistics(v, 2, 0);
		assert_true(s.average == 2 && s.min == 1 && s.max == 4);
	}
}

/* A job on part of a node: its PUs only, with the numbers that they have on the node. */
TEST(part_of_a_node)
{
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t pus = hwloc_bitmap_alloc();
	FREED(trace_head_free) struct trace_head h;

	hwloc_bitmap_set_range(pus, 5, 6);
	h = head_of("Package:2 [numa] Core:2 PU:2", pus);
	assert_int_equal(h.pus, 2);
	assert_int_equal(h.levels[trace_head_level(&h, "Package")].n, 1);
	assert_int_equal(h.levels[trace_head_level(&h, "NUMANode")].objects[0].index, 1);
	assert_int_equal(h.levels[trace_head_level(&h, "Core")].n, 2);
	assert_int_equal(h.levels[trace_head_level(&h, "PU")].objects[1].os_index, 6);
}

/* A group of the first two cores is no level of a trace of the last two. */
TEST(level_without_traced_pus)
{
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t pus = hwloc_bitmap_alloc();
	FREED(trace_head_free) struct trace_head first = {0}, last = {0};
	hwloc_obj_t group;
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = synthetic_load("Package:1 Core:4 PU:1");

	assert_non_null(group = hwloc_topology_alloc_group_object(t));
	assert_non_null(group->cpuset = hwloc_bitmap_alloc());
	hwloc_bitmap_set_range(group->cpuset, 0, 1);
	assert_non_null(hwloc_topology_insert_group_object(t, group));
	hwloc_bitmap_set_range(pus, 0, 1);
	assert_int_equal(trace_head_tree(&first, t, pus, &err), 0);
	hwloc_bitmap_zero(pus);
	hwloc_bitmap_set_range(pus, 2, 3);
	assert_int_equal(trace_head_tree(&last, t, pus, &err), 0);
	assert_int_equal(last.nlevels + 1, first.nlevels);
	assert_true(trace_head_level(&first, "Group0") >= 0 && trace_head_level(&last, "Group0") < 0);
}

/* What a view allocates is bounded, whatever the trace and its formulas are. */
TEST(views_are_bounded)
{
	FREED(trace_head_free) struct trace_head h = head_of("Package:16 [numa] Core:512 PU:1", NULL);
	OWNED(trace_view_free) struct trace_view *v = trace_view_new(&h, TRACE_RATE);
	struct err e = {""};
	unsigned added = 0;
	struct formula f;

	assert_non_null(v);
	while (formula_of_event("cycles", "PU", &f, &e) == 0 && trace_view_add(v, &f, &e) == 0)
		added++;
	assert_int_equal(added, TRACE_VIEW_MAX / (2 * 8192));
	assert_string_equal(e.text, "cycles: more than 1048576 sums a tick");
}

/* A NUMA node of the whole machine, such as memory behind a link, beside those of the packages. */
TEST(memory_at_two_levels)
{
	FREED(trace_head_free) struct trace_head h = head_of("[numa] Package:2 [numa] Core:2 PU:1", NULL);
	uint64_t values[4 + 4 + 3 + 1] = { 1, 2, 3, 4, 0, 0, 0, 0, 10, 20, 30, 0 };
	OWNED(trace_close) struct trace *t = record(&h, values, 1, true, NULL);
	OWNED(trace_view_free) struct trace_view *v = trace_view_new(&t->head, TRACE_RATE);
	const struct trace_level *numa = &t->head.levels[trace_head_level(&t->head, "NUMANode")];
	FREED(trace_block_free) struct trace_block b = {0};

	assert_non_null(v);
	assert_int_equal(numa->n, 3);
	assert_int_equal(numa->objects[2].count, 4);
	add_formulas(v, "c {NUMANode, cycles} f {NUMANode, fills} p {Package, fills} m {Machine, fills}");
	assert_int_equal(trace_read(t, 0, &b, &err), 0);
	assert_int_equal(trace_view_block(v, &b, &err), 0);
	assert_true(value_of(v, 0, 0, &b, 0) == 3 && value_of(v, 0, 1, &b, 0) == 7 && value_of(v, 0, 2, &b, 0) == 10);
	assert_true(value_of(v, 1, 0, &b, 0) == 10 && value_of(v, 1, 2, &b, 0) == 30);
	assert_true(value_of(v, 2, 0, &b, 0) == 10 && value_of(v, 2, 1, &b, 0) == 20);
	assert_true(value_of(v, 3, 0, &b, 0) == 60);
}

/* The memory of a package without PUs, which hwloc keeps: it is near all PUs that are left. */
TEST(memory_without_pus)
{
	OWNED(hwloc_bitmap_free) hwloc_bitmap_t left = hwloc_bitmap_alloc();
	const struct trace_level *numa;
	FREED(trace_head_free) struct trace_head h = {0};
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = synthetic_load("Package:3 [numa] Core:2 PU:1");

	hwloc_bitmap_set_range(left, 2, 5);
	assert_int_equal(hwloc_topology_restrict(t, left, 0), 0);
	assert_int_equal(trace_head_tree(&h, t, NULL, &err), 0);
	assert_non_null(h.events = calloc(1, sizeof(*h.events)));
	h.nevents = 1;
	strcpy(h.events->name, "fills");
	h.events->level = trace_head_level(&h, "NUMANode");
	assert_ok(trace_head_check(&h, &err));
	numa = &h.levels[h.events->level];
	assert_int_equal(numa->n, 3);
	assert_int_equal(numa->objects[2].os_index, 0);
	assert_int_equal(numa->objects[2].count, 4);
	assert_int_equal(numa->objects[1].os_index, 2);
	assert_int_equal(numa->objects[1].first, 2);
}

/* --- formulas --- */

/* The example of the paper, section 4.2, to the letter. */
TEST(papers_example_is_read)
{
	static const char text[] = "CYC_per_INS {PU, PAPI_TOT_CYC/PAPI_TOT_INS}\n"
				   "PER_CORE_L3_MISS {Core, PAPI_L3_TCM}\n"
				   "PER_NUMA_L3_MISS {NUMANode, PAPI_L3_TCM}\n";
	static const double values[] = { 30, 10 };
	FREED(formula_list_free) struct formula_list l;

	assert_int_equal(formula_list_parse(text, strlen(text), "paper", &l, &err), 0);
	assert_int_equal(l.n, 3);
	assert_string_equal(l.list[0].name, "CYC_per_INS");
	assert_string_equal(l.list[0].level, "PU");
	assert_string_equal(l.list[0].events[1], "PAPI_TOT_INS");
	assert_true(formula_value(&l.list[0], values, 1) == 3);
	assert_string_equal(l.list[2].level, "NUMANode");
}

TEST(formulas)
{
	static const struct {
		const char *text;
		double value;		/* a is 6, b 0, c absent, parts 5, 4, 17, over 2 seconds */
		const char *error;
	} rows[] = {
		{ "1 + 2 * 3", 7, NULL }, { "(1 + 2) * 3", 9, NULL }, { "10 - 4 - 3", 3, NULL },
		{ "12 / 3 / 2", 2, NULL }, { "-a * -(1 + 1)", 12, NULL }, { "- -a", 6, NULL }, { "2.5e1", 25, NULL },
		{ ".5", .5, NULL }, { "a / seconds", 3, NULL }, { "a # six\n + 1", 7, NULL }, { "a / b", NAN, NULL },
		{ "1 / (a / b)", NAN, NULL }, { "0 * c", NAN, NULL }, { "b / a", 0, NULL }, { "1e308 * 10", NAN, NULL },
		{ "1e999", 0, "expected a number" }, { "", 0, "expected an event" }, { "1 +", 0, "expected an event" },
		{ "(1", 0, "expected ')'" }, { "1 2", 0, "expected an operator" }, { "a b", 0, "expected an operator" },
		{ "1x", 0, "expected a number" }, { "0x10", 0, "expected a number" }, { ".", 0, "expected a number" },
		{ "a $ b", 0, "expected an operator" }, { "system(a)", 0, "expected an operator" },
		{ "min * max", NAN, NULL }, { "max(a) - 4", 1, NULL }, { "max(a / b) / max (b) + min(a)", 18.25, NULL },
		{ "max(1)", 0, "min, max and avg are of events" }, { "max(a", 0, "expected ')'" },
		{ "max()", 0, "expected an event" }, { "max(a + min(b))", 0, "not nested" }, { "max a", 0, "operator" },
		{ "max(a)+max(a)+max(a)+max(a)+max(a)+max(a)+max(a)+max(a)+max(a)", 0, "too many" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		double x, values[FORMULA_OPERANDS] = { [FORMULA_EVENTS] = 5, 4, 17 };
		struct formula_list l;
		char text[128];
		int rc;

		snprintf(text, sizeof(text), "f {PU, %s}", rows[i].text);
		rc = formula_list_parse(text, strlen(text), "file", &l, &err);
		if (!rc != !rows[i].error ||
		    (rc && (!strstr(err.text, rows[i].error) || strncmp(err.text, "file:", 5))))
			fail_msg("%s: %s", rows[i].text, rc ? err.text : "is read");
		if (rc)
			continue;
		for (unsigned k = 0; k < l.list[0].nevents; k++)
			values[k] = *l.list[0].events[k] == 'a' ? 6 : *l.list[0].events[k] == 'b' ? 0 : NAN;
		x = formula_value(&l.list[0], values, 2);
		if (isnan(x) != isnan(rows[i].value) || (!isnan(x) && x != rows[i].value))
			fail_msg("%s: %g", rows[i].text, x);
		formula_list_free(&l);
	}
}

/* What is too long, too deep or too much is refused in bounded memory and stack. */
TEST(hostile_formulas_are_bounded)
{
	static const struct {
		const char *first, *again, *last;
		unsigned times;
		const char *error;
	} rows[] = {
		{ "f {PU, ", "(", "", 100000, "at most 65536" }, { "f {PU, ", "(", "", 60000, "nested deeper" },
		{ "f {PU, ", "-", "1}", 60000, "nested deeper" }, { "f {PU, 1", "+1", "}", 30000, "more than 256" },
		{ "", "f{PU,a}", "", 9000, "more than 256 formulas" }, { "f {PU, ", "a", "}", 60000, "at most 63" },
		{ "", "f", " {PU, 1}", 64, "at most 63" }, { "f {PU, ", "9", "}", 60000, "a number" },
	};
	struct formula_list l;

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf text = {0};

		buf_puts(&text, rows[i].first);
		for (unsigned n = 0; n < rows[i].times; n++)
			buf_puts(&text, rows[i].again);
		buf_puts(&text, rows[i].last);
		assert_int_equal(formula_list_parse(text.data, text.len, "file", &l, &err), -1);
		if (!strstr(err.text, rows[i].error))
			fail_msg("row %zu: %s", i, err.text);
	}
}

TESTS_MAIN(NULL, NULL)
