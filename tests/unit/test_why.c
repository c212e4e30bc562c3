/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "../../cli/place/slurm_asked.h"
#include "../../cli/place/verdict.h"
#include "table.h"

static struct verdict read_line(const char *line)
{
	struct verdict v;

	if (verdict_read(line, &v, &err))
		fail_msg("%s: %s", line, err.text);
	return v;
}

/* Frees the table. */
static char *printed(struct table *t)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(table_print(t, out), 0);
	fclose(out);
	table_free(t);
	return text;
}

static char *words_of(const struct verdict *v)
{
	struct table *t = table_new("|");

	verdict_add_rows(v, true, t);
	return printed(t);
}

static void prints(const char *words, const char *line)
{
	struct verdict v = read_line(line);
	OWNED(free) char *got = words_of(&v);

	assert_string_equal(got, words);
}

/* A value with the separator of cells is in the first; heads stand as their columns do. */
TEST(table_splits_cells)
{
	struct table *t = table_new("NODE|>BYTES||~MORE");

	table_cell(t, "%s|%u||%s", "cn1", 12u, "x");
	table_cell(t, "%s|||%s", "a\037b", "c|d");
	OWNED(free) char *text = printed(t);

	assert_string_equal(text, "NODE       BYTES    MORE\ncn1           12    x\na?b???c|d\n");
}

TEST(prints_text)
{
	cases_each("why.txt", prints);
}

