/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */

/*
 * What a task has, as an object of JSON in one line: its CPUs and memory policy by the kernel, the CPUs of the topology
 * that it was handed, and its variables.
 */
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BITS = 1024 };

static int list(char *out, const unsigned long *bits)
{
	int n = sprintf(out, "\"");

	for (unsigned i = 0; i < BITS; i++)
		if (bits[i / 64] >> i % 64 & 1)
			n += sprintf(out + n, "%s%u", n > 1 ? "," : "", i);
	return n + sprintf(out + n, "\"");
}

static int topology(char *out)
{
	const char *path = getenv("HWLOC_XMLFILE"), *found;
	char text[4096] = "";
	FILE *f = path ? fopen(path, "re") : NULL;

	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
		fclose(f);
	}
	found = strstr(text, " cpuset=\"");
	return found ? sprintf(out, "\"%.*s\"", (int) strcspn(found + 9, "\""), found + 9) : sprintf(out, "null");
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "SLURMD_NODENAME", "SLURM_LOCALID", "SLURM_JOB_ID", "OMP_NUM_THREADS",
		"OMP_PLACES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "UCX_NET_DEVICES" };
	unsigned long cpus[BITS / 64] = {0}, nodes[BITS / 64] = {0};
	char out[32768], host[64] = "";
	const char *rank = getenv("SLURM_PROCID");
	int mode = -1, n;

	(void) argc, (void) argv;
	gethostname(host, sizeof(host) - 1);
	sched_getaffinity(0, sizeof(cpus), (cpu_set_t *) cpus);
	syscall(SYS_get_mempolicy, &mode, nodes, (unsigned long) BITS, NULL, 0UL);
	n = sprintf(out, "{\"rank\":%s,\"mode\":%d,\"cpus\":", rank ? rank : "-1", mode);
	n += list(out + n, cpus);
	n += sprintf(out + n, ",\"mems\":");
	n += list(out + n, nodes);
	n += sprintf(out + n, ",\"step\":");
	n += topology(out + n);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (getenv(names[i]))
			n += snprintf(out + n, 4096, ",\"%s\":\"%.3000s\"", names[i], getenv(names[i]));
	n += sprintf(out + n, "}\n");
	return write(STDOUT_FILENO, out, n) != n;
}
