/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "top_job.h"

#include <openssl/evp.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/printable.h"
#include "monitor/ask.h"
#include "monitor/live.h"
#include "trace/writer.h"

#define PIECE 648u		/* bytes of a line before they are encoded: a multiple of 3 */
#define PIECE_TEXT (PIECE / 3 * 4)
#define BEGIN_SECONDS 3.0	/* for topiary-monitor to begin, or to come back */
#define POLL_NS 50000000u	/* between two looks, or less, */
#define DUE_NS 5000000u		/* about when a tick is due */
#define FEED_NS (1000000000u / FEED_HZ)
#define SHOWN_NS (FEED_NS - FEED_NS / 10)	/* between two that are shown, at least */
#define SOURCES_MAX 64u
#define NAME_MAX_BYTES 128u
#define WHY 640

enum source_state { WAITING, OPEN, OVER };

struct source {
	char name[NAME_MAX_BYTES];
	char *steps;			/* separated by commas */
	char step[64];			/* the one that is shown, "" before that */
	enum source_state state;
	struct live_reader *live;
	uint64_t *values;
	struct trace_writer *writer;	/* into fd, which is emptied after each tick */
	int fd;
	uint64_t time, shown;		/* of the trace, which has no gaps; when its last tick was written */
	double until;			/* WAITING: the time that it may take */
};

/* --- lines */

static int line_put(const struct source *s, const char *kind, const char *text)
{
	char line[FEED_LINE + 2];
	int n = snprintf(line, sizeof(line), "%s %s%s%.*s\n", s->name, kind, *text ? " " : "", (int) PIECE_TEXT, text);

	return file_write(STDOUT_FILENO, line, n);
}

/* What the writer has added since the last time. */
static int file_put(struct source *s)
{
	off_t size = lseek(s->fd, 0, SEEK_CUR), piece;
	uint8_t *bytes = size > 0 ? malloc(size) : NULL;
	char text[PIECE_TEXT + 1];
	int rc = bytes && pread(s->fd, bytes, size, 0) == size && !lseek(s->fd, 0, SEEK_SET) && !ftruncate(s->fd, 0) ?
		 0 : -1;

	for (off_t at = 0; rc == 0 && at < size; at += piece) {
		piece = size - at < PIECE ? size - at : PIECE;
		EVP_EncodeBlock((unsigned char *) text, bytes + at, piece);
		rc = line_put(s, at + piece == size ? "tick" : "data", text);
	}
	free(bytes);
	return rc;
}

/* --- one source */

static void source_close(struct source *s)
{
	struct err unheard;

	trace_writer_close(s->writer, &unheard);
	if (s->fd >= 0)
		close(s->fd);
	live_reader_close(s->live);
	free(s->values);
	s->writer = NULL;
	s->live = NULL;
	s->values = NULL;
	s->fd = -1;
}

static int source_end(struct source *s, const char *kind, const char *text)
{
	source_close(s);
	s->state = OVER;
	return line_put(s, kind, text);
}

/* Does slurmstepd ask for the step, to be recorded or not? No: there is no such step here, or it has ended. */
static bool step_asks(const char *run_dir, const char *step, struct monitor_ask *ask)
{
	char path[PATH_MAX];
	struct buf text = {0};
	struct err e;
	bool asks;

	snprintf(path, sizeof(path), "%s/%s/" ASK_FILE, run_dir, step);
	asks = !file_read(path, ASK_SIZE, &text, &e) && !monitor_ask_parse(text.data, ask, &e);
	buf_free(&text);
	return asks;
}

static int source_begin(struct source *s, const char *step, struct err *e)
{
	unsigned columns = s->live->head.columns;

	snprintf(s->step, sizeof(s->step), "%s", step);
	s->time = 0;
	s->values = calloc(columns, sizeof(*s->values));
	if ((s->fd = memfd_create("feed", MFD_CLOEXEC)) < 0 || !s->values ||
	    !(s->writer = trace_writer_new(dup(s->fd), step, &s->live->head, e)))
		return -1;
	s->state = OPEN;
	return line_put(s, "begin", "") || file_put(s) ? -1 : 0;
}

/*
 * Open the first of its steps that is recorded. Otherwise why none is, "" if none is here; may_begin: one asks to be,
 * and topiary-monitor has not begun.
 */
