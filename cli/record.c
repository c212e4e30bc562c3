/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd.h"
#include "monitor/events.h"
#include "monitor/recorder.h"

#define HZ_MAX 1000u
#define SECOND UINT64_C(1000000000)

struct args {
	struct words words;	/* the command */
	unsigned hz, pid;
	const char *set, *output;
};

static void check_together(void *args, struct argp_state *state)
{
	struct args *a = args;

	if (!a->words.n == !a->pid)
		argp_error(state, "expected a COMMAND, or --pid");
	if (!monitor_set_exists(a->set))
		argp_error(state, "--set=%s: expected %s", a->set, monitor_sets);
}

static const struct cmd_option options[] = {
	{ "hz", 'r', "N", CMD_NUMBER(hz, 1, HZ_MAX), "Read the counters so often a second (default: 1)" },
	{ "set", 's', "SET", CMD_TEXT(set),
	  "What to count beside run time, context switches, migrations and page faults (sw, the default): cpu adds "
	  "cycles, instructions and cache misses" },
	{ "output", 'o', "FILE", CMD_TEXT(output),
	  "Write the trace here (default: topiary.JOB.STEP.RANK.trace in a Slurm step, else topiary.PID.trace)" },
	{ "pid", 'p', "PID", CMD_NUMBER(pid, 1, INT32_MAX), "Record this process, until it ends or SIGINT" },
	{0},
};

static const struct cmd_syntax syntax = {
	options, "COMMAND [ARGUMENT...]\n--pid=PID",
	"Run a command, or watch a process, and record what it does on each PU into a trace for topiary trace. The "
	"command runs, and ends, as without.",
	CMD_COMMAND(words), NULL, check_together,
};

/* --- the command --- */

struct child {
	pid_t pid;
	int go;		/* closed when the child may call exec */
};

/* Start the child, which waits. Its limits and signals are those of the caller. */
static int child_start(struct child *c, char **command, struct err *e)
{
	int go[2], error;
	char nothing;

	if (pipe2(go, O_CLOEXEC) || (c->pid = fork()) < 0)
		return err_set(e, "%s: %s", *command, strerror(errno));
	if (c->pid) {
		close(go[0]);
		c->go = go[1];
		return 0;
	}
	close(go[1]);
	while (read(go[0], &nothing, 1) < 0 && errno == EINTR)
		;
	execvp(*command, command);
	error = errno;
	log_error("%s: %s", *command, strerror(error));
	_exit(error == ENOENT ? 127 : 126);
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

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

/* Wait until a time. False when the process ended, or when a signal ends the watch of one that is not our child. */
static bool wait_for_tick(int process, int signals, pid_t child, uint64_t until)
{
	struct pollfd waits[] = { { .fd = process, .events = POLLIN }, { .fd = signals, .events = POLLIN } };
	struct signalfd_siginfo info;
	uint64_t t;

	while ((t = now()) < until) {
		struct timespec left = { (until - t) / SECOND, (until - t) % SECOND };

		if (ppoll(waits, 2, &left, NULL) < 0 && errno != EINTR)
			return false;
		if (waits[0].revents)
			return false;
		if (!waits[1].revents || read(signals, &info, sizeof(info)) != sizeof(info))
			continue;
		if (!child)
			return false;
		/* Terminals and Slurm signal the child, too; twice does no harm with these. */
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP)
			kill(child, info.ssi_signo);
	}
	return true;
}

/* Tick until the process ends. A trace that cannot be written is given up with a warning; the process goes on. */
static void record(struct recorder *r, uint64_t period, int process, int signals, pid_t child)
{
	uint64_t next = now() + period;
	struct err e;
	int rc = 0;

	while (wait_for_tick(process, signals, child, rc ? UINT64_MAX : next)) {
		if ((rc = recorder_tick(r, &e)))
			log_warning("%s; recording ends, the process goes on", e.text);
		while (next <= now())
			next += period;
	}
	if (recorder_close(r, &e) && !rc)
		log_warning("%s", e.text);
}

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

static int block_signals(sigset_t *before)
{
	sigset_t asked;

	sigemptyset(&asked);
	sigaddset(&asked, SIGINT);
	sigaddset(&asked, SIGQUIT);
	sigaddset(&asked, SIGTERM);
	sigaddset(&asked, SIGHUP);
	sigaddset(&asked, SIGUSR1);
	sigaddset(&asked, SIGUSR2);
	/* A trace at the limit of a file's size is a write that fails. */
	sigaddset(&asked, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &asked, before);
	return signalfd(-1, &asked, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int record_process(const struct args *a, struct err *e)
{
	struct recorder_request how = { a->pid, false, a->set, SECOND / a->hz, a->output };
	int process = syscall(SYS_pidfd_open, a->pid, 0);
	struct recorder *r;
	sigset_t before;

	if (process < 0)
		return err_set(e, "process %u: %s", a->pid, strerror(errno));
	how.output = a->output ? a->output : default_output(a->pid);
	if ((r = recorder_new(&how, e)))
		record(r, how.period, process, block_signals(&before), 0);
	close(process);
	return r ? 0 : -1;
}

static int record_command(struct cmd *c, const struct args *a, struct err *e)
{
	struct recorder_request how = { 0, true, a->set, SECOND / a->hz, a->output };
	struct recorder *r = NULL;
	struct child child = {0};
	sigset_t before;
	int signals, process;

	if (child_start(&child, a->words.list, e))
		return -1;
	/* Else the kernel reaps the child, and its status is lost. */
	signal(SIGCHLD, SIG_DFL);
	signals = block_signals(&before);
	process = syscall(SYS_pidfd_open, child.pid, 0);
	how.pid = child.pid;
	how.output = a->output ? a->output : default_output(child.pid);
	if (process < 0 || signals < 0)
		log_warning("not recorded: %s", strerror(errno));
	else if (!(r = recorder_new(&how, e)))
		log_warning("not recorded: %s", e->text);
	close(child.go);
	if (r)
		record(r, how.period, process, signals, child.pid);
	else if (process >= 0 && signals >= 0)
		wait_for_tick(process, signals, child.pid, UINT64_MAX);
	c->status = child_status(child.pid);
	return 0;
}

int cmd_record(struct cmd *c, int argc, char **argv, struct err *e)
{
	struct args a = { .hz = 1, .set = "sw" };
	const char *rank = getenv("SLURM_PROCID");

	if (cmd_parse(c, &syntax, &a, argc, argv, e))
		return -1;
	if (strcmp(rank ? rank : "0", "0"))
		log_set_level("warning");
	return a.pid ? record_process(&a, e) : record_command(c, &a, e);
}
