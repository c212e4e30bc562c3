/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "record.h"

#include <assert.h>
#include <hwloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cmd.h"
#include "monitor/counters.h"
#include "monitor/source.h"
#include "trace/writer.h"

#define SECOND UINT64_C(1000000000)
#define LIVE_NS 100000000u	/* no two blocks of a live trace in less time */

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

/* --- what is recorded --- */

/*
 * Notes. One thread, which sleeps between two ticks; nothing is shared. Signals are blocked and read by a signalfd, so
 * that a tick is never cut. The command is a child that waits at a pipe until its counters are open and knows nothing
 * of them; whatever fails here ends the recording, never the command.
 */
struct recorder {
	const char *output;
	struct trace_head head;
	struct trace_writer *writer;
	struct counters counters;	/* of a process, */
	struct counters_pu node;	/* or of all there are */
	bool is_node, is_live;
	struct sources sources;		/* where all PUs of the domain are ours */
	hwloc_bitmap_t pus;
	unsigned *cpus, ncpus;		/* of the trace's PUs */
	uint64_t *values;
	uint64_t begun, last, absent, flushed;	/* times, and values */
};

static void recorder_free(struct recorder *r)
{
	if (!r)
		return;
	counters_close(&r->counters);
	counters_pu_close(&r->node);
	sources_close(&r->sources);
	hwloc_bitmap_free(r->pus);
	trace_head_free(&r->head);
	free(r->values);
	free(r->cpus);
	free(r);
}

/* What is counted, into the head. Who did not ask for a set does not miss what it lacks; who looks at a node does. */
static int recorder_open(struct recorder *r, const struct record_request *how, pid_t pid, struct err *e)
{
	struct source_request sources = { .sets = how->set, .root = "", .pus = r->pus };
	const struct monitor_event *const *events = r->is_node ? r->node.events : r->counters.events;
	struct buf why = {0}, absent = {0};
	int rc = r->is_node ? counters_pu_open(&r->node, how->set, r->cpus, r->ncpus, &why, e) :
			      counters_open(&r->counters, pid, !how->pid, how->set, r->cpus, r->ncpus, e);

	for (unsigned i = 0; i < r->ncpus; i++)
		hwloc_bitmap_set(r->pus, r->cpus[i]);
	if (rc == 0 && why.data)
		log_warning("%s", why.data + strlen("; "));
	if (rc == 0)
		rc = monitor_events_head(events, r->is_node ? r->node.nevents : r->counters.nevents, &r->head, e) ||
			sources_open(&r->sources, &sources, &r->head, &absent, e) ? -1 : 0;
	if (rc == 0 && absent.data && strcasecmp(how->set, "sw"))
		log_info("%s", absent.data + strlen("; "));
	buf_free(&why);
	buf_free(&absent);
	return rc;
}

/*
 * Prepare to count; no file is touched yet. The machine is the one that hwloc finds: in a Slurm job the job's part of
 * the node. NULL on error.
 */
static struct recorder *recorder_new(const struct record_request *how, pid_t pid, struct err *e)
{
	struct recorder *r = calloc(1, sizeof(*r));

	if (!r || !(r->pus = hwloc_bitmap_alloc())) {
		free(r);
		return err_null(e, "out of memory");
	}
	r->output = how->output ? how->output : default_output(pid);
	r->is_live = how->is_live;
	r->is_node = !pid;
	r->head.period = SECOND / how->hz;
	gethostname(r->head.node, sizeof(r->head.node) - 1);
	if (!trace_head_machine(&r->head, false, e) && (r->cpus = trace_head_cpus(&r->head, &r->ncpus, e)) &&
	    !recorder_open(r, how, pid, e))
		return r;
	recorder_free(r);
	return NULL;
}

/* Create the output; the time of the first tick begins. 0, or -1 with nothing left of it. */
static int recorder_begin(struct recorder *r, struct err *e)
{
	int fd = trace_file_create(r->output, e);
	struct err unheard;

	if (fd < 0)
		return -1;
	r->head.start = clock_nanoseconds(CLOCK_REALTIME);
	r->begun = r->last = clock_nanoseconds(CLOCK_MONOTONIC);
	r->writer = trace_writer_new(fd, r->output, &r->head, e);
	if (r->writer && (r->values = calloc(r->head.columns, sizeof(*r->values))))
		return 0;
	if (r->writer) {
		err_set(e, "out of memory");
		trace_writer_close(r->writer, &unheard);
	}
	trace_file_discard(r->output);
	return -1;
}

