/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "top.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd.h"
#include "record.h"
#include "screen.h"
#include "trace/json.h"
#include "trace_show.h"

#define POLL_US 50000u

struct args {
	struct record_request record;	/* its command may be a trace */
	struct top_request show;
};

static bool is_trace(const struct record_request *r)
{
	return r->command.n && !r->pid && trace_is_file(*r->command.list);
}

/* Is there a file to run, as execvp(3) looks for it? */
static bool is_command(const char *name)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];

	if (strchr(name, '/'))
		return !access(name, F_OK);
	if (!path)
		return true;
	for (size_t n; *path; path += n + (path[n] == ':')) {
		n = strcspn(path, ":");
		snprintf(file, sizeof(file), "%.*s%s%s", (int) n, path, n ? "/" : "", name);
		if (!access(file, X_OK))
			return true;
	}
	return false;
}

static void check_together(void *args, struct argp_state *state)
{
	const struct args *a = args;

	record_check(&a->record, state);
	if (a->record.command.n > 1 && is_trace(&a->record))
		argp_error(state, "expected one TRACE: options come before it");
}

static const struct cmd_option options[] = {
	{ "metric", 'm', "NAME", CMD_TEXT(show.metric), "Show this event or formula (default: the first event)" },
	{ "level", 'l', "TYPE", CMD_TEXT(show.level),
	  "Show the tree down to this level (default: PU; L3Cache if lines are printed)" },
	{ "formulas", 'f', "FILE", CMD_TEXT(show.formulas),
	  "Metrics to offer too, each 'NAME {LEVEL, FORMULA}', instead of those that the trace has" },
	{ "hz", 'r', "N", CMD_NUMBER(record.hz, 1, RECORD_HZ_MAX), "Read the counters so often a second (default: 1)" },
	{ "set", 's', "SET", CMD_TEXT(record.set), "What to count, as in topiary record (default: sw)" },
	{ "output", 'o', "FILE", CMD_TEXT(record.output), "Keep the trace in this file (default: it is not kept)" },
	{ "pid", 'p', "PID", CMD_NUMBER(record.pid, 1, INT32_MAX), "Show this process, until it ends" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "TRACE\nCOMMAND [ARGUMENT...]\n--pid=PID",
	"Show on the hardware tree what a command, which is started, or a process does on each PU, or the end of a "
	"trace and what is appended to it. On a terminal the last line has the keys; otherwise each tick is printed.",
	CMD_COMMAND(record.command), NULL, check_together,
};

/* --- a trace as lines --- */

static json_t *row_json(const struct trace_tree *t, const struct trace_tree_row *r)
{
	const struct trace_level *l = t->levels[r->level].level;
	double x = trace_tree_value(t, r);

	return json_pack("{s:s, s:I, s:o}", "level", l->type, "object", (json_int_t) l->objects[r->object].index,
			 "value", trace_json_value(x));
}

static int print_json(const struct player *p, struct err *e)
{
	const struct trace_tree *t = &p->tree;
	json_t *rows = json_array(), *line;
	int rc;

	for (unsigned i = 0; i < t->nrows; i++)
		json_array_append_new(rows, row_json(t, &t->rows[i]));
	line = json_pack("{s:s, s:f, s:s*, s:s, s:s, s:o}", "node", t->head->node, "time", player_end(p), "phase",
			 player_phase(p), "metric", t->metric, "unit", t->unit.text, "values", rows);
	rc = !line || json_dumpf(line, stdout, JSON_COMPACT) || putchar('\n') == EOF || fflush(stdout) ?
		err_set(e, "cannot write to standard output") : 0;
	json_decref(line);
	return rc;
}

static int print_tick(const struct player *p, bool json, struct err *e)
{
	char when[PLAYER_WHEN];

	if (json)
		return print_json(p, e);
	if (trace_show_tree(&p->tree, player_when(p, when), e))
		return -1;
	putchar('\n');
	return fflush(stdout) ? err_set(e, "cannot write to standard output") : 0;
}

/* The tick shown, all that follow, and those that are appended until the trace is complete. */
static int print_ticks(struct player *p, bool json, struct err *e)
{
	int more = !player_is_empty(p);

	for (;;) {
		bool was_empty;

		for (; more > 0; more = player_step(p, 1, e))
			if (print_tick(p, json, e))
				return -1;
		if (more < 0 || p->is_complete)
			return more;
		usleep(POLL_US);
		was_empty = player_is_empty(p);
		if (player_follow(p, e))
			return -1;
		more = was_empty ? !player_is_empty(p) : player_step(p, 1, e);
	}
}

int top_show(struct trace *t, const struct top_request *how, pid_t recorder, struct err *e)
{
	bool on_screen = !how->json && screen_is_possible();
	const char *level = how->level ? how->level : on_screen ? "PU" : trace_show_level(&t->head);
	struct trace_tree_request wanted = { how->metric, level, TRACE_RATE, {0} };
	struct player p = {0};
	int rc = -1;

	if (trace_tree_formulas(how->formulas, &t->head, &wanted.formulas, e) == 0 &&
	    player_open(&p, t, &wanted, recorder, e) == 0 && (!how->from_start || player_first(&p, e) == 0)) {
		p.phases = how->phases;
		rc = on_screen ? screen_run(&p, how->speed, e) : print_ticks(&p, how->json, e);
	}
	player_close(&p);
	formula_list_free(&wanted.formulas);
	return rc;
}

static int show_file(const char *path, const struct top_request *how, struct err *e)
{
	struct trace *t = trace_open(path, e);
	int rc = t ? top_show(t, how, 0, e) : -1;

	trace_close(t);
	return rc;
}

/* --- a process that is recorded --- */

/* Where the command's output goes while the screen is shown; -1: its output is standard error, its input ours. */
static int output_file(void)
{
	FILE *f = tmpfile();
	int fd = f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 0) : -1;

	if (f)
		fclose(f);
	return fd;
}

