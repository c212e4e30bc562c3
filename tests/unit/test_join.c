/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "table.h"
#include "topology.h"
#include "trace/join.h"

/* Events as "name@Level", separated by spaces. */
static struct trace_head head_of(const char *topology, const char *events)
{
	struct trace_head h = {0};
	char text[128], *rest = strncpy(text, events, sizeof(text) - 1), *word;
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = synthetic_load(topology);

	text[sizeof(text) - 1] = '\0';
	assert_int_equal(trace_head_tree(&h, t, NULL, &err), 0);
	h.events = calloc(8, sizeof(*h.events));
	while ((word = strsep(&rest, " "))) {
		struct trace_event *x = &h.events[h.nevents++];

		snprintf(x->name, sizeof(x->name), "%s", strsep(&word, "@"));
		x->level = trace_head_level(&h, word);
	}
	assert_ok(trace_head_check(&h, &err));
	return h;
}

static const struct trace_level *level(const struct trace_head *h, const char *type)
{
	int at = trace_head_level(h, type);

	assert_true(at >= 0);
	return &h->levels[at];
}

/* Nodes of different hardware, of which one has an event more. */
TEST(trees_are_side_by_side)
{
	struct trace_head a = head_of("Package:2 [numa] L3:2 Core:2 PU:2", "busy@PU memory@NUMANode"),
			  b = head_of("Package:1 [numa] Die:2 Core:3 PU:1", "busy@PU watts@Package memory@NUMANode");
	const struct trace_head *heads[] = { &a, &b, &a };
	static const char *const names[] = { "cn1", "cn2", "cn10" };
	const struct trace_level *l;
	FREED(trace_join_free) struct trace_join j;

	assert_ok(trace_join_make(&j, "Job", "job 7", heads, names, 3, &err));
	assert_int_equal(j.head.pus, 16 + 6 + 16);
	assert_string_equal(j.head.levels[0].type, "Job");
	assert_int_equal(j.head.levels[0].objects[0].count, j.head.pus);
	assert_string_equal(trace_head_name(&j.head.levels[0], 0), "job 7");
	l = level(&j.head, "Machine");
	assert_int_equal(l->n, 3);
	for (unsigned i = 0; i < 3; i++) {
		static const unsigned first[] = { 0, 16, 22 };

		assert_string_equal(trace_head_name(l, i), names[i]);
		assert_int_equal(l->objects[i].first, first[i]);
	}
	l = level(&j.head, "L3");
	assert_int_equal(l->n, 8);
	assert_int_equal(l->objects[4].first, 22);
	assert_int_equal(l->objects[4].index, 0);
	assert_null(trace_head_name(l, 4));
	assert_int_equal(level(&j.head, "Die")->objects[1].first, 19);
	assert_true(level(&j.head, "Die") > level(&j.head, "Package"));
	assert_true(level(&j.head, "Die") < level(&j.head, "Core"));
	assert_int_equal(j.head.nevents, 3);
	/* busy: 16, 6 and 16 columns; memory of five NUMA nodes; watts of five packages, the third is cn2's. */
	assert_int_equal(j.column[2][0], 22);
	assert_int_equal(j.column[0][16], 38);
	assert_int_equal(j.column[2][16], 38 + 3);
	assert_int_equal(j.column[1][6], 38 + 5 + 2);
	assert_int_equal(j.column[1][7], 38 + 2);
	trace_head_free(&a);
	trace_head_free(&b);
}

/* A name that is shown, and survives the file. */
TEST(names_are_in_the_trace)
{
	struct trace_head a = head_of("Core:2 PU:1", "busy@PU"), again;
	const struct trace_head *heads[] = { &a, &a };
	static const char *const names[] = { "cn1", "cn2" };
	FREED(buf_free) struct buf text = {0};
	FREED(trace_join_free) struct trace_join j;
	struct err e = {""};
	char *at;

	assert_int_equal(trace_join_make(&j, "Job", "job 7", heads, names, 2, &e), 0);
	assert_int_equal(trace_head_write(&j.head, &text, &e), 0);
	if (trace_head_parse(text.data, text.len, &again, &e))
		fail_msg("%s", e.text);
	assert_string_equal(trace_head_name(level(&again, "Machine"), 1), "cn2");
	assert_null(trace_head_name(level(&again, "Core"), 1));
	trace_head_free(&again);
	/* A name too few is no trace, and neither is one that moves a terminal's cursor. */
	assert_non_null(at = strstr(text.data, "[\"cn1\",\"cn2\"]"));
	memcpy(at, "[\"cn1,  cn2\"]", 13);
	assert_int_equal(trace_head_parse(text.data, text.len, &again, &e), -1);
	memcpy(at, "[\"cn1\",1    ]", 13);
	assert_int_equal(trace_head_parse(text.data, text.len, &again, &e), -1);
	memcpy(at, "[\"\\u001b\",\"\"]", 13);
	assert_int_equal(trace_head_parse(text.data, text.len, &again, &e), -1);
	assert_non_null(strstr(e.text, "control"));
	trace_head_free(&a);
}

TEST(same_event_at_another_level_is_left_out)
{
	FREED(trace_head_free) struct trace_head a = head_of("Package:2 Core:2 PU:1", "watts@Package"),
		b = head_of("Package:2 Core:2 PU:1", "watts@Core");
	const struct trace_head *heads[] = { &a, &b };
	static const char *const names[] = { "cn1", "cn2" };
	FREED(trace_join_free) struct trace_join j;

	assert_int_equal(trace_join_make(&j, "Job", "job 7", heads, names, 2, &err), 0);
	assert_int_equal(j.head.columns, 4);
	assert_int_equal(j.column[0][1], 1);
	assert_int_equal(j.column[1][0], TRACE_JOIN_NOWHERE);
}

TESTS_MAIN(NULL, NULL)
