/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "topiary_phase.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/*
 * All processes of a node append to one file, TOPIARY_PHASES, whole lines with each write(2): a node is one client of
 * whatever file system that is. A line is, with times of CLOCK_MONOTONIC in nanoseconds,
 *	P 1 ID PID RANK REAL TIME	the process; REAL: CLOCK_REALTIME at TIME; RANK -1: unknown
 *	B|E|M ID THREAD TIME NAME	a begin, end or mark
 * and ID is random, since processes in containers may have equal numbers. The file is open only while it is written:
 * some programs close all their descriptors. lib/trace/phases.c reads it.
 */
#define NAME_MAX_BYTES 63
#define BUFFER 32768u
#define LINE_MAX_BYTES 160u
#define FLUSH_NS UINT64_C(1000000000)	/* what a process that is killed loses, if it marks that often */
#define FILE_MAX_BYTES (64 << 20)

enum state { UNKNOWN, OFF, ON };

static atomic_int state;
static atomic_uint threads;
static _Thread_local unsigned thread;	/* its number, from 1 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char path[PATH_MAX], text[BUFFER];
static size_t used;
static uint64_t flushed;
static uint32_t id;

static uint64_t nanoseconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

static int file_open(void)
{
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	char folder[PATH_MAX], *slash;
	int fd = open(path, flags, 0666);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	strcpy(folder, path);
	if (!(slash = strrchr(folder, '/')))
		return -1;
	*slash = '\0';
	return mkdir(folder, 0755) && errno != EEXIST ? -1 : open(path, flags, 0666);
}

/* What cannot be written ends the marks, not the program. */
static void flush(uint64_t now)
{
	struct stat st;
	int fd = used ? file_open() : -1;

	flushed = now;
	if (!used)
		return;
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX_BYTES ||
	    write(fd, text, used) != (ssize_t) used)
		state = OFF;
	if (fd >= 0)
		close(fd);
	used = 0;
}

static long rank_of(void)
{
	static const char *const names[] = { "SLURM_PROCID", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value && *value >= '0' && *value <= '9')
			return atol(value);
	}
	return -1;
}

static void begin_process(uint64_t now)
{
	if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
		id = now ^ getpid();
	used = snprintf(text, sizeof(text), "P 1 %08" PRIx32 " %d %ld %" PRIu64 " %" PRIu64 "\n", id, (int) getpid(),
			rank_of(), nanoseconds(CLOCK_REALTIME), now);
	flushed = now;
}

/* A child has what its parent is still to write, and is another process. */
static void child(void)
{
	pthread_mutex_init(&lock, NULL);
	used = 0;
	if (state == ON)
		begin_process(nanoseconds(CLOCK_MONOTONIC));
}

static void start(uint64_t now)
{
	const char *wanted = secure_getenv("TOPIARY_PHASES");

	if (!wanted || !*wanted || strlen(wanted) >= sizeof(path)) {
		state = OFF;
		return;
	}
	strcpy(path, wanted);
	begin_process(now);
	pthread_atfork(NULL, NULL, child);
	state = ON;
}

static void note(char what, const char *name)
{
	int before = errno;
	uint64_t now;

	if (state == OFF || !name || !*name)
		return;
	now = nanoseconds(CLOCK_MONOTONIC);
	if (!thread)
		thread = ++threads;
	pthread_mutex_lock(&lock);
	if (state == UNKNOWN)
		start(now);
	if (state == ON) {
		if (used + LINE_MAX_BYTES > sizeof(text) || now - flushed >= FLUSH_NS)
			flush(now);
		used += snprintf(text + used, LINE_MAX_BYTES, "%c %08" PRIx32 " %u %" PRIu64 " ", what, id, thread,
				 now);
		/* One line's worth, without what would end it. */
		char *to = text + used;
		size_t n = 0;

		for (; n < NAME_MAX_BYTES && name[n]; n++)
			to[n] = (unsigned char) name[n] < ' ' || name[n] == 127 ? '?' : name[n];
		to[n] = '\n';
		used += n + 1;
	}
	pthread_mutex_unlock(&lock);
	errno = before;
}

void topiary_phase_begin(const char *name)
{
	note('B', name);
}

void topiary_phase_end(const char *name)
{
	note('E', name);
}

void topiary_phase_mark(const char *name)
{
	note('M', name);
}

__attribute__((destructor)) static void end(void)
{
	if (state == ON && pthread_mutex_trylock(&lock) == 0) {
		flush(0);
		pthread_mutex_unlock(&lock);
	}
}
