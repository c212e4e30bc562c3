/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors *
 * Notes. One process, a child of `topiary top`, and one thread, with srun as its child. All state is in struct gather;
 * a node belongs to it from its first line on. What nodes send is anybody's: lines that are not of the feed are
 * ignored, and a node whose bytes are damaged is not shown any more. Signals set a flag only.
 */
#include "top_job.h"

#include <math.h>
#include <openssl/evp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/order.h"
#include "base/printable.h"
#include "trace/join.h"
#include "trace/writer.h"

#define POLL_MS 20
#define BEGIN_SECONDS 5.0	/* between the first node's beginning and the first tick, for the others to begin */
#define WAIT_SECONDS 0.2	/* between the first new tick and ours, for those of the other nodes */
#define TICK_SECONDS 0.09	/* between two of ours, at least */
#define SILENT_SECONDS 3.0	/* or two of its ticks: what a node sent last does not hold any more */
#define ASK_SECONDS 5.0		/* between two calls of goes_on */
#define KILL_SECONDS 10.0	/* for srun to end its step */
#define BYTES_MAX ((off_t) 256 << 20)
#define SAID_MAX 4096u		/* of srun's errors */

enum node_state { BEGUN, ENDED, NONE, FAILED };

struct node {
	char *name, *shown;		/* shown: NULL, or with what comes before it */
	enum node_state state;
	int fd;				/* what came of its trace, in memory */
	off_t size;
	off_t head;			/* of that the head */
	char *subject;			/* of its first trace */
	struct trace *trace;		/* NULL: no head yet */
	unsigned read;			/* blocks of it */
	struct trace_block block;
	uint64_t *values;		/* of the last tick, NULL: none */
	double span, arrived;		/* seconds of it; when it came */
	bool is_new, is_silent;
	int column;			/* of trace_join, -1: not in it */
};

struct lines {
	int fd;				/* -1: closed */
	struct buf text;
};

struct gather {
	const struct top_gather_request *how;
	struct node *nodes;
	unsigned n;
	struct lines out, errors;
	pid_t srun;
	struct trace_join join;
	struct trace_writer *writer;	/* NULL: not begun */
	uint64_t *values;
	double began, last, first_new, first_begun, asked;	/* times; 0: not yet */
	struct buf said;		/* by srun on stderr */
	char why[256];			/* what a node said of itself last */
};

static volatile sig_atomic_t is_stopped;

static void on_stop(int)
{
	is_stopped = 1;
}

/* --- srun */

static int srun_start(struct gather *g, struct err *e)
{
	int out[2], errors[2];

	if (pipe2(out, O_CLOEXEC) || pipe2(errors, O_CLOEXEC))
		return err_set(e, "pipe: %s", strerror(errno));
	if ((g->srun = fork()) < 0)
		return err_set(e, "fork: %s", strerror(errno));
	if (!g->srun) {
		/* By SIGTERM it ends the step; a terminal's signals are not for it. */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		setpgid(0, 0);
		signal(SIGINT, SIG_DFL);
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		dup2(errors[1], STDERR_FILENO);
		execvp(*g->how->command, g->how->command);
		dprintf(STDERR_FILENO, "%s: %s\n", *g->how->command, strerror(errno));
		_exit(127);
	}
	close(out[1]);
	close(errors[1]);
	g->out.fd = out[0];
	g->errors.fd = errors[0];
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(errors[0], F_SETFL, O_NONBLOCK);
	return 0;
}

static void lines_close(struct lines *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	buf_free(&l->text);
}

/* --- what a node sends */

static struct node *node_find(struct gather *g, const char *name)
{
	struct node *more;

	for (unsigned i = 0; i < g->n; i++)
		if (!strcmp(g->nodes[i].name, name))
			return &g->nodes[i];
	if (g->n == g->how->expected || !(more = realloc(g->nodes, (g->n + 1) * sizeof(*more))))
		return NULL;
	g->nodes = more;
	more[g->n] = (struct node){ .name = strdup(name), .fd = -1, .column = -1 };
	return more[g->n].name ? &more[g->n++] : NULL;
}

static void node_clear(struct node *x)
{
	trace_close(x->trace);
	trace_block_free(&x->block);
	if (x->fd >= 0)
		close(x->fd);
	free(x->values);
	x->trace = NULL;
	x->values = NULL;
	x->fd = -1;
	x->size = x->read = 0;
	x->is_new = false;
}

