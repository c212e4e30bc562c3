/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "player.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/log.h"
#include "cmd.h"
#include "record.h"
#include "top_job.h"
#include "trace/view.h"
#include "trace/writer.h"

#define POLL_US 50000u

struct args {
	struct record_request record;	/* its command may be a trace, a job or a node */
	struct player_request show;
	const char *feed;		/* top_job.h */
};

/* What is shown while a child records it. */
struct recording {
	int (*run)(void *what, const char *path, struct err *e);	/* in the child: its exit status, or -1 */
	void *what;
	bool ends_with_us;		/* a command does not */
	bool is_job;			/* with srun below it: a terminal's signals are for us, who end it */
};

static bool is_trace(const struct record_request *r)
{
	return r->command.n && !r->pid && trace_is_file(*r->command.list);
}

static void check_together(void *args, struct argp_state *state)
{
	const struct args *a = args;

	if (!a->feed)
		record_check(&a->record, state);
	if (a->record.command.n > 1 && is_trace(&a->record))
		argp_error(state, "expected one TRACE: options come before it");
}

static const struct cmd_option options[] = {
	{ "metric", 'm', "NAME[,NAME...]", CMD_TEXT(show.metric),
	  "Show this event or formula, and the values of up to 3 others beside (default: the first event)" },
	{ "level", 'l', "TYPE", CMD_TEXT(show.level),
	  "Show the tree down to this level (default: PU; L3Cache if lines are printed)" },
	{ "formulas", 'f', "FILE", CMD_TEXT(show.formulas),
	  "Metrics to offer too, each 'NAME {LEVEL, FORMULA}', instead of those that the trace has" },
	{ "accumulate", 'a', NULL, CMD_CONSTANT(show.mode, TRACE_ACCUMULATED),
	  "Show counters since the start (default: per second)" },
	{ "hz", 'r', "N", CMD_NUMBER(record.hz, 1, RECORD_HZ_MAX), "Read the counters so often a second (default: 1)" },
	{ "set", 's', "SET", CMD_TEXT(record.set), "What to count, as in topiary record (default: sw)" },
	{ "output", 'o', "FILE", CMD_TEXT(record.output), "Keep the trace in this file (default: it is not kept)" },
	{ "pid", 'p', "PID", CMD_NUMBER(record.pid, 1, INT32_MAX), "Show this process, until it ends" },
	{ "feed", 0, "STEPS", CMD_TEXT(feed), NULL },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "\nJOB[.STEP]\nNODE\nTRACE\nCOMMAND [ARGUMENT...]\n--pid=PID",
	"Show on the hardware tree what all processes of this node do on each PU; a job of Slurm on all its nodes, or "
	"your jobs on a node, recorded by --topo-monitor; a command, which is started, or a process; or the end of a "
	"trace and what is appended to it. On a terminal the last line has the keys; otherwise each tick is printed.",
	CMD_COMMAND(record.command), NULL, check_together,
};

/* --- a trace as lines --- */

static int print_json(const struct player *p, struct err *e)
{
	const struct trace_tree *t = &p->tree;
	json_t *rows = json_array(), *metrics = t->beside ? json_array() : NULL, *line;
	int rc;

	for (const struct trace_tree *b = t->beside; b; b = b->beside)
		json_array_append_new(metrics, json_pack("{s:s, s:s}", "metric", b->metric, "unit", b->unit.text));
	for (const struct trace_tree_row *r = t->rows; r < t->rows + t->nrows; r++) {
		const struct trace_level *l = t->levels[r->level].level;
		json_t *beside = t->beside ? json_array() : NULL;

		for (const struct trace_tree *b = t->beside; b; b = b->beside)
			json_array_append_new(beside, trace_json_value(trace_tree_value_of(b, t, r)));
		json_array_append_new(rows, json_pack("{s:s, s:I, s:s*, s:o, s:o*}", "level", l->type, "object",
						      (json_int_t) l->objects[r->object].index, "name",
						      trace_head_name(l, r->object), "value",
						      trace_json_value(trace_tree_value(t, r)), "beside", beside));
	}
	line = json_pack("{s:s, s:f, s:s*, s:s, s:s, s:o*, s:o}", "node", t->head->node, "time", player_end(p), "phase",
			 player_phase(p), "metric", t->metric, "unit", t->unit.text, "beside", metrics, "values", rows);
	rc = !line || json_dumpf(line, stdout, JSON_COMPACT) || putchar('\n') == EOF || fflush(stdout) ?
		err_set(e, "cannot write to standard output") : 0;
	json_decref(line);
	return rc;
}

