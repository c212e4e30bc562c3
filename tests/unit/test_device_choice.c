/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "score/device_choice.h"
#include "table.h"

/* Eight NUMA nodes of four cores in two packages. */
static const char eight[] = "Package:2 NUMANode:4 Core:4 PU:1";
#define NUMA 8u
#define EACH 4u

static struct shape *shape;

FIXTURE(start)
{
	return (shape = shape_parse(eight, NULL)) ? 0 : -1;
}

FIXTURE(end)
{
	shape_free(shape);
	return 0;
}

/* devices: free devices of each NUMA node, by a digit. Groups are in that order; cores: space for 8 sets. */
static struct device_groups groups_of(const char *devices, uint64_t *cores)
{
	struct device_groups g = { .cores = cores };

	for (unsigned i = 0; devices[i]; i++) {
		if (devices[i] == '0')
			continue;
		cores[g.n] = (uint64_t) 0xf << i * EACH;
		g.devices[g.n++] = devices[i] - '0';
	}
	return g;
}

/* free: free cores of each NUMA node, by a digit. */
static uint64_t free_of(const char *text)
{
	uint64_t cores = 0;

	for (unsigned i = 0; text[i]; i++)
		for (int c = 0; c < text[i] - '0'; c++)
			core_set_add(&cores, i * EACH + c);
	return cores;
}

/* --- sets of devices --- */

/* The sets as text: the NUMA nodes of each, "01 23(1)" with the number of groups without room for a task. */
static void sets_text(const char *devices, const struct device_set *sets, unsigned n, char *text)
{
	unsigned numa[NUMA], groups = 0;

	for (unsigned i = 0; devices[i]; i++)
		if (devices[i] != '0')
			numa[groups++] = i;
	for (unsigned i = 0; i < n; i++) {
		text += sprintf(text, "%s", i ? " " : "");
		for (unsigned g = 0; g < groups; g++)
			if (sets[i].groups & 1u << g)
				text += sprintf(text, "%u", numa[g]);
		if (sets[i].unserved)
			text += sprintf(text, "(%u)", sets[i].unserved);
	}
	*text = '\0';
}

static const struct {
	const char *why, *devices, *free;
	unsigned want, cores, task_cores;
	const char *sets;
} set_rows[] = {
	{ "any free one with enough cores", "11111111", "04442444", 1, 4, 1, "1 2 3 5 6 7" },
	{ "each with cores before one without", "11110000", "04444444", 2, 2, 1, "12 13 23 01(1) 02(1) 03(1)" },
	{ "across packages where one has none", "10001000", "44444444", 2, 2, 1, "04" },
	{ "a package before two", "01010100", "44444444", 2, 2, 1, "13 15 35" },
	{ "one without cores where there is no other", "11000000", "04000000", 2, 2, 1, "01(1)" },
	{ "a single task has cores near each", "11000000", "04000000", 2, 4, 4, "01(1)" },
	{ "one core is enough for that", "11100000", "14440000", 2, 4, 4, "01 02 12" },
	{ "half a task is none", "11100000", "14440000", 2, 4, 2, "12 01(1) 02(1)" },
	{ "not enough cores near any", "11000000", "22444444", 1, 4, 1, "0" },
	{ "enough near two alone", "11100000", "22344444", 2, 5, 1, "02 12" },
	{ "the most cores where none has enough", "11100000", "12300000", 2, 9, 1, "12" },
	{ "several near the same cores", "20010000", "44444444", 2, 4, 1, "0" },
	{ "of several near the same cores one, where it takes more cores", "20020000", "44444444", 2, 7, 1, "03" },
	{ "too few devices", "11000000", "44444444", 3, 1, 1, "" },
	{ "no device", "00000000", "44444444", 1, 1, 1, "" },
};

