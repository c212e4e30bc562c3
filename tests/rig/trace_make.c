/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * Usage: trace_make FILE TOPOLOGY TICKS [NODE [NAME [BUSY]]]
 * A trace of a made node, whose topology is a synthetic string or an XML file; the same for the same arguments: one
 * tick a second, six counters of each PU and memory_used of each NUMA node. PUs differ in pace by 2 % and each sample
 * by 0.3 %, as recorded ones do: copies of one PU would compress to nothing. Prints the exact sums of cycles and
 * l3_misses. NAME: what the Machine is shown as, "" as always.
 * BUSY: the part of the time that each PU is busy, which is counted, too, then.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/block.h"
#include "trace/writer.h"

static const struct trace_event events[] = {
	{ .name = "cycles" }, { .name = "instructions" }, { .name = "l3_misses" }, { .name = "near_fills" },
	{ .name = "far_fills" }, { .name = "context_switches" },
	{ .name = "memory_used", .unit = "B", .kind = TRACE_GAUGE }, { .name = "busy", .unit = "ns" },
};
static double paces[] = { 2.4e9, 3.1e9, 4e6, 3e6, 1e6, 20, 8e9, 0 };
enum { CYCLES = 0, L3_MISSES = 2, NEAR = 3, FAR = 4, MEMORY = 6, BUSY = 7,
       EVENTS = sizeof(events) / sizeof(events[0]) };

/* The sum of four uniform numbers is normal enough. */
static double noise(void)
{
	return 1 + 0.003 * 1.7 * (drand48() + drand48() + drand48() + drand48() - 2);
}

/* A phase a minute, in which every other PU computes and the others wait for memory. */
static double phase(unsigned event, unsigned leaf, unsigned tick)
{
	unsigned waits = (leaf + tick / 60) % 2;

	if (event == L3_MISSES || event == NEAR || event == FAR)
		return waits ? 1 : 0.1;
	return event == CYCLES || event == MEMORY || event == BUSY || !waits ? 1 : 0.3;
}

static void tick_make(const struct trace_head *h, unsigned tick, uint64_t *values)
{
	for (unsigned x = 0; x < h->nevents; x++)
		for (unsigned i = 0; i < h->levels[h->events[x].level].n; i++)
			values[h->events[x].column + i] =
				paces[x] * phase(x, i, tick) * (1 + 0.02 * sin(i * 12.9898 + x)) * noise();
}

static hwloc_topology_t topology_make(const char *from)
{
	int (*set)(hwloc_topology_t, const char *) = strstr(from, ".xml") ? hwloc_topology_set_xml :
		hwloc_topology_set_synthetic;
	hwloc_topology_t t;

	return hwloc_topology_init(&t) || set(t, from) || hwloc_topology_load(t) ? NULL : t;
}

static int name_give(struct trace_level *l, const char *name)
{
	if (!(l->names = calloc(l->n + 1, sizeof(*l->names))))
		return -1;
	snprintf(l->names[0], sizeof(l->names[0]), "%s", name);
	return 0;
}

static int head_make(struct trace_head *h, const char *from, const char *node, const char *name, struct err *e)
{
	hwloc_topology_t t = topology_make(from);

	if (!t)
		return err_set(e, "%s: hwloc cannot load this topology", from);
	snprintf(h->node, sizeof(h->node), "%s", node);
	h->period = 1000000000;
	if (trace_head_tree(h, t, NULL, e) || (name && name_give(&h->levels[0], name)) ||
	    !(h->events = malloc(sizeof(events))))
		return -1;
	memcpy(h->events, events, sizeof(events));
	h->nevents = paces[BUSY] > 0 ? EVENTS : BUSY;
	for (unsigned x = 0; x < EVENTS; x++)
		h->events[x].level = trace_head_level(h, x == MEMORY ? "NUMANode" : "PU");
	hwloc_topology_destroy(t);
	return 0;
}

static int record(struct trace_writer *w, const struct trace_head *h, unsigned ticks, struct err *e)
{
	uint64_t *values = calloc(h->columns, sizeof(*values)), sums[EVENTS] = {0};
	int rc = 0;

	for (unsigned t = 0; rc == 0 && values && t < ticks; t++) {
		tick_make(h, t, values);
		for (unsigned x = 0; x < h->nevents; x++)
			for (unsigned i = 0; i < h->levels[h->events[x].level].n; i++)
				sums[x] += values[h->events[x].column + i];
		rc = trace_writer_tick(w, (t + 1) * h->period, values, e);
	}
	free(values);
	printf("%llu %llu\n", (unsigned long long) sums[CYCLES], (unsigned long long) sums[L3_MISSES]);
	return rc;
}

int main(int argc, char **argv)
{
	struct trace_head h = {0};
	struct trace_writer *w;
	struct err e = {""};
	int fd, rc;

	if (argc < 4 || (fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) < 0)
		return 2;
	srand48(1);
	paces[BUSY] = argc > 6 ? strtod(argv[6], NULL) * 1e9 : 0;
	if (head_make(&h, argv[2], argc > 4 ? argv[4] : "made", argc > 5 && *argv[5] ? argv[5] : NULL, &e) ||
	    !(w = trace_writer_new(fd, argv[1], &h, &e))) {
		fprintf(stderr, "trace_make: %s\n", e.text);
		return 1;
	}
	rc = record(w, &h, strtoul(argv[3], NULL, 10), &e);
	if (trace_writer_close(w, &e) || rc) {
		fprintf(stderr, "trace_make: %s\n", e.text);
		return 1;
	}
	trace_head_free(&h);
	return 0;
}
