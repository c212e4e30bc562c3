/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cmd.h"
#include "monitor/events.h"
#include "monitor/recorder.h"
#include "trace/phases.h"

#define SECOND UINT64_C(1000000000)

struct args {
	struct record_request record;
};

void record_check(const struct record_request *r, struct argp_state *state)
{
	if (r->command.n && r->pid)
		argp_error(state, "expected a COMMAND, or --pid");
	if (!monitor_sets_exist(r->set))
		argp_error(state, "--set=%s: expected %s", r->set, monitor_set_names);
}

static void check_together(void *args, struct argp_state *state)
{
	const struct record_request *r = &((struct args *) args)->record;

	if (!r->command.n && !r->pid)
		argp_error(state, "expected a COMMAND, or --pid");
	record_check(r, state);
}

static const struct cmd_option options[] = {
	{ "hz", 'r', "N", CMD_NUMBER(record.hz, 1, RECORD_HZ_MAX), "Read the counters N times a second (default: 1)" },
	{ "set", 's', "SET", CMD_TEXT(record.set),
	  "What to count beside run time, context switches, migrations, page faults, memory, disks and network (sw, "
	  "the default): cpu (cycles, instructions, cache misses, memory traffic), power, net (each network device), "
	  "gpu; several are joined by +" },
	{ "output", 'o', "FILE", CMD_TEXT(record.output),
	  "Write the trace here (default: topiary.JOB.STEP.RANK.trace in a Slurm step, else topiary.PID.trace)" },
	{ "pid", 'p', "PID", CMD_NUMBER(record.pid, 1, INT32_MAX), "Record this process, until it ends or SIGINT" },
	{ "live", 0, NULL, CMD_FLAG(record.is_live),
	  "Write each tick at once instead of 60 together, for topiary top; the trace becomes several times larger" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "COMMAND [ARGUMENT...]\n--pid=PID",
	"Run a command, or watch a process, and record what it does on each PU into a trace for topiary trace. The "
	"command runs and ends as if it were not recorded.",
	CMD_COMMAND(record.command), NULL, check_together,
};

/* --- the command --- */

static const char *default_output(pid_t pid)
{
	static char name[128];
	const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID"), *rank = getenv("SLURM_PROCID");

	if (job && step && rank)
		snprintf(name, sizeof(name), "topiary.%.20s.%.20s.%.20s.trace", job, step, rank);
	else
		snprintf(name, sizeof(name), "topiary.%d.trace", (int) pid);
	return name;
}

/* The file of the phases that the command marks: beside the trace, whatever directory it changes to. NULL: none. */
static char *phases_path(const struct record_request *r, pid_t pid)
{
	char *file = r->has_no_phases ? NULL : trace_phases_path(r->output ? r->output : default_output(pid));
	char *folder, *path = NULL;

	if (!file || *file == '/')
		return file;
	if ((folder = getcwd(NULL, 0)) && asprintf(&path, "%s/%s", folder, file) < 0)
		path = NULL;
	free(folder);
	free(file);
	return path;
}

/* A child before its exec(3), with the caller's limits and signals. */
struct child {
	pid_t pid;
	int go;			/* closed: it calls exec */
	int failed;		/* readable: exec failed; closed: it did not */
};

static bool read_byte(int fd)
{
	ssize_t n;
	char byte;

	while ((n = read(fd, &byte, 1)) < 0 && errno == EINTR)
		;
	return n > 0;
}

static int child_main(const struct record_request *r, int go, int failed)
{
	char **command = r->command.list, *phases = phases_path(r, getpid());
	int error;

	read_byte(go);
	if (phases)
		setenv("TOPIARY_PHASES", phases, 1);
	else
		unsetenv("TOPIARY_PHASES");
	execvp(*command, command);
	error = errno;
	log_error("%s: %s", *command, strerror(error));
	file_write(failed, "", 1);
	return error == ENOENT ? 127 : 126;
}

static int child_start(struct child *c, const struct record_request *r, struct err *e)
{
	int go[2], failed[2];

	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC) || (c->pid = fork()) < 0)
		return err_set(e, "%s: %s", *r->command.list, strerror(errno));
	close(go[c->pid ? 0 : 1]);
	close(failed[c->pid ? 1 : 0]);
	if (!c->pid)
		_exit(child_main(r, go[0], failed[1]));
	c->go = go[1];
	c->failed = failed[0];
	return 0;
}

/* Let it call exec: false if that failed, which it has reported. Only a command that runs replaces earlier phases. */
static bool child_go(struct child *c, const struct record_request *r)
{
	char *phases = phases_path(r, c->pid), *earlier = NULL;
	bool is_aside = phases && asprintf(&earlier, "%s~", phases) > 0 && rename(phases, earlier) == 0, has_failed;

	close(c->go);
	has_failed = read_byte(c->failed);
	close(c->failed);
	if (is_aside && has_failed)
		rename(earlier, phases);
	else if (is_aside)
		unlink(earlier);
	free(earlier);
	free(phases);
	return !has_failed;
}

