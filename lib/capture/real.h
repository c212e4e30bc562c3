/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CAPTURE_REAL_H
#define TOPIARY_CAPTURE_REAL_H

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * The library is preloaded into every process of a job, most of which have no MPI, and some load it late and for themselves
 * (mpi4py). So it names no symbol of MPI that the linker would look for: each is found when it is first needed.
 */

/* The next function of this name after ours, or that of the MPI that the process has loaded; data. NULL when there is none. */
void *real_find(const char *name);
void *real_data(const char *name);

/* That, remembered at the place of use. Who calls our MPI_X has one of its own behind it. */
#define REAL_NAMED(function, name) ({ \
	static void *found_; \
	void *at_ = __atomic_load_n(&found_, __ATOMIC_ACQUIRE); \
	if (!at_ && !(at_ = real_find(name))) \
		abort(); \
	__atomic_store_n(&found_, at_, __ATOMIC_RELEASE); \
	(__typeof__(&function)) at_; })

/* For questions of our own, which are no other tool's affair. */
#define ASK(function) REAL_NAMED(function, "P" #function)

/*
 * A handle as a caller passes it: a pointer in Open MPI, an int in MPICH. What stands before a function of MPI takes and passes on
 * all of the register, so that a library that was built for another MPI changes nothing.
 */
typedef intptr_t handle;

/* Begin a function that stands before MPI's of this name; REAL calls what is behind it, so that other tools have their turn. */
#define WRAP(name, takes) WRAP_EXPANDED(name, takes)
#define WRAP_EXPANDED(name, takes) \
	int wrap_##name takes __asm__(#name) __attribute__((visibility("default"))); \
	int wrap_##name takes
#define REAL(name) REAL_EXPANDED(name)
#define REAL_EXPANDED(name) REAL_NAMED(wrap_##name, #name)

/* For arguments of macros that hold commas. */
#define UNPACK(...) __VA_ARGS__

#endif
