/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "tally.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FIRST_WRITE UINT64_C(1000000000)	/* nanoseconds after the start */

struct sum {
	uint64_t bytes, messages;
};

static struct {
	char path[PATH_MAX];
	int rank, ranks;
	uint64_t started, next_write;
	struct sum *sums;	/* sums[kind * ranks + peer] */
} tally;

static _Thread_local struct tally_list *diverted;

/* Of the last tick of the machine's clock, which costs nothing to ask for. */
static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

bool tally_name(const char *prefix, int rank)
{
	return snprintf(tally.path, sizeof(tally.path), "%s.%d.prof", prefix, rank) < (int) sizeof(tally.path);
}

void tally_start(int rank, int ranks)
{
	struct sum *sums = calloc((size_t) TALLY_KINDS * ranks, sizeof(*sums));

	tally.rank = rank;
	tally.ranks = ranks;
	tally.started = now();
	tally.next_write = tally.started + FIRST_WRITE;
	__atomic_store_n(&tally.sums, sums, __ATOMIC_RELEASE);
}

bool tally_runs(void)
{
	return __atomic_load_n(&tally.sums, __ATOMIC_ACQUIRE);
}

/* One thread writes, the others go on. */
static void write_when_due(void)
{
	uint64_t due = __atomic_load_n(&tally.next_write, __ATOMIC_RELAXED), at = now();

	if (at >= due && __atomic_compare_exchange_n(&tally.next_write, &due, 2 * at - tally.started, false, __ATOMIC_RELAXED,
						     __ATOMIC_RELAXED))
		tally_write();
}

static void list_add(struct tally_list *l, struct tally_note note)
{
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 4;
		struct tally_note *bigger = realloc(l->note, room * sizeof(*bigger));

		if (!bigger)
			return;
		l->note = bigger;
		l->room = room;
	}
	l->note[l->n++] = note;
}

void tally_add(enum tally_kind kind, int to, uint64_t bytes)
{
	struct sum *sums = __atomic_load_n(&tally.sums, __ATOMIC_ACQUIRE), *s;

	if (!sums || to < 0 || to >= tally.ranks)
		return;
	if (diverted) {
		list_add(diverted, (struct tally_note){ kind, to, bytes });
		return;
	}
	s = &sums[(size_t) kind * tally.ranks + to];
	__atomic_fetch_add(&s->bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&s->messages, 1, __ATOMIC_RELAXED);
	write_when_due();
}

void tally_divert(struct tally_list *into)
{
	diverted = into;
}

void tally_add_list(const struct tally_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		tally_add(l->note[i].kind, l->note[i].to, l->note[i].bytes);
}

static void write_kind(FILE *out, enum tally_kind kind, char letter)
{
	const struct sum *s = &tally.sums[(size_t) kind * tally.ranks];

	for (int r = 0; r < tally.ranks; r++)
		if (s[r].messages)
			fprintf(out, "%c\t%d\t%d\t%" PRIu64 " bytes\t%" PRIu64 " msgs sent\n", letter, tally.rank, r, s[r].bytes,
				s[r].messages);
}

static void write_all(FILE *out)
{
	fputs("# POINT TO POINT\n", out);
	write_kind(out, TALLY_MESSAGE, 'E');
	write_kind(out, TALLY_COLLECTIVE, 'I');
	fputs("# OSC\n", out);
	write_kind(out, TALLY_PUT, 'S');
	write_kind(out, TALLY_GET, 'R');
	fputs("# COLLECTIVES\nD\tMPI_COMM_WORLD\tprocs: 0", out);
	for (int r = 1; r < tally.ranks; r++)
		fprintf(out, ",%d", r);
	fputc('\n', out);
}

struct tally_stamp tally_stamp(void)
{
	struct stat st;

	if (stat(tally.path, &st))
		return (struct tally_stamp){0};
	return (struct tally_stamp){ st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec };
}

bool tally_same(struct tally_stamp a, struct tally_stamp b)
{
	return a.inode == b.inode && a.bytes == b.bytes && a.seconds == b.seconds && a.nanoseconds == b.nanoseconds;
}

void tally_write(void)
{
	char part[PATH_MAX + 8];
	int fd, bad;
	FILE *out;

	snprintf(part, sizeof(part), "%s.new", tally.path);
	if ((fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
		return;
	if (!(out = fdopen(fd, "w"))) {
		close(fd);
		return;
	}
	write_all(out);
	bad = ferror(out);
	if (fclose(out) || bad || rename(part, tally.path))
		unlink(part);
}

void tally_discard(void)
{
	unlink(tally.path);
}

/* The sums are not freed: another thread may still be adding. */
void tally_stop(void)
{
	__atomic_store_n(&tally.sums, NULL, __ATOMIC_RELEASE);
}

void tally_end(void)
{
	if (!tally_runs())
		return;
	tally_write();
	tally_stop();
}