static int source_find(struct source *s, const char *run_dir, char why[static WHY], bool *may_begin)
{
	char *steps = strdup(*s->step ? s->step : s->steps), *rest = steps, *step;
	int rc = 0;

	while (steps && s->state == WAITING && (step = strsep(&rest, ","))) {
		struct monitor_ask ask;
		char path[PATH_MAX];
		struct err e = {""};

		if (!step_asks(run_dir, step, &ask) || (*why && !ask.request.hz))
			continue;	/* the newest is what was expected */
		snprintf(path, sizeof(path), "%s/%s/" LIVE_FILE, run_dir, step);
		if (!ask.request.hz) {
			snprintf(why, WHY, "step %s is not recorded: it has no --topo-monitor=sw or =on", step);
		} else if ((s->live = live_reader_open(path, &e))) {
			rc = source_begin(s, step, &e);
		} else {
			*may_begin = errno == ENOENT;
			snprintf(why, WHY, "step %s %s", step, errno == EACCES ? "is another user's" : !*may_begin ?
				 e.text : "is not recorded: topiary-monitor did not begin; does it run there?");
		}
	}
	free(steps);
	return rc;
}

static int source_wait(struct source *s, const char *run_dir)
{
	char why[WHY] = "";
	bool may_begin = false;
	int rc = source_find(s, run_dir, why, &may_begin);

	if (s->state != WAITING || rc)
		return rc;
	if (!*why)
		return source_end(s, *s->step ? "end" : "none", "");
	return may_begin && clock_now() < s->until ? 0 : source_end(s, "error", printable(why));
}

/* The page is gone when the step ends; also when topiary-monitor ends or begins anew, and the step goes on. */
static int source_tick(struct source *s)
{
	uint64_t now = clock_nanoseconds(CLOCK_MONOTONIC), begin, end;
	struct err e;
	int rc;

	if (now - s->shown < SHOWN_NS)
		return 0;	/* what is not read now is in the next reading */
	if ((rc = live_read(s->live, s->values, &begin, &end)) < 0) {
		source_close(s);
		s->state = WAITING;
		s->until = clock_now() + BEGIN_SECONDS;
	}
	if (rc <= 0)
		return 0;
	s->shown = now;
	s->time += end - begin;
	return trace_writer_tick(s->writer, s->time, s->values, &e) || trace_writer_flush(s->writer, &e) ||
	       file_put(s) ? -1 : 0;
}

/* --- all of them */

/* NAME=STEP,STEP. 0 or -1. */
static int source_parse(struct source *s, char *text, struct err *e)
{
	const char *node = getenv("SLURMD_NODENAME"), *name = strsep(&text, "=");

	*s = (struct source){ .fd = -1, .steps = text, .until = clock_now() + BEGIN_SECONDS };
	snprintf(s->name, sizeof(s->name), "%s", *name ? name : node ? node : "node");
	if (!text || !*text || strspn(text, "0123456789.,abcehinrtv") != strlen(text) || strstr(text, "..") ||
	    !is_printable(s->name) || strchr(s->name, ' '))
		return err_set(e, "--feed: expected NAME=JOB.STEP,...");
	return 0;
}

/* Ticks are at whole multiples of their period: look just then, until the tick is there, or is not to be expected. */
static uint64_t pause_of(const struct source *all, unsigned n)
{
	uint64_t least = POLL_NS;

	for (const struct source *s = all; s < all + n; s++) {
		uint64_t period, since, ns;

		if (s->state != OPEN)
			continue;
		period = s->live->head.period < FEED_NS ? FEED_NS : s->live->head.period;
		since = clock_nanoseconds(CLOCK_REALTIME) % period;
		ns = since < POLL_NS && clock_nanoseconds(CLOCK_MONOTONIC) - s->shown > since ? 0 : period - since;
		ns = ns < DUE_NS ? DUE_NS : ns;
		least = ns < least ? ns : least;
	}
	return least;
}

int top_feed_run(const char *run_dir, const char *what, struct err *e)
{
	struct source all[SOURCES_MAX];
	char *text = strdup(what), *rest = text, *word;
	unsigned n = 0, over = 0;
	int rc = text ? 0 : err_set(e, "out of memory");

	while (rc == 0 && (word = strsep(&rest, "/")))
		rc = n == SOURCES_MAX ? err_set(e, "--feed: more than %u names", SOURCES_MAX) :
					source_parse(&all[n++], word, e);
	/* Until all are over, or nobody reads. */
	while (rc == 0 && over < n) {
		over = 0;
		for (struct source *s = all; s < all + n; s++) {
			if ((s->state == WAITING && source_wait(s, run_dir)) || (s->state == OPEN && source_tick(s)))
				goto end;
			over += s->state == OVER;
		}
		if (over < n)
			nanosleep(&(struct timespec){ 0, pause_of(all, n) }, NULL);
	}
end:
	for (unsigned i = 0; i < n; i++)
		source_close(&all[i]);
	free(text);
	return rc;
}