static int node_add(struct node *x, const char *text, struct err *e)
{
	size_t len = strlen(text), padding = 0;
	uint8_t bytes[FEED_LINE];
	int n;

	while (padding < 2 && len > padding && text[len - 1 - padding] == '=')
		padding++;
	n = len % 4 || len > FEED_LINE ? -1 : EVP_DecodeBlock(bytes, (const unsigned char *) text, len);
	if (n < (int) padding || x->fd < 0 || file_write(x->fd, bytes, n - padding))
		return err_set(e, "%s: what it sends is damaged", x->name);
	x->size += n - padding;
	return 0;
}

/* The last block; those before it are not read any more. */
static int node_tick(struct node *x, struct err *e)
{
	struct trace_block *b = &x->block;
	unsigned columns = x->trace ? x->trace->head.columns : 0;

	if (!x->trace) {
		const struct trace_head *h;
		struct buf subject = {0};

		if (!(x->trace = trace_open_fd(dup(x->fd), x->name, e)))
			return -1;
		x->head = x->size;
		h = &x->trace->head;
		/* What a trace is of: a topiary-monitor that begins anew may count other events. */
		buf_printf(&subject, "%u %u", h->pus, h->columns);
		for (unsigned i = 0; i < h->nevents; i++)
			buf_printf(&subject, " %s", h->events[i].name);
		if (!x->subject && !subject.failed) {
			x->subject = subject.data;
			return 0;
		}
		if (subject.failed)
			err_set(e, "out of memory");
		else if (strcmp(subject.data, x->subject))
			err_set(e, "%s: its topiary-monitor counts other events than before", x->name);
		buf_free(&subject);
		return *e->text ? -1 : 0;
	}
	if (trace_follow(x->trace, e))
		return -1;
	if (x->read == x->trace->nblocks)
		return 0;
	x->read = x->trace->nblocks;
	if (trace_read(x->trace, x->read - 1, b, e))
		return -1;
	if (!x->values && !(x->values = calloc(columns, sizeof(*x->values))))
		return err_set(e, "out of memory");
	for (unsigned c = 0; c < columns; c++)
		x->values[c] = b->values[(size_t) c * b->n + b->n - 1];
	x->span = (b->times[b->n - 1] - (b->n > 1 ? b->times[b->n - 2] : b->begin)) * 1e-9;
	x->arrived = clock_now();
	x->is_new = true;
	fallocate(x->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, x->head, x->size - x->head);
	return 0;
}

/* NAME KIND [TEXT]; anything else is of a site's prolog, and nobody's. */
static void line_read(struct gather *g, char *line)
{
	char *rest = line, *name = strsep(&rest, " "), *kind = strsep(&rest, " ");
	struct node *x;

	if (kind && is_printable(line) && (x = node_find(g, name)) && x->state != FAILED) {
		const char *text = rest ? printable(rest) : "";
		struct err e = {""};
		int rc = 0;

		if (!strcmp(kind, "begin")) {
			node_clear(x);
			x->state = BEGUN;
			if ((x->fd = memfd_create(x->name, MFD_CLOEXEC)) < 0)
				rc = err_set(&e, "memfd_create: %s", strerror(errno));
		} else if (!strcmp(kind, "data") || !strcmp(kind, "tick"))
			rc = node_add(x, text, &e) || (*kind == 't' && node_tick(x, &e)) ? -1 : 0;
		else if (!strcmp(kind, "end"))
			x->state = ENDED;
		else if (!strcmp(kind, "none"))
			x->state = NONE;
		else
			rc = err_set(&e, "%s", text);
		if (rc) {
			x->state = FAILED;
			snprintf(g->why, sizeof(g->why), "%s: %s", x->name, e.text);
			if (g->writer)
				log_warning("%s", g->why);
		}
	}
}

static void error_read(struct gather *g, char *line)
{
	if (g->said.len < SAID_MAX)
		buf_printf(&g->said, "%s\n", printable(line));
}

static void lines_read(struct gather *g, struct lines *l, void (*each)(struct gather *g, char *line))
{
	char *room, *end;
	size_t done = 0;
	ssize_t n;

	if (l->fd < 0 || !(room = buf_reserve(&l->text, 65536)))
		return;
	if ((n = read(l->fd, room, 65536)) < 0)
		return;
	if (!n)
		return lines_close(l);
	l->text.len += n;
	while ((end = memchr(l->text.data + done, '\n', l->text.len - done))) {
		*end = '\0';
		each(g, l->text.data + done);
		done = end + 1 - l->text.data;
	}
	l->text.len -= done;
	memmove(l->text.data, l->text.data + done, l->text.len);
}

