/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_PHASE_H
#define TOPIARY_PHASE_H

/*
 * Names for the parts of a program, so that a trace of its node (topiary record, --topo-monitor) can be read part by
 * part: topiary_phase(3). Outside a recording nothing is done. May be called by all threads; never fails.
 */
#ifdef __cplusplus
extern "C" {
#endif

#define TOPIARY_PHASE_API __attribute__((visibility("default")))

/* This thread's phase begins, within those that it has begun already; the last of that name ends, with those within. */
TOPIARY_PHASE_API void topiary_phase_begin(const char *name);
TOPIARY_PHASE_API void topiary_phase_end(const char *name);

/* Something happens now. */
TOPIARY_PHASE_API void topiary_phase_mark(const char *name);

#ifdef __cplusplus
}
#endif

#endif
