/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "fuzz.h"
#include "replay/audit.h"

#define SNAPSHOT "topiary-snapshot 1\nshape s Package:2 [NUMANode] L3Cache:2 Core:4 PU:1\nnodes n[1-2] s\nend\n"
#define NODES "NodeName=n1 CoresPerSocket=8 CPUAlloc=0 Sockets=2 ThreadsPerCore=1 Partitions=a,b BootTime=None\n" \
	"NodeName=n2 CoresPerSocket=8 CPUAlloc=0 Sockets=2 ThreadsPerCore=1 Partitions=b BootTime=None\n"
#define JOB "JobId=1 JobName=x JobState=RUNNING StartTime=2026-01-01T00:00:00 Partition=b NumCPUs=2 NumTasks=1 " \
	"CPUs/Task=2 JOB_GRES=(null)\n Nodes=n[1-2] CPU_IDs=0-3,8 Mem=1 GRES=gpu:1(IDX:0)\n MinCPUsNode=1\n"

static struct buf part_read(const char *begin, const uint8_t **data, size_t *size)
{
	const uint8_t *stop = memchr(*data, '\f', *size);
	size_t len = stop ? (size_t) (stop - *data) : *size, all = len;
	struct buf b = {0};
	char *text = begin_with(begin, *data, &all);

	buf_add(&b, text, all);
	free(text);
	*data += len + (stop != NULL);
	*size -= len + (stop != NULL);
	return b;
}

/* Nodes, jobs and switches, divided by form feeds, behind some that are valid; after a first '{' the jobs are alone. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct snapshot *s = snapshot_parse(SNAPSHOT, strlen(SNAPSHOT), "snapshot", NULL);
	bool json = size && *data == '{';
	struct buf nodes = part_read(NODES, &data, &size), jobs = part_read(json ? "" : JOB, &data, &size);
	struct buf switches = part_read("SwitchName=s1 Nodes=n1\n", &data, &size);
	struct audit u = { .known_since = 1 };
	struct err e;

	if (!s || !(u.cluster = cluster_new(s, &e)))
		abort();
	if (!scontrol_read_nodes(&u.s, &nodes, "nodes", &e) && !scontrol_read_jobs(&u.s, &jobs, "jobs", &e) &&
	    !scontrol_read_switches(&u.s, &switches, "switches", "b", &e) && !audit_run(&u, &e))
		for (int level = 0; level < AUDIT_LEVELS; level++) {
			struct audit_sums n = audit_sum(&u, level);
			unsigned over = 0;

			for (size_t i = 0; i < AUDIT_OVER; i++)
				over += n.over[i];
			if (n.judged > u.audited || over != n.judged || n.split != n.judged - n.over[0] ||
			    n.forced + n.better + n.unknown != n.split)
				abort();
		}
	buf_free(&nodes);
	buf_free(&jobs);
	buf_free(&switches);
	audit_free(&u);
	snapshot_free(s);
	return 0;
}