TEST(sets_are_the_best)
{
	for (size_t r = 0; r < ROWS(set_rows); r++) {
		struct score_need need = { .cores = set_rows[r].cores, .task_cores = set_rows[r].task_cores };
		uint64_t cores[NUMA], free_cores = free_of(set_rows[r].free);
		struct device_groups g = groups_of(set_rows[r].devices, cores);
		struct device_set sets[DEVICE_SHARES_MAX];
		char text[512];

		sets_text(set_rows[r].devices, sets,
			  device_choice_sets(shape, &g, set_rows[r].want, &free_cores, &need, sets), text);
		if (strcmp(text, set_rows[r].sets))
			fail_msg("%s: wanted '%s', got '%s'", set_rows[r].why, set_rows[r].sets, text);
	}
}

TEST(more_sets_than_there_is_room_for)
{
	struct score_need need = { .cores = 4, .task_cores = 1 };
	uint64_t cores[NUMA], free_cores = free_of("00004444");
	struct device_groups g = groups_of("11111111", cores);
	struct device_set sets[DEVICE_SHARES_MAX];
	unsigned n = device_choice_sets(shape, &g, 3, &free_cores, &need, sets);

	assert_int_equal(n, DEVICE_SHARES_MAX);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(sets[i].unserved, 0);
	for (unsigned i = 4; i < n; i++)
		assert_int_equal(sets[i].unserved, 1);
}

TEST(shares_are_ranges)
{
	uint64_t near[] = { 0xf0, 0xf, 0x0f00, 0xf0f000 }, all = UINT64_MAX, cores;
	struct device_groups g = { .n = 4, .devices = { 2, 1, 4, 1 }, .cores = near };
	struct device_share out[DEVICE_SHARES_MAX];

	assert_int_equal(device_choice_shares(&g, &(struct device_set){ .groups = 7 }, 4, &all, 1, &cores, out), 3);
	assert_int_equal(cores, 0xfff);
	assert_memory_equal(out, ((struct device_share[]){ { 0, 4, 1 }, { 4, 4, 2 }, { 8, 4, 1 } }), 3 * sizeof(*out));
	assert_int_equal(device_choice_shares(&g, &(struct device_set){ .groups = 9 }, 3, &all, 1, &cores, out), 0);
	assert_int_equal(cores, 0xf0f0f0);
	assert_int_equal(device_choice_shares(&g, &(struct device_set){ .groups = 5 }, 3, &all, 1, &cores, out), 2);
	assert_memory_equal(out, ((struct device_share[]){ { 4, 4, 2 }, { 8, 4, 1 } }), 2 * sizeof(*out));
	assert_int_equal(device_choice_shares(&g, &(struct device_set){ .groups = 5 }, 2, &all, 1, &cores, out), 2);
	assert_memory_equal(out, ((struct device_share[]){ { 4, 4, 1 }, { 8, 4, 1 } }), 2 * sizeof(*out));
	all = 0xf10;	/* fewer cores are free near the first ones */
	assert_int_equal(device_choice_shares(&g, &(struct device_set){ .groups = 5 }, 3, &all, 1, &cores, out), 2);
	assert_memory_equal(out, ((struct device_share[]){ { 4, 4, 1 }, { 8, 4, 2 } }), 2 * sizeof(*out));
	near[1] = 0x1f;
	assert_int_equal(device_choice_shares(&g, &(struct device_set){ .groups = 3 }, 3, &all, 1, &cores, out), 0);
}

/* --- the devices near a job's cores --- */

static bool better(struct device_misfit a, struct device_misfit b)
{
	return a.cores < b.cores || (a.cores == b.cores && a.devices < b.devices);
}

static struct device_misfit least(const struct device_list *l, uint64_t mine, const bool *before, unsigned want)
{
	struct device_misfit best = { 99, 99 };

