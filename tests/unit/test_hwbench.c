/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
/* Results of topiary bench node: JSON and back, names and back, costs; and what is measured of two NUMA nodes. */
#include <math.h>

#include "hwbench/hwbench.h"
#include "table.h"
#include "topology.h"

OWNS(json_t *, json_decref)

/* Two packages of two NUMA nodes with OS indexes 4, 0, 1, 5, and one of memory alone. */
static const char machine[] =
	"{\"cores\": 32, \"numa_nodes\": 5,"
	"\"cache_line\": [{\"level\": \"l2\", \"pairs\": 5, \"seconds\": 2e-8},"
	"  {\"level\": \"package\", \"pairs\": 5, \"seconds\": 3e-7}],"
	"\"numa_cache_line\": ["
	"  {\"from\": 4, \"to\": 0, \"seconds\": 6e-8}, {\"from\": 4, \"to\": 1, \"seconds\": 3e-7},"
	"  {\"from\": 4, \"to\": 5, \"seconds\": 3e-7}, {\"from\": 4, \"to\": 9, \"seconds\": null},"
	"  {\"from\": 0, \"to\": 1, \"seconds\": 3e-7}, {\"from\": 0, \"to\": 5, \"seconds\": 3e-7},"
	"  {\"from\": 1, \"to\": 5, \"seconds\": 6e-8}],"
	"\"memory\": ["
	"  {\"from\": 4, \"to\": 4, \"latency_seconds\": 9e-8, \"bytes_per_second\": 1e11},"
	"  {\"from\": 4, \"to\": 0, \"latency_seconds\": 1e-7, \"bytes_per_second\": null},"
	"  {\"from\": 4, \"to\": 1, \"latency_seconds\": 2e-7, \"bytes_per_second\": 5e10},"
	"  {\"from\": 4, \"to\": 5, \"latency_seconds\": 2e-7, \"bytes_per_second\": 5e10},"
	"  {\"from\": 4, \"to\": 9, \"latency_seconds\": 5e-7, \"bytes_per_second\": 2e10}],"
	"\"domains\": [{\"level\": \"package\", \"cores\": 16, \"used\": 1, \"bytes_per_second\": 1e10},"
	"  {\"level\": \"package\", \"cores\": 16, \"used\": 16, \"bytes_per_second\": 1e11}]}";

#define COSTS "node=100.0,package=60.0,die=14.0,numa=12.0,l3=8.0,l2=4.0,core=2.0,0-1=12.0,0-2=60.0,0-3=60.0,1-2=60.0," \
	"1-3=60.0,2-3=12.0"

static int read_text(struct hwbench *b, const char *text, struct err *e)
{
	OWNED(json_decref) json_t *j = json_loads(text, 0, NULL);
	int rc = hwbench_from_json(b, j, e);

	assert_non_null(j);
	return rc;
}

TEST(json_and_back)
{
	FREED(hwbench_free) struct hwbench b, again;
	FREED(buf_free) struct buf costs = {0};
	OWNED(json_decref) json_t *j, *k;

	assert_int_equal(read_text(&b, machine, &err), 0);
	assert_true(b.os_index[0] == 4 && b.os_index[3] == 5 && b.numas == 5);
	assert_true(isnan(b.bandwidth[1]) && b.latency[4] == 5e-7 && isnan(b.latency[5]) && b.ndomains == 1);
	assert_true(b.between[1] == 6e-8 && b.between[5] == 6e-8);
	hwbench_costs(&b, &costs);
	assert_string_equal(costs.data, COSTS);
	assert_non_null(j = hwbench_to_json(&b));
	assert_int_equal(hwbench_from_json(&again, j, &err), 0);
	assert_non_null(k = hwbench_to_json(&again));
	assert_true(json_equal(j, k));
}

struct values {
	char *name[64];
	double value[64];
	size_t n;
};