/* Read the counters into one tick, of the time since the last. 0 or -1. */
static int recorder_tick(struct recorder *r, struct err *e)
{
	uint64_t now = clock_nanoseconds(CLOCK_MONOTONIC);

	assert(r->values && now >= r->last);
	if (now == r->last)
		return 0;
	if (r->is_node)
		counters_pu_read(&r->node, now - r->last, r->values);
	else
		r->absent += counters_read(&r->counters, r->values);
	sources_read(&r->sources, &r->head, now - r->last, r->values);
	r->last = now;
	if (trace_writer_tick(r->writer, now - r->begun, r->values, e))
		return -1;
	if (!r->is_live || now - r->flushed < LIVE_NS)
		return 0;
	r->flushed = now;
	return trace_writer_flush(r->writer, e);
}

/*
 * One last tick, if the last one wrote well; then complete the file, log what it holds, free. A file without any tick
 * is removed. 0 or -1.
 */
static int recorder_close(struct recorder *r, struct err *e)
{
	int rc = recorder_tick(r, e) || trace_writer_flush(r->writer, e) ? -1 : 0;
	bool is_empty = trace_writer_is_empty(r->writer);

	if (trace_writer_close(r->writer, e) || rc)
		rc = -1;
	if (is_empty)
		trace_file_discard(r->output);
	if (rc == 0) {
		log_info("%s: recorded %u event%s of %u PU%s for %.1f s", r->output, r->head.nevents,
			 PLURAL(r->head.nevents), r->head.pus, PLURAL(r->head.pus), (r->last - r->begun) * 1e-9);
		if (r->absent)
			log_warning("%s: %llu values are absent: their counters gave impossible values, or others used "
				    "them", r->output, (unsigned long long) r->absent);
	}
	recorder_free(r);
	return rc;
}

/* --- the command --- */

/* The file of the phases that the command marks: beside the trace, whatever directory it changes to. NULL: none. */
static char *phases_path(const struct record_request *r, pid_t pid)
{
	const char *output = r->output ? r->output : default_output(pid);
	char *file = r->has_no_phases ? NULL : trace_path_beside(output, ".phases");
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

int record_child_status(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILURE;
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
static void record(struct recorder *r, const struct target *t)
{
	uint64_t period = r->head.period, next = clock_nanoseconds(CLOCK_MONOTONIC) + period;
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

int record_run(const struct record_request *request, int *status, struct err *e)
{
	struct target t = { .pid = request->pid };
	struct recorder *r;

	if (request->command.n) {
		struct child child = {0};
		int go[2], failed[2];

		if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC) || (child.pid = fork()) < 0)
			return err_set(e, "%s: %s", *request->command.list, strerror(errno));
		close(go[child.pid ? 0 : 1]);
		close(failed[child.pid ? 1 : 0]);
		if (!child.pid) {
			char **command = request->command.list, *phases = phases_path(request, getpid());
			int error;

			read_byte(go[0]);
			if (phases)
				setenv("TOPIARY_PHASES", phases, 1);
			else
				unsetenv("TOPIARY_PHASES");
			execvp(*command, command);
			error = errno;
			log_error("%s: %s", *command, strerror(error));
			file_write(failed[1], "", 1);
			_exit(error == ENOENT ? 127 : 126);
		}
		child.go = go[1];
		child.failed = failed[0];
		t = (struct target){ .pid = child.pid, .is_child = true, .signals = block_signals() };
		r = recorder_new(request, t.pid, e);
		/* A trace is worth its file only if the command runs. */
		if (child_go(&child, request)) {
			if (r && recorder_begin(r, e) == 0) {
				record(r, &t);
				r = NULL;
			} else {
				log_warning("not recorded: %s", e->text);
				wait_for_tick(&t, UINT64_MAX);
			}
		}
		recorder_free(r);
		*status = record_child_status(t.pid);
		return 0;
	}
	if (!(r = recorder_new(request, request->pid, e)) || recorder_begin(r, e)) {
		recorder_free(r);
		return -1;
	}
	t.signals = block_signals();
	record(r, &t);
	return 0;
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
