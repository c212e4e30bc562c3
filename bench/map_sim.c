/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
/*
 * map_sim PLATFORM.xml JOB: how long SimGrid says that an exchange takes. JOB: "RANKS PAIRS", the SimGrid host of each
 * rank, a line each, then "a b bytes" a line. At time 0 each rank sends half of the bytes of each of its pairs and
 * waits until all its messages, both ways, are through: one step of a code that does not compute. Writes the seconds
 * until the last rank is done.
 */
#include <err.h>

#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>

#include "base/std.h"

enum { NAME = 64, STACK = 64 };		/* STACK: of an actor, in KiB */

struct pair {
	unsigned a, b;
	double bytes;
};

static unsigned ranks;
static size_t npairs;
static char (*host)[NAME];
static struct pair *pairs;
static size_t *row, *mine;		/* of each rank its pairs: mine[row[r]] .. mine[row[r + 1] - 1] */

static void *room(size_t n, size_t each)
{
	void *p = calloc(n ? n : 1, each);

	if (!p)
		err(1, "%zu x %zu bytes", n, each);
	return p;
}

static void job_index(void)
{
	size_t *next = room(ranks, sizeof(*next));

	for (unsigned r = 0; r < ranks; r++)
		row[r + 1] += row[r];
	memcpy(next, row, ranks * sizeof(*next));
	mine = room(2 * npairs, sizeof(*mine));
	for (size_t i = 0; i < npairs; i++) {
		mine[next[pairs[i].a]++] = i;
		mine[next[pairs[i].b]++] = i;
	}
	free(next);
}

static void job_read(const char *path)
{
	FILE *f = fopen(path, "r");

	if (!f || fscanf(f, "%u %zu", &ranks, &npairs) != 2)
		err(1, "%s", path);
	host = room(ranks, sizeof(*host));
	pairs = room(npairs, sizeof(*pairs));
	row = room(ranks + 1, sizeof(*row));
	for (unsigned r = 0; r < ranks; r++)
		if (fscanf(f, "%63s", host[r]) != 1)
			errx(1, "%s: no host of rank %u", path, r);
	for (size_t i = 0; i < npairs; i++) {
		struct pair *p = &pairs[i];

		if (fscanf(f, "%u %u %lf", &p->a, &p->b, &p->bytes) != 3 || p->a >= ranks || p->b >= ranks)
			errx(1, "%s: no pair %zu", path, i);
		row[p->a + 1]++;
		row[p->b + 1]++;
	}
	fclose(f);
	job_index();
}

static sg_mailbox_t box(size_t pair, unsigned to)
{
	char name[NAME];

	snprintf(name, sizeof(name), "%zu-%u", pair, to);
	return sg_mailbox_by_name(name);
}

static void rank_run(int argc, char **argv)
{
	unsigned r = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	size_t degree = row[r + 1] - row[r], n = 0;
	sg_comm_t *comms = room(2 * degree, sizeof(*comms));
	void **came = room(degree, sizeof(*came));

	for (size_t i = 0; i < degree; i++) {
		size_t at = mine[row[r] + i];
		unsigned other = pairs[at].a == r ? pairs[at].b : pairs[at].a;

		comms[n++] = sg_mailbox_get_async(box(at, r), &came[i]);
		comms[n++] = sg_mailbox_put_async(box(at, other), &pairs[at], pairs[at].bytes / 2);
	}
	if (n)
		sg_comm_wait_all(comms, n);
	free(comms);
	free(came);
}

int main(int argc, char **argv)
{
	simgrid_init(&argc, argv);
	if (argc != 3)
		errx(1, "PLATFORM.xml JOB");
	simgrid_load_platform(argv[1]);
	job_read(argv[2]);
	for (unsigned r = 0; r < ranks; r++) {
		sg_host_t at = sg_host_by_name(host[r]);
		char number[NAME];
		const char *words[] = { "rank", number, NULL };

		if (!at)
			errx(1, "%s: no such host", host[r]);
		snprintf(number, sizeof(number), "%u", r);
		sg_actor_start_(sg_actor_init(number, at), rank_run, 2, words);
	}
	simgrid_run();
	printf("%.17g\n", simgrid_get_clock());
	return 0;
}