/* Each row and level that can decide has its words. */
TEST(prints_what_decided)
{
	static const struct {
		const char *decided, *words;
	} rows[] = {
		{ "beyond", "the job would use more dies there" },
		{ "cuts:numa", "more tasks would be split between NUMA nodes there" },
		{ "touched:l2", "the job would use more L2 caches there" },
		{ "open:package", "free cores would be left in more packages there" },
		{ "broken:l3", "more entirely free L3 caches would be broken there" },
		{ "left:die", "more free cores would be left in its dies there" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		char line[256], wanted[256], *words;
		struct verdict v;

		snprintf(line, sizeof(line), "topiary:1 placed fit=prefer level=die beside=cn2 decided=%s end",
			 rows[i].decided);
		snprintf(wanted, sizeof(wanted), "beside  cn2: %s\n", rows[i].words);
		v = read_line(line);
		words = words_of(&v);
		if (!strstr(words, wanted))
			fail_msg("row %zu: no '%s' in:\n%s", i, wanted, words);
		free(words);
	}
}

/*
 * What is said of chosen cores against the cores themselves: two packages, each a NUMA node of two L3 caches of four
 * cores, some of which are not free.
 */
enum { CORES = 16, TRIES = 3000 };
#define PICKED "Package:2 [NUMANode] L3Cache:2 Core:4 PU:1"

static const struct {
	const char *one, *many;
	unsigned cores;
} domains[] = {
	{ "package", "packages", 8 }, { "NUMA node", "NUMA nodes", 8 }, { "L3 cache", "L3 caches", 4 },
	{ "L2 cache", "L2 caches", 1 },
};

/* Of the domains of so many cores that have a core of `own`: their number, and with `all` the cores of it in them. */
static unsigned count_domains(uint64_t own, unsigned cores, uint64_t all, unsigned *in)
{
	uint64_t mask = (1u << cores) - 1;
	unsigned n = 0;

	*in = 0;
	for (unsigned c = 0; c < CORES; c += cores)
		if (own >> c & mask) {
			n++;
			*in += __builtin_popcountll(all >> c & mask);
		}
	return n;
}

static void check_leaves(const char *words, uint64_t own, uint64_t cores_free)
{
	const char *at = strstr(words, "leaves "), *in = at ? strstr(at, " left in its ") : NULL;
	unsigned left = 0, n, rest, size;

	assert_non_null(in);
	in += strlen(" left in its ");
	sscanf(at, "leaves %u free core", &left);
	for (size_t i = 0; i < ROWS(domains); i++) {
		n = count_domains(own, domains[i].cores, cores_free & ~own, &rest);
		if (strncmp(in, n == 1 ? domains[i].one : domains[i].many, strlen(domains[i].one) - 1 + (n > 1)))
			continue;
		if (left != rest)
			fail_msg("%#x of %#x: %u are left:\n%s", (unsigned) own, (unsigned) cores_free, rest, words);
		count_domains(own, domains[i].cores, cores_free, &rest);
		count_domains(own, domains[i].cores, (1u << CORES) - 1, &size);
		if (!!strstr(in, "entirely free") != (left && n == 1 && rest == size))
			fail_msg("%#x of %#x:\n%s", (unsigned) own, (unsigned) cores_free, words);
		return;
	}
	fail_msg("no domain: %s", words);
}

TEST(tells_the_truth_of_chosen_cores)
{
	struct shape *shape = shape_parse(PICKED, NULL);
	unsigned seed = 7, checked = 0;

	assert_non_null(shape);
	for (unsigned i = 0; i < TRIES; i++) {
		uint64_t cores_free = (rand_r(&seed) | rand_r(&seed)) & ((1u << CORES) - 1), own = 0;
		unsigned task_cores = 1 + rand_r(&seed) % 4, tasks = 1 + rand_r(&seed) % 6, packages, l3, any;
		struct verdict v = { .outcome = VERDICT_PLACED, .request = { .fit = FIT_PREFER, .level = LEVEL_L3 },
				     .nodes = 1, .tasks = tasks, .task_cores = task_cores, .all_tasks = tasks,
				     .cores_per_node = tasks * task_cores, .whole_tasks = task_cores > 1,
				     .decided_row = -1 };
		struct score_need need = { .cores = tasks * task_cores, .task_cores = task_cores, .fit = FIT_PREFER,
					   .level = LEVEL_L3 };
		char touched[96], level[64], *words;
		bool whole = true;

		if (score_pick(shape, &cores_free, &need, &own, &v.cost))
			continue;
		checked++;
		words = words_of(&v);
		packages = count_domains(own, 8, 0, &any);
		l3 = count_domains(own, 4, 0, &any);
		snprintf(touched, sizeof(touched), "%u package%s, %u NUMA node%s", packages, packages > 1 ? "s" : "",
			 packages, packages > 1 ? "s" : "");
		if (l3 < need.cores)
			snprintf(touched + strlen(touched), 24, ", %u L3 cache%s\n", l3, l3 > 1 ? "s" : "");
		assert_non_null(strstr(words, touched));
		snprintf(level, sizeof(level), l3 == 1 ? "  satisfied: all within one L3 cache\n" :
			 "  not satisfied: in %u L3 caches\n", l3);
		assert_non_null(strstr(words, level));
		check_leaves(words, own, cores_free);
		for (unsigned c = 0; c < CORES; c += 4)
			whole &= __builtin_popcountll(own >> c & 15) % task_cores == 0;
		if (task_cores > 1 && !!strstr(words, "none is split") != whole)
			fail_msg("%#x, tasks of %u:\n%s", (unsigned) own, task_cores, words);
		free(words);
	}
	assert_true(checked > TRIES / 4);
	shape_free(shape);
}

TEST(prints_json)
{
	static const struct {
		const char *line, *json;
	} rows[] = {
		{ "topiary:1 placed fit=prefer level=l3 nodes=2 tasks=8x1 all_tasks=16 gpus=2 cores_far=3 candidates=12"
		  " room=9 beyond=1 touched=1,1,1,2,8 left=32,24,24,8,0,0"
		  " lacks=die,l2 beside=cn7 decided=open:l3 cores=cn[1-2]:0-7;cn3:8,9;... end",
		  "{\"outcome\": \"placed\", \"fit\": \"prefer\", \"level\": \"l3\", \"request\": null,"
		  " \"tasks_per_node\": 8, \"cores_per_task\": 1, \"nodes\": 2, \"more_nodes\": 0, \"all_tasks\": 16,"
		  " \"cores_per_node\": 0, \"own_cores\": 0, \"unspread\": 0, \"whole_nodes\": 0,"
		  " \"whole_tasks\": 0, \"memory_far\": 0,"
		  " \"gpus\": 2, \"gpus_far\": 0, \"gpus_unknown\": 0, \"cores_far\": 3,"
		  " \"candidates\": 12, \"room\": 9, \"unknown\": 0, \"free_unknown\": 0,"
		  " \"counts\": {\"beyond\": {\"l3\": 1}, \"cuts\": {}, "
		  "\"touched\": {\"package\": 1, \"die\": 1, \"numa\": 1, \"l3\": 2, \"l2\": 8}, "
		  "\"open\": {}, \"broken\": {}, "
		  "\"left\": {\"node\": 32, \"package\": 24, \"die\": 24, \"numa\": 8}}, \"lacks\": [\"die\", \"l2\"], "
		  "\"beside\": \"cn7\", "
		  "\"decided\": {\"row\": \"open\", \"level\": \"l3\"}, \"better_by\": null, \"cores\": ["
		  "{\"nodes\": \"cn[1-2]\", \"cores\": \"0-7\"}, {\"nodes\": \"cn3\", \"cores\": \"8,9\"}],"
		  " \"cores_cut\": true, \"reason\": null}" },
		{ "topiary:1 waits fit=require request=/l3=1/core=4 nodes=1 tasks=1x4 candidates=3 better=1 beside=n"
		  " reason=no_room end",
		  "{\"outcome\": \"waits\", \"fit\": \"require\", \"level\": \"node\", \"request\": \"/l3=1/core=4\","
		  " \"tasks_per_node\": 1, \"cores_per_task\": 4, \"nodes\": 1, \"more_nodes\": 0, \"all_tasks\": 0,"
		  " \"cores_per_node\": 0, \"own_cores\": 0, \"unspread\": 0, \"whole_nodes\": 0,"
		  " \"whole_tasks\": 0, \"memory_far\": 0,"
		  " \"gpus\": 0, \"gpus_far\": 0, \"gpus_unknown\": 0, \"cores_far\": 0,"
		  " \"candidates\": 3, \"room\": 0, \"unknown\": 0, \"free_unknown\": 0,"
		  " \"counts\": null, \"lacks\": [], \"beside\": \"n\", \"decided\": null, \"better_by\": \"memory\","
		  " \"cores\": [],"
		  " \"cores_cut\": false, \"reason\": \"no room\"}" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct verdict v = read_line(rows[i].line);
		json_t *j = verdict_json(&v);
		OWNED(free) char *text = json_dumps(j, 0);

		assert_string_equal(text, rows[i].json);
		json_decref(j);
	}
}

TEST(prints_a_summary)
{
	static const struct {
		const char *line, *words;
	} rows[] = {
		{ "topiary:1 placed fit=prefer end", "placed by Topiary, prefer" },
		{ "topiary:1 left fit=spread level=numa end", "left to Slurm, spread numa" },
		{ "topiary:1 waits fit=require request=/core=4 end", "waits, /core=4" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		struct verdict v = read_line(rows[i].line);
		FREED(buf_free) struct buf b = {0};

		buf_printf(&b, "%s, ", verdict_outcome(&v));
		verdict_asked(&v, &b);
		assert_string_equal(b.data, rows[i].words);
	}
}

/* What Slurm's own options asked of the network and did not get. */
TEST(warns_of_what_slurm_did_not_keep)
{
	static const char tree[] = "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=cn[1-4]\n"
			     "SwitchName=s2 Level=0 LinkSpeed=1 Nodes=cn[5-8]\n"
			     "SwitchName=top Level=1 LinkSpeed=1 Nodes=cn[1-8] Switches=s[1-2]\n";
	static const char two_trees[] = "SwitchName=s1 Level=0 Nodes=cn[1-4]\nSwitchName=t1 Level=0 Nodes=cn[1-8]\n";
	static const char blocks[] = "BlockName=b1 BlockIndex=0 Nodes=cn[01-18] BlockSize=18\n"
			       "BlockName=b2 BlockIndex=1 Nodes=cn[19-36] BlockSize=18\n"
			       "BlockName=b3 BlockIndex=2 Nodes=cn[37-54] BlockSize=18\n"
			       "AggregatedBlock=b[1-3] BlockIndex=3 Nodes=cn[01-54] BlockSize=54\n";
	static const char levels[] = "BlockName=b1 BlockIndex=0 Nodes=cn[1-2] BlockSize=2\n"
			       "BlockName=b2 BlockIndex=1 Nodes=cn[3-4] BlockSize=2\n"
			       "BlockName=b3 BlockIndex=2 Nodes=cn[5-6] BlockSize=2\n"
			       "BlockName=b4 BlockIndex=3 Nodes=cn[7-8] BlockSize=2\n"
			       "AggregatedBlock=b[1-2] BlockIndex=4 Nodes=cn[1-4] BlockSize=4\n"
			       "AggregatedBlock=b[3-4] BlockIndex=5 Nodes=cn[5-8] BlockSize=4\n"
			       "AggregatedBlock=b[1-4] BlockIndex=6 Nodes=cn[1-8] BlockSize=8\n";
	static const struct {
		const char *topology;
		struct slurm_asked asked;
		const char *words;
	} rows[] = {
		{ tree, { "cn[3-5]", 1, 0 }, "--switches=1 was not kept: its nodes are on 2 leaf switches (s1: 2, "
		  "s2: 1); Slurm waits for them only as long as --switches=1@TIME and max_switch_wait of slurm.conf "
		  "allow\n" },
		{ tree, { "cn[3-5]", 2, 0 }, NULL },
		{ tree, { "cn[3-5]", 0, 0 }, NULL },
		{ tree, { "cn[1-4]", 1, 0 }, NULL },
		{ tree, { "cn[8-9]", 1, 0 }, NULL },	/* cn9 is in no switch */
		{ two_trees, { "cn[1-2],cn5", 1, 0 }, NULL },
		{ blocks, { "cn[01-17],cn[19-35],cn[37-38]", 0, 12 },
		  "--segment=12 was not kept: its 36 nodes are in blocks of b1: 17, b2: 17, b3: 2\n" },
		{ blocks, { "cn[01-12],cn[19-30],cn[37-48]", 0, 12 }, NULL },
		{ blocks, { "cn[01-18],cn[19-36]", 0, 36 }, NULL },	/* of an aggregated block */
		{ blocks, { "cn[01-04]", 0, 8 }, NULL },	/* ignored: the job is smaller */
		{ blocks, { "cn[01-12],cn[19-21]", 0, 12 }, NULL },	/* it gave 9 of 24 back */
		{ levels, { "cn[1-2],cn[5-6]", 0, 4 },
		  "--segment=4 was not kept: its 4 nodes are in blocks of b[1-2]: 2, b[3-4]: 2\n" },
		{ blocks, { "cn[17-20]", 0, 0 },
		  "its 4 nodes are in 2 blocks (b1: 2, b2: 2), and would fit into one\n" },
		{ blocks, { "cn[01-19]", 0, 0 }, NULL },
		{ blocks, { "cn[01-04]", 0, 0 }, NULL },
		{ "\n", { "cn1", 1, 2 }, "--switches=1 had no effect: the topology of its partition has no switches\n"
		  "--segment=2 had no effect: the topology of its partition has no blocks\n" },
		{ "RingName=r1 Nodes=cn[1-4] RingSize=4\n", { "cn[1-2]", 0, 2 }, NULL },
		{ "SwitchName=s1 Nodes=cn[1-\nBlockName=b Nodes=\n", { "cn1", 1, 2 }, NULL },
		{ tree, { "cn[1-", 1, 2 }, NULL },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(buf_free) struct buf b = {0};

		slurm_asked_check(&rows[i].asked, rows[i].topology, &b);
		if (strcmp(b.data ? b.data : "", rows[i].words ? rows[i].words : ""))
			fail_msg("row %zu: %s", i, b.data ? b.data : "nothing");
	}
}

TESTS_MAIN(NULL, NULL)
