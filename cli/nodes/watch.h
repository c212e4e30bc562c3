/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_NODES_WATCH_H
#define TOPIARY_CLI_NODES_WATCH_H

#include "base/settings.h"

/*
 * Keep a file identical to the registry's snapshot by snapshot_replace, polling every `interval` seconds, until SIGTERM
 * or SIGINT ends the process with status 0. A file that was removed or damaged is written anew. An error is logged
 * once, and its end once; the file stays unchanged meanwhile.
 */
_Noreturn void watch_snapshot(const struct settings *s, const char *url, const char *path, unsigned interval);

#endif