/* Its step ends with it; what it says meanwhile is kept. */
static void srun_end(struct gather *g)
{
	double until = clock_now() + KILL_SECONDS;
	char unread[4096];

	if (g->srun <= 0)
		return;
	if (g->out.fd >= 0)
		kill(g->srun, SIGTERM);
	while (!waitpid(g->srun, NULL, WNOHANG)) {
		if (clock_now() > until)
			kill(g->srun, SIGKILL);
		while (g->out.fd >= 0 && read(g->out.fd, unread, sizeof(unread)) > 0)
			;
		lines_read(g, &g->errors, error_read);
		nanosleep(&(struct timespec){ 0, 1000000 * POLL_MS }, NULL);
	}
	lines_read(g, &g->errors, error_read);
	g->srun = 0;
}

/* --- the trace of all */

ORDER(by_name, struct node, strverscmp(x->name, y->name))

static int begin(struct gather *g, struct err *e)
{
	const struct trace_head **heads = calloc(g->n, sizeof(*heads));
	const char **names = calloc(g->n, sizeof(*names));
	unsigned n = 0, failed = 0;
	int rc = heads && names ? 0 : err_set(e, "out of memory");

	qsort(g->nodes, g->n, sizeof(*g->nodes), by_name);
	for (unsigned i = 0; i < g->n; i++)
		failed += g->nodes[i].state == FAILED;
	if (failed)
		log_warning("%u of %u are not shown: %s", failed, g->how->expected, g->why);
	if (g->n < g->how->expected)
		log_warning("%u of %u are not shown: they did not answer", g->how->expected - g->n, g->how->expected);
	for (unsigned i = 0; rc == 0 && i < g->n; i++)
		if (g->nodes[i].trace) {
			struct node *x = &g->nodes[i];
			char *name;

			if (*g->how->of && !x->shown && asprintf(&name, "%s%s", g->how->of, x->name) > 0)
				x->shown = name;
			heads[n] = &x->trace->head;
			names[n] = x->shown ? x->shown : x->name;
			x->column = n++;
		}
	if (rc == 0 && (rc = trace_join_make(&g->join, g->how->type, g->how->name, heads, names, n, e)) == 0) {
		g->join.head.start = clock_nanoseconds(CLOCK_REALTIME);
		g->began = g->last = clock_now();
		g->writer = trace_writer_new(g->how->fd, g->how->name, &g->join.head, e);
		g->values = calloc(g->join.head.columns, sizeof(*g->values));
		rc = g->writer && g->values ? 0 : g->writer ? err_set(e, "out of memory") : -1;
	}
	free(heads);
	free(names);
	return rc;
}

/* Is there anything to show of it? A node that was lost is absent, and said once. */
static bool node_holds(struct node *x, double now)
{
	bool was_silent = x->is_silent;

	if (x->column < 0 || !x->values)
		return false;
	x->is_silent = now - x->arrived > fmax(SILENT_SECONDS, 2.5 * x->span);
	if (x->is_silent && !was_silent && x->state == BEGUN)
		log_warning("%s: nothing for %.0f s", x->name, now - x->arrived);
	else if (!x->is_silent && was_silent)
		log_info("%s: answers again", x->name);
	return !x->is_silent;
}

static int tick(struct gather *g, double now, struct err *e)
{
	for (unsigned c = 0; c < g->join.head.columns; c++)
		g->values[c] = TRACE_ABSENT;
	for (unsigned i = 0; i < g->n; i++)
		if (node_holds(&g->nodes[i], now)) {
			/* What a node counted in its interval as what it would have been in ours. */
			const struct node *x = &g->nodes[i];
			const struct trace_head *h = &x->trace->head;
			const unsigned *column = g->join.column[x->column];

			for (unsigned k = 0; k < h->nevents; k++) {
				const struct trace_event *event = &h->events[k];
				double by = event->kind == TRACE_COUNTER ? (now - g->last) / x->span : 1;

				for (unsigned c = event->column; c < event->column + h->levels[event->level].n; c++)
					if (column[c] != TRACE_JOIN_NOWHERE && x->values[c] <= TRACE_VALUE_MAX)
						g->values[column[c]] = fmin(x->values[c] * by, TRACE_VALUE_MAX / 2);
			}
			g->nodes[i].is_new = false;
		}
	g->last = now;
	g->first_new = 0;
	return trace_writer_tick(g->writer, (now - g->began) * 1e9, g->values, e) ||
	       trace_writer_flush(g->writer, e) ? -1 : 0;
}

