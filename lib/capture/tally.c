/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "tally.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct sum {
	uint64_t bytes, messages;
};

static struct {
	int rank, ranks;
	struct sum *sums;	/* sums[kind * ranks + peer] */
} tally;

void tally_start(int rank, int ranks)
{
	struct sum *sums = calloc((size_t) TALLY_KINDS * ranks, sizeof(*sums));

	tally.rank = rank;
	tally.ranks = ranks;
	__atomic_store_n(&tally.sums, sums, __ATOMIC_RELEASE);
}

bool tally_runs(void)
{
	return __atomic_load_n(&tally.sums, __ATOMIC_ACQUIRE);
}

void tally_add(enum tally_kind kind, int to, uint64_t bytes)
{
	struct sum *sums = __atomic_load_n(&tally.sums, __ATOMIC_ACQUIRE), *s;

	if (!sums || to < 0 || to >= tally.ranks)
		return;
	s = &sums[(size_t) kind * tally.ranks + to];
	__atomic_fetch_add(&s->bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&s->messages, 1, __ATOMIC_RELAXED);
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

static bool name_file(const char *prefix, char *path, size_t size)
{
	return snprintf(path, size, "%s.%d.prof", prefix, tally.rank) < (int) size;
}

struct tally_stamp tally_stamp(const char *prefix)
{
	char path[PATH_MAX];
	struct stat st;

	if (!name_file(prefix, path, sizeof(path)) || stat(path, &st))
		return (struct tally_stamp){0};
	return (struct tally_stamp){ st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec };
}

bool tally_same(struct tally_stamp a, struct tally_stamp b)
{
	return a.inode == b.inode && a.bytes == b.bytes && a.seconds == b.seconds && a.nanoseconds == b.nanoseconds;
}

static void write_file(const char *prefix)
{
	char path[PATH_MAX], part[PATH_MAX + 8];
	int fd, bad;
	FILE *out;

	if (!name_file(prefix, path, sizeof(path)))
		return;
	snprintf(part, sizeof(part), "%s.new", path);
	if ((fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
		return;
	if (!(out = fdopen(fd, "w"))) {
		close(fd);
		return;
	}
	write_all(out);
	bad = ferror(out);
	if (fclose(out) || bad || rename(part, path))
		unlink(part);
}

void tally_end(const char *prefix)
{
	if (!tally_runs())
		return;
	write_file(prefix);
	/* Not freed: another thread may still be adding. */
	__atomic_store_n(&tally.sums, NULL, __ATOMIC_RELEASE);
}
