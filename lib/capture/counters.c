/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "capture.h"

#include <sys/stat.h>

#include "base/array.h"

#define SECOND UINT64_C(1000000000)	/* nanoseconds, from the start to the first write */

/*
 * --topo-matrix=auto: counting ends with the first write after so many seconds at which, as at the one before, the
 * shares of the destinations have changed by at most so much.
 */
#define END_SECONDS 16
#define END_DISTANCE 0.01

/* And when more threads of a rank than this have sent: a rank is placed as one. */
#define MAX_THREADS 4

struct counter {
	uint64_t bytes, messages;
};

static struct {
	char path[PATH_MAX];
	const char *learned;	/* what the names of a learned program's files begin with */
	int rank, ranks;
	bool alone;		/* one thread at a time is in MPI: additions need not be atomic */
	unsigned threads;	/* that have sent, unless alone */
	uint64_t started, next_write;
	struct counter *cells;	/* cells[kind * ranks + destination]; NULL: nothing is counted (any more) */
	struct counter *counted;	/* the same, until they have been written for the last time */
	uint64_t *before;	/* bytes to each destination at the last write; NULL: counting does not end by itself */
	unsigned unchanged;	/* writes at which the pattern had not changed */
	uint64_t ended;		/* when counting has ended by itself, or 0 */
} state;

/* Of a preloaded library, whose thread-local data are found without a call. */
static _Thread_local struct counter_list *redirected __attribute__((tls_model("initial-exec")));
static _Thread_local bool sent __attribute__((tls_model("initial-exec")));