static void output_copy(int fd)
{
	char bytes[4096];
	ssize_t n;

	for (off_t at = 0; fd >= 0 && (n = pread(fd, bytes, sizeof(bytes), at)) > 0; at += n)
		if (write(STDOUT_FILENO, bytes, n) != n)
			break;
}

/* A child that does what `topiary record` does. -1 on error. */
static pid_t recorder_start(const struct record_request *request, int output, struct err *e)
{
	int status = EXIT_SUCCESS;
	pid_t pid = fork();

	if (pid < 0)
		return err_set(e, "fork: %s", strerror(errno));
	if (pid)
		return pid;
	if (request->pid)
		prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(output < 0 ? STDERR_FILENO : output, STDOUT_FILENO);
	if (output >= 0) {
		dup2(output, STDERR_FILENO);
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
	}
	if (record_run(request, &status, e)) {
		log_error("top: %s", e->text);
		status = EXIT_FAILURE;
	}
	_exit(status);
}

/* As a shell has it. A process that was only watched goes on. */
static int recorder_end(pid_t pid, bool is_watched)
{
	int status;

	if (is_watched)
		kill(pid, SIGTERM);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILURE;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* As soon as the recorder has written its head. NULL: it has ended, and said why there is none. */
static struct trace *trace_wait(int fd, const char *path, pid_t recorder)
{
	for (;;) {
		bool is_last = player_recorder_has_ended(recorder);
		struct trace *t;
		struct err e;

		if ((t = trace_open_fd(dup(fd), path, &e)) || is_last)
			return t;
		usleep(POLL_US);
	}
}

static int show_recorded(const struct args *a, int fd, const char *path, int *status, struct err *e)
{
	int output = !a->show.json && screen_is_possible() ? output_file() : -1, rc = 0;
	struct record_request request = a->record;
	struct trace *t = NULL;
	pid_t recorder;

	request.output = path;
	request.is_live = true;
	request.has_no_phases = !a->record.output;
	if ((recorder = recorder_start(&request, output, e)) > 0)
		t = trace_wait(fd, path, recorder);
	if (!a->record.output)
		unlink(path);
	if (recorder < 0)
		return -1;
	signal(SIGINT, SIG_IGN);
	if (t)
		rc = top_show(t, &a->show, recorder, e);
	trace_close(t);
	*status = recorder_end(recorder, a->record.pid);
	output_copy(output);
	if (output >= 0)
		close(output);
	return rc;
}

static int record_and_show(const struct args *a, int *status, struct err *e)
{
	char path[] = "/tmp/topiary.XXXXXX";
	const char *output = a->record.output;
	int fd = output ? open(output, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : mkostemp(path, O_CLOEXEC), rc;

	if (fd < 0)
		return err_set(e, "%s: %s", output ? output : path, strerror(errno));
	if (!output)
		log_set_level("warning");
	rc = show_recorded(a, fd, output ? output : path, status, e);
	close(fd);
	return rc;
}

int cmd_top(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { RECORD_DEFAULTS, { .speed = INFINITY } };

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	a.show.json = c->json;
	if (a.record.command.n && !is_command(*a.record.command.list) && !is_trace(&a.record)) {
		log_error("top: %s: %s", *a.record.command.list, access(*a.record.command.list, F_OK) ?
			  strerror(errno) : "not a Topiary trace, nor a command");
		c->status = 127;
		return 0;
	}
	return is_trace(&a.record) ? show_file(*a.record.command.list, &a.show, e) : record_and_show(&a, &c->status, e);
}