/* As a shell has it. */
static int child_status(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- until it ends --- */

/* The process that is recorded: our child, or one that runs already. */
struct target {
	pid_t pid;
	bool is_child;
	int signals;		/* a signalfd, also of SIGCHLD */
};

/* Not ended, nor waiting for its parent to take note of its end (proc(5), PID/stat). */
static bool is_running(pid_t pid)
{
	char path[64], line[512] = "", *name_end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
	if (!(f = fopen(path, "re")))
		return false;
	name_end = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	return name_end && strlen(name_end) > 2 && !strchr("ZX", name_end[2]);
}

/* Wait until a time. False when the process ended, or when a signal ends the watch of one that is not our child. */
static bool wait_for_tick(const struct target *t, uint64_t until)
{
	struct pollfd wait = { .fd = t->signals, .events = POLLIN };
	struct signalfd_siginfo info;

	for (uint64_t at; (at = clock_nanoseconds(CLOCK_MONOTONIC)) < until;) {
		struct timespec left = { (until - at) / SECOND, (until - at) % SECOND };

		if (ppoll(&wait, 1, &left, NULL) < 0 && errno != EINTR)
			return false;
		if (!wait.revents || read(t->signals, &info, sizeof(info)) != sizeof(info))
			continue;
		if (!t->is_child || info.ssi_signo == SIGCHLD)
			return false;
		/* Terminals and Slurm signal the child, too; twice does no harm with these. */
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP)
			kill(t->pid, info.ssi_signo);
	}
	return t->is_child || !t->pid || is_running(t->pid);
}

/* Tick until the process ends. A trace that cannot be written is given up with a warning; the process goes on. */
static void record(struct recorder *r, uint64_t period, const struct target *t)
{
	uint64_t next = clock_nanoseconds(CLOCK_MONOTONIC) + period;
	struct err e;
	int rc = 0;

	while (wait_for_tick(t, rc ? UINT64_MAX : next)) {
		if ((rc = recorder_tick(r, &e)))
			log_warning("%s; recording ends, the process goes on", e.text);
		while (next <= clock_nanoseconds(CLOCK_MONOTONIC))
			next += period;
	}
	if (recorder_close(r, &e) && !rc)
		log_warning("%s", e.text);
}

/* SIGXFSZ: a trace at the limit of a file's size is a write that fails. SIGCHLD: only of a child that ended. */
static int block_signals(void)
{
	static const int blocked[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXFSZ, SIGCHLD };
	struct sigaction ended = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP };
	sigset_t asked;

	sigemptyset(&asked);
	for (size_t i = 0; i < sizeof(blocked) / sizeof(blocked[0]); i++)
		sigaddset(&asked, blocked[i]);
	sigprocmask(SIG_BLOCK, &asked, NULL);
	sigaction(SIGCHLD, &ended, NULL);
	return signalfd(-1, &asked, SFD_CLOEXEC | SFD_NONBLOCK);
}

static struct recorder_request request_of(const struct record_request *r, pid_t pid)
{
	return (struct recorder_request){
		.pid = pid, .waits_for_exec = !r->pid, .set = r->set, .period = SECOND / r->hz,
		.output = r->output ? r->output : default_output(pid), .is_live = r->is_live,
	};
}

static int record_process(const struct record_request *request, struct err *e)
{
	struct recorder_request how = request_of(request, request->pid);
	struct target t = { .pid = request->pid };
	struct recorder *r;

	if (!(r = recorder_new(&how, e)))
		return -1;
	if (recorder_begin(r, e)) {
		recorder_free(r);
		return -1;
	}
	t.signals = block_signals();
	record(r, how.period, &t);
	return 0;
}

static int record_command(const struct record_request *request, int *status, struct err *e)
{
	struct target t = { .is_child = true };
	struct recorder_request how;
	struct recorder *r;
	struct child child = {0};

	if (child_start(&child, request, e))
		return -1;
	t.pid = child.pid;
	t.signals = block_signals();
	how = request_of(request, t.pid);
	r = recorder_new(&how, e);
	/* A trace is worth its file only if the command runs. */
	if (child_go(&child, request)) {
		if (r && recorder_begin(r, e) == 0) {
			record(r, how.period, &t);
			r = NULL;
		} else {
			log_warning("not recorded: %s", e->text);
			wait_for_tick(&t, UINT64_MAX);
		}
	}
	recorder_free(r);
	*status = child_status(t.pid);
	return 0;
}

int record_run(const struct record_request *r, int *status, struct err *e)
{
	return r->command.n ? record_command(r, status, e) : record_process(r, e);
}

int cmd_record(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { RECORD_DEFAULTS };
	const char *rank = getenv("SLURM_PROCID");

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	if (strcmp(rank ? rank : "0", "0"))
		log_set_level("warning");
	return record_run(&a.record, &c->status, e);
}