/* Nanoseconds at the last clock tick: cheap to read. */
static uint64_t clock_coarse(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

bool counters_name_file(const char *prefix, int rank)
{
	return snprintf(state.path, sizeof(state.path), "%s.%d.prof", prefix, rank) < (int) sizeof(state.path);
}

void counters_start(int rank, int ranks, bool alone)
{
	struct counter *cells = calloc((size_t) COUNTER_KINDS * ranks, sizeof(*cells));

	state.rank = rank;
	state.alone = alone;
	state.ranks = ranks;
	state.started = clock_coarse();
	state.next_write = state.started + SECOND;
	state.counted = cells;
	state.before = state.learned ? calloc(ranks, sizeof(*state.before)) : NULL;
	__atomic_store_n(&state.cells, cells, __ATOMIC_RELEASE);
}

/* One of the ranks writes it. An empty file says that the disk is full. */
static void write_note(const char *suffix, const char *text)
{
	char file[PATH_MAX + 16];
	int fd;

	snprintf(file, sizeof(file), "%s.%s", state.learned, suffix);
	if ((fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
		return;
	(void) !write(fd, text, strlen(text));
	close(fd);
}

void counters_learn(const char *prefix, const char *program)
{
	state.learned = prefix;
	write_note("program", program);
}

void counters_give_up(const char *why)
{
	if (!state.learned)
		return;
	__atomic_store_n(&state.cells, NULL, __ATOMIC_RELEASE);
	write_note("off", why);
}

bool counters_active(void)
{
	return __atomic_load_n(&state.cells, __ATOMIC_ACQUIRE);
}

bool counters_started(void)
{
	return state.counted;
}

/* Half the sum of the differences of the destinations' shares of all bytes, since the last call. */
static double pattern_change(void)
{
	double sum_before = 0, sum = 0, change = 0;

	for (int pass = 0; pass < 2; pass++)
		for (int r = 0; r < state.ranks; r++) {
			uint64_t bytes = 0;

			for (int kind = 0; kind < COUNTER_KINDS; kind++)
				bytes += state.counted[(size_t) kind * state.ranks + r].bytes;
			if (!pass) {
				sum += bytes;
				sum_before += state.before[r];
				continue;
			}
			change += sum && sum_before ? __builtin_fabs(bytes / sum - state.before[r] / sum_before) : 1;
			state.before[r] = bytes;
		}
	return change / 2;
}

/* The thread that advances the time writes, the others continue. */
static void write_when_due(void)
{
	uint64_t due = __atomic_load_n(&state.next_write, __ATOMIC_RELAXED), at = clock_coarse();

	if (at >= due && __atomic_compare_exchange_n(&state.next_write, &due, 2 * at - state.started, false,
	    __ATOMIC_RELAXED,
						     __ATOMIC_RELAXED)) {
		counters_write();
		if (!state.before)
			return;
		state.unchanged = pattern_change() <= END_DISTANCE ? state.unchanged + 1 : 0;
		if (state.unchanged > 1 && at - state.started >= END_SECONDS * SECOND) {
			state.ended = at;
			__atomic_store_n(&state.cells, NULL, __ATOMIC_RELEASE);
		}
	}
}

void counters_add(enum counter_kind kind, int to, uint64_t bytes)
{
	struct counter *cells = __atomic_load_n(&state.cells, __ATOMIC_ACQUIRE), *s;

	if (!cells || to < 0 || to >= state.ranks)
		return;
	if (redirected) {
		if (!array_reserve(redirected->entry, redirected->n, 1))
			redirected->entry[redirected->n++] = (struct counter_entry){ kind, to, bytes };
		return;
	}
	s = &cells[(size_t) kind * state.ranks + to];
	if (state.alone) {
		s->bytes += bytes;
		s->messages++;
	} else {
		if (!sent && (sent = true) && __atomic_add_fetch(&state.threads, 1, __ATOMIC_RELAXED) > MAX_THREADS)
			counters_give_up("more than 4 threads of one rank have sent, and a rank has one place");
		__atomic_fetch_add(&s->bytes, bytes, __ATOMIC_RELAXED);
		__atomic_fetch_add(&s->messages, 1, __ATOMIC_RELAXED);
	}
	write_when_due();
}

void counters_redirect(struct counter_list *into)
{
	redirected = into;
}

void counters_add_list(const struct counter_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		counters_add(l->entry[i].kind, l->entry[i].to, l->entry[i].bytes);
}

static void write_kind(FILE *out, enum counter_kind kind, char letter)
{
	const struct counter *s = &state.counted[(size_t) kind * state.ranks];
	/* Ranks end counting at different times: what they went on to send is what they sent before. */
	double more = state.ended ? (double) (clock_coarse() - state.started) / (state.ended - state.started) : 1;

	for (int r = 0; r < state.ranks; r++)
		if (s[r].messages)
			fprintf(out, "%c\t%d\t%d\t%" PRIu64 " bytes\t%" PRIu64 " msgs sent\n", letter, state.rank, r,
				more > 1 ? (uint64_t) (s[r].bytes * more) : s[r].bytes,
				more > 1 ? (uint64_t) (s[r].messages * more) : s[r].messages);
}

struct counters_file_stamp counters_file_stamp(void)
{
	struct stat st;

	if (stat(state.path, &st))
		return (struct counters_file_stamp){0};
	return (struct counters_file_stamp){ st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec };
}

bool counters_file_unchanged(struct counters_file_stamp a, struct counters_file_stamp b)
{
	return a.inode == b.inode && a.bytes == b.bytes && a.seconds == b.seconds && a.nanoseconds == b.nanoseconds;
}

void counters_write(void)
{
	char part[PATH_MAX + 8];
	int fd, bad;
	FILE *out;

	snprintf(part, sizeof(part), "%s.new", state.path);
	if ((fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
		return;
	if (!(out = fdopen(fd, "w"))) {
		close(fd);
		return;
	}
	fputs("# POINT TO POINT\n", out);
	write_kind(out, COUNTER_P2P, 'E');
	write_kind(out, COUNTER_COLLECTIVE, 'I');
	fputs("# OSC\n", out);
	write_kind(out, COUNTER_PUT, 'S');
	write_kind(out, COUNTER_GET, 'R');
	fputs("# COLLECTIVES\nD\tMPI_COMM_WORLD\tprocs: 0", out);
	for (int r = 1; r < state.ranks; r++)
		fprintf(out, ",%d", r);
	fputc('\n', out);
	bad = ferror(out);
	if (fclose(out) || bad || rename(part, state.path))
		unlink(part);
}

void counters_remove_file(void)
{
	unlink(state.path);
}

/* The counters are not freed: another thread may still be adding. */
void counters_stop(void)
{
	state.counted = NULL;
	__atomic_store_n(&state.cells, NULL, __ATOMIC_RELEASE);
}

void counters_end(void)
{
	if (!counters_started())
		return;
	counters_write();
	counters_stop();
}