	for (unsigned mask = 0; mask < 1u << l->n; mask++) {
		bool chosen[DEVICE_LIST_MAX] = {0};
		bool may = (unsigned) __builtin_popcount(mask) == want;
		struct device_misfit m;

		for (unsigned d = 0; d < l->n; d++) {
			chosen[d] = mask & 1u << d;
			may &= !chosen[d] || l->usable[d] || before[d];
		}
		m = device_choice_misfit(l, &mine, chosen);
		if (may && better(m, best))
			best = m;
	}
	return best;
}

/* Against all choices, for devices of which two may be near the same cores. */
TEST(choice_is_the_nearest)
{
	unsigned changes = 0;

	srandom(1);
	for (unsigned round = 0; round < 2000; round++) {
		bool usable[NUMA], chosen[DEVICE_LIST_MAX] = {0}, was[DEVICE_LIST_MAX];
		uint64_t near[NUMA], mine = 0;
		struct device_list l = { .n = NUMA, .words = 1, .near = near, .usable = usable };
		unsigned want = 0;
		struct device_misfit m;

		for (unsigned d = 0; d < NUMA; d++) {
			near[d] = (uint64_t) 0xf << (random() % NUMA) * EACH;
			usable[d] = random() % 2;
			want += chosen[d] = random() % 4 == 0;
		}
		for (unsigned n = random() % 8 + 1; n; n--)
			core_set_add(&mine, random() % (NUMA * EACH));
		memcpy(was, chosen, sizeof(was));
		m = device_choice_misfit(&l, &mine, was);
		if (device_choice_improve(&l, &mine, chosen)) {
			assert_true(better(device_choice_misfit(&l, &mine, chosen), m));
			m = device_choice_misfit(&l, &mine, chosen);
			changes++;
		} else {
			assert_memory_equal(chosen, was, sizeof(was));
		}
		assert_false(better(least(&l, mine, was, want), m));
		for (unsigned d = 0; d < NUMA; d++) {
			assert_true(!chosen[d] || usable[d] || was[d]);
			want -= chosen[d];
		}
		assert_int_equal(want, 0);
	}
	assert_true(changes > 500);
}

/* A digit for each device or core. Cores: how many of each NUMA node; near: the NUMA node that a device is near. */
static const struct {
	const char *why, *near, *mine;
	unsigned socket_cores;
	const char *before, *after;
} socket_rows[] = {
	{ "no socket: near any core", "00456", "10002100", 0, "10111", "11110" },
	{ "one task at the first socket, three at the second", "00456", "10002100", 16, "10111", "10111" },
	{ "no socket: more cores have one", "014", "44002222", 0, "101", "110" },
	{ "one task of eight cores at each socket", "014", "44002222", 16, "101", "101" },
	{ "nearer ones at the same socket", "01234567", "00400040", 16, "10001000", "00100010" },
	{ "the first ones, of a wrong socket", "01234567", "00003300", 16, "11000000", "00001100" },
};

TEST(each_socket_has_its_share)
{
	const bool usable[DEVICE_LIST_MAX] = { 1, 1, 1, 1, 1, 1, 1, 1 };

	for (size_t r = 0; r < ROWS(socket_rows); r++) {
		uint64_t near[NUMA], mine = free_of(socket_rows[r].mine);
		struct device_list l = { .n = strlen(socket_rows[r].near), .words = 1, .near = near, .usable = usable,
					 .socket_cores = socket_rows[r].socket_cores };
		bool chosen[DEVICE_LIST_MAX];
		char after[NUMA + 1] = "";

		for (unsigned d = 0; d < l.n; d++) {
			near[d] = (uint64_t) 0xf << (socket_rows[r].near[d] - '0') * EACH;
			chosen[d] = socket_rows[r].before[d] == '1';
		}
		device_choice_improve(&l, &mine, chosen);
		for (unsigned d = 0; d < l.n; d++)
			after[d] = '0' + chosen[d];
		if (strcmp(after, socket_rows[r].after))
			fail_msg("%s: wanted %s, got %s", socket_rows[r].why, socket_rows[r].after, after);
	}
}

TESTS_MAIN(start, end)