/* The tick shown, all that follow, and those that are appended until the trace is complete. */
static int print_ticks(struct player *p, bool json, struct err *e)
{
	int more = !player_is_empty(p);
	char when[PLAYER_WHEN];

	for (;;) {
		bool was_empty;

		for (; more > 0; more = player_step(p, 1, e)) {
			if (json ? print_json(p, e) : trace_tree_print(&p->tree, player_when(p, when), e))
				return -1;
			if (!json && (putchar('\n') == EOF || fflush(stdout)))
				return err_set(e, "cannot write to standard output");
		}
		if (more < 0 || (p->is_complete && !(p->stays && !player_recorder_has_ended(p->recorder))))
			return more;
		usleep(POLL_US);
		was_empty = player_is_empty(p);
		if (player_follow(p, e))
			return -1;
		more = was_empty ? !player_is_empty(p) : player_step(p, 1, e);
	}
}

int player_show(struct trace *t, const struct player_request *how, pid_t recorder, struct err *e)
{
	bool on_screen = !how->json && player_screen_is_possible();
	const char *level = how->level ? how->level : on_screen ? "PU" : trace_tree_level_shown(&t->head);
	struct trace_tree_request wanted = { how->metric, level, how->mode, {0} };
	struct player p = {0};
	int rc = -1;

	if (trace_tree_formulas(how->formulas, &t->head, &wanted.formulas, e) == 0 &&
	    player_open(&p, t, &wanted, recorder, e) == 0 && (!how->from_start || player_first(&p, e) == 0)) {
		p.phases = how->phases;
		p.stays = how->stays;
		rc = on_screen ? player_screen_run(&p, how->speed, e) : print_ticks(&p, how->json, e);
	}
	player_close(&p);
	formula_list_free(&wanted.formulas);
	return rc;
}

/* --- a process that is recorded --- */

/* -1 on error. */
static pid_t recorder_start(const struct recording *r, const char *path, int output, struct err *e)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return err_set(e, "fork: %s", strerror(errno));
	if (pid)
		return pid;
	if (r->ends_with_us)
		prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (r->is_job)
		setpgid(0, 0);
	dup2(output < 0 ? STDERR_FILENO : output, STDOUT_FILENO);
	if (output >= 0) {
		dup2(output, STDERR_FILENO);
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
	}
	*e = (struct err){""};
	status = r->run(r->what, path, e);
	if (*e->text) {
		log_error("top: %s", e->text);
		status = EXIT_FAILURE;
	}
	_exit(status);
}

/*
 * The file that the recorder writes is unlinked unless it is the output. While the screen is shown a command's output
 * goes into a file, and is shown after it; elsewhere its output is standard error, its input ours.
 */
static int show_recording(const struct recording *r, const struct player_request *show, const char *output, int *status,
			  struct err *e)
{
	char own[] = "/tmp/topiary.XXXXXX", bytes[4096];
	const char *path = output ? output : own;
	int fd = output ? trace_file_create(output, e) : mkostemp(own, O_CLOEXEC), told, rc = 0;
	struct trace *t = NULL;
	pid_t recorder;
	struct err why;
	bool ended;
	ssize_t n;
	FILE *f;

