/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_WATCH_H
#define TOPIARY_REGISTRY_CMD_WATCH_H

/*
 * Keep path as the registry's snapshot is, asking every `interval` seconds, until SIGTERM or SIGINT ends the process with status 0.
 * The file is replaced only by a text that differs and that slurmctld's reader takes. A trouble is told once, and once more when it
 * is over; the file stays as it was meanwhile.
 */
_Noreturn void watch_snapshot(const char *url, const char *path, unsigned interval);

#endif
