/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <syslog.h>

/*
 * One line on stderr for a daemon or a command. Under systemd (JOURNAL_STREAM is set) it carries the level as
 * sd-daemon(3) has it, otherwise the name and, at a terminal, a colour. Levels are those of syslog(3). Plugins log
 * through Slurm instead.
 */
void log_open(const char *name);
/* Drop messages below a level, a word of LogLevel (topiary.conf(5)): error, warning, info (the default) or debug. */
void log_set_level(const char *word);
void log_line(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