static int add(void *user, const char *name, double value)
{
	struct values *v = user;

	assert_true(v->n < ROWS(v->name));
	v->name[v->n] = strdup(name);
	v->value[v->n++] = value;
	return 0;
}

/* The registry stores names and values; the costs of these are those of the result. */
TEST(values_and_back)
{
	FREED(hwbench_free) struct hwbench b, again;
	struct values v = {0};
	FREED(buf_free) struct buf costs = {0};

	assert_int_equal(read_text(&b, machine, &err), 0);
	assert_int_equal(hwbench_each(&b, add, &v), 0);
	assert_int_equal(v.n, 5 + 4 + 6 + 2 + 2);
	assert_string_equal(v.name[0], "memory latency, NUMA node 4 to 4");
	assert_string_equal(v.name[v.n - 1], "memory bandwidth, 16 of 16 cores of one package");
	assert_int_equal(hwbench_of_values(&again, (const char *const *) v.name, v.value, v.n, &err), 0);
	assert_int_equal(again.numas, 4);
	hwbench_costs(&again, &costs);
	assert_string_equal(costs.data, COSTS);
	for (size_t i = 0; i < v.n; i++)
		free(v.name[i]);
}

TEST(refuses)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{ "{}", "cores: expected an integer" },
		{ "{\"cores\":0,\"numa_nodes\":1}", "at least 1" },
		{ "{\"cores\":1,\"numa_nodes\":65}", "from 0 to 64" },
		{ "{\"cores\":1,\"numa_nodes\":1,\"memory\":[]}", "of 0 NUMA nodes, expected 1" },
		{ "{\"cores\":1,\"numa_nodes\":1,\"memory\":[{\"from\":0,\"to\":0,\"latency_seconds\":\"x\","
		  "\"bytes_per_second\":null}]}", "memory: latency_seconds: expected a number" },
		{ "{\"cores\":1,\"numa_nodes\":1,\"memory\":[{\"from\":0,\"to\":0,\"latency_seconds\":-1,"
		  "\"bytes_per_second\":null}]}", "latency_seconds" },
		{ "{\"cores\":1,\"numa_nodes\":1,\"memory\":[{\"from\":3,\"to\":0,\"latency_seconds\":null,"
		  "\"bytes_per_second\":null}]}", "more than 1 NUMA nodes" },
		{ "{\"cores\":1,\"numa_nodes\":1,\"memory\":[{\"from\":0,\"to\":0,\"latency_seconds\":1e-7,"
		  "\"bytes_per_second\":1}],\"numa_cache_line\":[],\"cache_line\":[{\"level\":\"node\"}]}",
		  "cache_line: level: expected" },
		{ "{\"cores\":1,\"numa_nodes\":1,\"memory\":[{\"from\":0,\"to\":0,\"latency_seconds\":1e-7,"
		  "\"bytes_per_second\":1}],\"numa_cache_line\":[],\"cache_line\":[],\"domains\":["
		  "{\"level\":\"l3\",\"cores\":4,\"used\":5,\"bytes_per_second\":1}]}", "domains: used" },
	};

	for (size_t i = 0; i < ROWS(rows); i++) {
		FREED(hwbench_free) struct hwbench b;
		struct err e = {""};

		if (!read_text(&b, rows[i].text, &e) || !strstr(e.text, rows[i].words))
			fail_msg("row %zu: %s", i, e.text);
	}
}

/* Two NUMA nodes of one core each, as the threads see them: the kernel may have no second one. */
TEST(measures_between_numa_nodes)
{
	OWNED(hwloc_topology_destroy) hwloc_topology_t t = synthetic_load("numa:2 core:1 pu:1");
	FREED(hwbench_free) struct hwbench b;

	assert_int_equal(hwbench_run(&b, t, 0.002, NULL, NULL, &err), 0);
	assert_true(b.between[1] > 1e-10 && b.between[1] < 1e-2 && b.between[1] == b.between[2]);
	assert_true(isnan(b.between[0]) && isnan(b.between[3]));
}

TESTS_MAIN(NULL, NULL)
