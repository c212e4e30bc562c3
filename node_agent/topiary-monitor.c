/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors
 *
 * Notes. One thread: it waits in ppoll(2) for the next tick, an event of inotify(7) in RunDir or a signal, whose
 * handlers set a flag only. One monitor a node, by the lock of ASK_LOCK, which ends with the process. What it knows of
 * steps is in RunDir: it may be killed and started at any moment, and continues the traces that it finds.
 */
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cmd_line.h"
#include "base/log.h"
#include "base/settings.h"
#include "hwview/image.h"
#include "monitor/ask.h"
#include "monitor_metrics.h"
#include "monitor_steps.h"

#define LOOK_NS 60000000000	/* between two looks without an event */

/* Declared by libc. */
__attribute__((visibility("default"))) const char *argp_program_version = "topiary-monitor " TOPIARY_VERSION;

struct args {
	const char *config;
	bool verbose;
};

static const struct cmd_option options[] = {
	{ "config", 'c', "FILE", CMD_TEXT(config), "Read FILE instead of the usual topiary.conf" },
	{ "verbose", 'v', NULL, CMD_FLAG(verbose), "Log at level debug, whatever LogLevel is" },
	{0},
};

static const struct cmd_syntax syntax = {
	.options = options,
	.help = "Record what steps of jobs with --topo-monitor do on this node's hardware, and write metrics of the "
		"node for Prometheus if MonitorMetrics names a file (topiary.conf(5)).",
};

/* One topiary-monitor a node. The descriptor that holds the lock, or -1 with an error. */
static int lock_take(const char *run_dir, struct err *e)
{
	char path[PATH_MAX];
	int fd;

	if (mkdir(run_dir, 0755) == 0)
		log_warning("RunDir=%s: created; if it is mistyped, or its file system is not mounted, correct "
			    "topiary.conf or mount it and restart topiary-monitor", run_dir);
	else if (errno != EEXIST)
		return err_set(e, "RunDir=%s: %s", run_dir, strerror(errno));
	snprintf(path, sizeof(path), "%s/" ASK_LOCK, run_dir);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	err_set(e, "%s: %s", path, errno == EWOULDBLOCK ? "another topiary-monitor runs" : strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static volatile sig_atomic_t is_stopped, is_hung_up;

static void on_signal(int signal)
{
	if (signal == SIGHUP)
		is_hung_up = 1;
	else
		is_stopped = 1;
}

/* -1: never. */
static int64_t sooner(int64_t ns, int64_t other)
{
	return other < 0 || other > ns ? ns : other;
}

/* Signals arrive during ppoll(2) only. */
static void run(struct monitor_steps *m, struct monitor_metrics *metrics)
{
	struct pollfd p = { .fd = monitor_steps_fd(m), .events = POLLIN };
	static const int handled[] = { SIGTERM, SIGINT, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t blocked, none;
	int64_t waited = 0;	/* since the last look */

	sigemptyset(&blocked);
	sigemptyset(&none);
	for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
		sigaddset(&blocked, handled[i]);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
		sigaction(handled[i], &action, NULL);
	monitor_steps_look(m);
	while (!is_stopped) {
		int64_t ns = sooner(sooner(LOOK_NS, monitor_steps_tick(m)), monitor_metrics_tick(metrics, m));
		int n = ppoll(&p, 1, &(struct timespec){ ns / 1000000000, ns % 1000000000 }, &none);

		if (is_hung_up)
			log_warning("SIGHUP ignored: restart topiary-monitor to apply changes of topiary.conf");
		is_hung_up = 0;
		waited += n == 0 ? ns : 0;
		if (n > 0 || waited >= LOOK_NS) {
			monitor_steps_look(m);
			waited = 0;
		}
	}
}

int main(int argc, char **argv)
{
	struct args o = {0};
	struct monitor_metrics *metrics = NULL;
	struct monitor_steps *m;
	struct settings s;
	struct err e;
	int lock;

	log_open("topiary-monitor");
	cmd_line_parse(&syntax, &o, NULL, NULL, argc, argv);
	if (settings_load_named(o.config, &s, &e)) {
		log_error("%s", e.text);
		return EXIT_FAILURE;
	}
	log_set_level(o.verbose ? "debug" : s.log_level);
	image_quiet();
	if ((lock = lock_take(s.run_dir, &e)) < 0 || !(m = monitor_steps_new(s.run_dir, &e))) {
		log_error("%s", e.text);
		settings_free(&s);
		return EXIT_FAILURE;
	}
	/* Jobs are recorded without the file for Prometheus, too. */
	if (*s.monitor_metrics && !(metrics = monitor_metrics_new(&s, &e)))
		log_error("%s", e.text);
	run(m, metrics);
	monitor_metrics_free(metrics);
	monitor_steps_free(m);
	close(lock);
	settings_free(&s);
	return EXIT_SUCCESS;
}