/* As soon as all have sent a new tick, or the first has waited. */
static bool is_due(struct gather *g, double now)
{
	bool all_new = true, any = false;

	for (unsigned i = 0; i < g->n; i++) {
		struct node *x = &g->nodes[i];

		if (x->column < 0)
			continue;
		any |= x->is_new;
		all_new &= x->is_new || x->is_silent || x->state != BEGUN;
	}
	if (any && !g->first_new)
		g->first_new = now;
	return any && now - g->last > TICK_SECONDS && (all_new || now - g->first_new > WAIT_SECONDS);
}

/* --- */

static bool have_all_ended(const struct gather *g)
{
	unsigned over = 0;

	for (unsigned i = 0; i < g->n; i++)
		over += g->nodes[i].state != BEGUN;
	return over == g->how->expected;
}

/* GATHER_ENDED with nothing written: no node has anything to show. */
static int gather_loop(struct gather *g, enum top_gather_end *how, struct err *e)
{
	struct pollfd p[] = { { .fd = g->out.fd, .events = POLLIN }, { .fd = g->errors.fd, .events = POLLIN } };

	g->asked = clock_now();
	while (g->out.fd >= 0 && !have_all_ended(g)) {
		unsigned answered = 0;
		bool may_begin;
		double now;

		p[0].fd = g->out.fd;
		p[1].fd = g->errors.fd;
		poll(p, 2, POLL_MS);
		lines_read(g, &g->out, line_read);
		lines_read(g, &g->errors, error_read);
		now = clock_now();
		for (unsigned i = 0; i < g->n; i++) {
			if (g->nodes[i].trace && !g->first_begun)
				g->first_begun = now;
			answered += g->nodes[i].trace || g->nodes[i].state != BEGUN;
		}
		/* All have answered, or had the time to. */
		may_begin = g->first_begun && (answered == g->how->expected || now - g->first_begun > BEGIN_SECONDS);
		if (g->writer ? is_due(g, now) && tick(g, now, e) : may_begin && begin(g, e))
			return -1;
		*how = GATHER_STOPPED;
		if (is_stopped)
			return 0;
		if (now - g->asked > ASK_SECONDS) {
			if (!g->how->goes_on(g->how->user))
				return 0;
			g->asked = clock_now();
		}
		*how = GATHER_FULL;
		if (lseek(g->how->fd, 0, SEEK_CUR) > BYTES_MAX)
			return 0;
	}
	*how = have_all_ended(g) ? GATHER_ENDED : GATHER_LOST;
	return 0;
}

/* Of srun's words the first error. */
static int nothing(const struct gather *g, struct err *e)
{
	const char *said;

	if (*g->why)
		return err_set(e, "%s", g->why);
	if (!g->said.len)
		return err_set(e, "%s: none of its steps is recorded", g->how->name);
	said = strstr(g->said.data, "error: ") ? strstr(g->said.data, "error: ") + 7 : g->said.data;
	return err_set(e, "%s: srun: %.*s", g->how->name, (int) strcspn(said, "\n"), said);
}

int top_gather_run(const struct top_gather_request *r, enum top_gather_end *how, struct err *e)
{
	struct gather g = { .how = r, .out.fd = -1, .errors.fd = -1 };
	struct sigaction stop = { .sa_handler = on_stop };
	struct err unheard;
	int rc;

	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	rc = srun_start(&g, e) || gather_loop(&g, how, e) ? -1 : 0;
	srun_end(&g);
	if (rc == 0 && *how == GATHER_LOST)
		nothing(&g, e);
	if (rc == 0 && !g.writer)
		rc = is_stopped ? 0 : nothing(&g, e);
	if (trace_writer_close(g.writer, rc ? &unheard : e) && rc == 0)
		rc = -1;
	lines_close(&g.out);
	lines_close(&g.errors);
	for (unsigned i = 0; i < g.n; i++) {
		node_clear(&g.nodes[i]);
		free(g.nodes[i].subject);
		free(g.nodes[i].shown);
		free(g.nodes[i].name);
	}
	free(g.nodes);
	free(g.values);
	trace_join_free(&g.join);
	buf_free(&g.said);
	return rc;
}