	if (fd < 0)
		return output ? -1 : err_set(e, "%s: %s", own, strerror(errno));
	if (!output)
		log_set_level("warning");
	f = !show->json && player_screen_is_possible() ? tmpfile() : NULL;
	told = f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 0) : -1;
	recorder = recorder_start(r, path, told, e);
	if (f)
		fclose(f);
	/* Until it has begun the trace; NULL: it ended without one. */
	for (ended = recorder <= 0; !t && !ended; usleep(t || ended ? 0 : POLL_US)) {
		ended = player_recorder_has_ended(recorder);
		t = trace_open_fd(dup(fd), path, &why);
	}
	if (!output)
		unlink(path);
	else if (!t)
		trace_file_discard(path);
	close(fd);
	if (recorder < 0)
		return -1;
	if (!r->is_job)
		signal(SIGINT, SIG_IGN);
	if (t)
		rc = player_show(t, show, recorder, e);
	trace_close(t);
	/* A process that was only watched goes on. */
	if (r->ends_with_us)
		kill(recorder, SIGTERM);
	*status = record_child_status(recorder);
	if (r->is_job && *status == 128 + SIGTERM)
		*status = EXIT_SUCCESS;
	for (off_t at = 0; told >= 0 && (n = pread(told, bytes, sizeof(bytes), at)) > 0; at += n)
		if (write(STDOUT_FILENO, bytes, n) != n)
			break;
	if (told >= 0)
		close(told);
	return rc;
}

/* --- a command, a process, or all of this node */

static int process_record(void *what, const char *path, struct err *e)
{
	struct record_request *r = what;
	int status = EXIT_SUCCESS;

	r->has_no_phases = !r->output;
	r->output = path;
	r->is_live = true;
	return record_run(r, &status, e) ? -1 : status;
}

/* --- a job, or a node's jobs */

static int job_record(void *what, const char *path, struct err *e)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? err_set(e, "%s: %s", path, strerror(errno)) : top_job_record(what, fd, e);
}

int cmd_top(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { RECORD_DEFAULTS, { .speed = INFINITY }, NULL };
	struct recording process = { .run = process_record, .what = &a.record };
	char program[PATH_MAX];
	const char *word;
	struct trace *t;
	int rc;

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	if (a.feed)
		return top_feed_run(c->settings.run_dir, a.feed, e);
	a.show.json = c->json;
	word = a.record.command.n ? *a.record.command.list : NULL;
	if (is_trace(&a.record)) {
		t = trace_open(word, e);
		rc = t ? player_show(t, &a.show, 0, e) : -1;
		trace_close(t);
		return rc;
	}
	/* A file or a command comes before a job or a node of that name. */
	if (!word || child_program(word, program)) {
		process.ends_with_us = !word;
		return show_recording(&process, &a.show, a.record.output, &c->status, e);
	}
	if (a.record.command.n == 1 && (top_job_is_name(word) || top_job_is_node(word))) {
		/* Step after step, until the user or the job ends it. */
		struct top_job j = { .cmd = c, .what = *a.record.command.list, .is_node = !top_job_is_name(word) };
		const struct recording r = { job_record, &j, .ends_with_us = true, .is_job = true };

		if (a.record.output || a.record.hz != 1 || strcasecmp(a.record.set, "sw"))
			return err_set(e, "--output, --hz and --set are of what is recorded here: a job has "
				       "--topo-monitor");
		a.show.stays = true;
		do {
			if ((rc = top_job_find(&j, e)) == 0)
				rc = show_recording(&r, &a.show, NULL, &c->status, e);
			j.is_again = true;
		} while (rc == 0 && c->status == TOP_JOB_AGAIN);
		top_job_free(&j);
		return rc;
	}
	log_error("top: %s: %s", word, !access(word, F_OK) ? "not a Topiary trace, nor a command" : strchr(word, '/') ?
		  strerror(ENOENT) : "no such file, command, job or node");
	c->status = 127;
	return 0;
}
