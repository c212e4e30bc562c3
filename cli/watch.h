/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_WATCH_H
#define TOPIARY_CLI_WATCH_H

/*
 * Keep a file up to date with the registry's snapshot, polling every `interval` seconds, until SIGTERM or SIGINT ends
 * the process with status 0. The file is replaced only by a different text that slurmctld's parser accepts. An error is
 * logged once, and its end once; the file stays unchanged meanwhile.
 */
_Noreturn void watch_snapshot(const char *url, const char *path, unsigned interval);

#endif
