/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_SANDBOX_H
#define TOPIARY_REGISTRY_SANDBOX_H

/*
 * Give up everything but memory, the clock and the one descriptor: no other file, no new process, no network; 256 MiB, 2 s of CPU,
 * 5 s by the wall clock, after which the kernel kills. There is no way back. 0 or -1.
 */
int sandbox_enter(int fd);

#endif
