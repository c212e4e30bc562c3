/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#pragma once

#include <mpi.h>

#include "base/std.h"

/*
 * Symbols of the MPI library, resolved when first used. What is preloaded into every process of a job must not refer to
 * symbols of MPI at link time: most have no MPI, and some load it late and with RTLD_LOCAL (mpi4py). For all of
 * lib/capture and lib/reorder, here "the library".
 */

/*
 * The next function of this name after the wrapper, or that of the MPI that the process has loaded; the same for data.
 * NULL: none.
 */
void *symbol_next(const char *name);
void *symbol_data(const char *name);

/*
 * A constant of MPI's, by the symbol that Open MPI's macro refers to: SYMBOL(MPI_Datatype, "ompi_mpi_int", MPI_INT).
 */
#ifdef OPEN_MPI
#define SYMBOL(type, name, constant) ((type) symbol_data(name))
#else
#define SYMBOL(type, name, constant) (constant)
#endif

/* The library was built with the handles and constants of one ABI: calls of any other are only passed on. */
bool symbol_mpi_is_ours(void);

/*
 * Does the program, or a library of its own, refer to a function with this in its name? What is not of MPI's own
 * libraries is its own.
 */
bool symbol_in_program(const char *part);

/* symbol_next, cached at the place of use. A wrapper is only called where MPI's own function exists. */
#define REAL_NAMED(function, name) ({ \
	static void *found_; \
	void *at_ = __atomic_load_n(&found_, __ATOMIC_ACQUIRE); \
	if (!at_ && !(at_ = symbol_next(name))) \
		abort(); \
	__atomic_store_n(&found_, at_, __ATOMIC_RELEASE); \
	(__typeof__(&function)) at_; })

/* Calls of the library's own, which other profiling tools must not see. */
#define PMPI(function) REAL_NAMED(function, "P" #function)

/*
 * A handle as a caller passes it: a pointer in Open MPI, an int in MPICH. Wrappers pass the whole register on, so that
 * a library built for another MPI changes nothing.
 */
typedef intptr_t handle;

/*
 * Define the wrapper of an MPI function; REAL calls the next function of that name, so that other profiling tools see
 * the call, too.
 */
#define WRAP(name, params) WRAP_EXPANDED(name, params)
#define WRAP_EXPANDED(name, params) \
	int wrap_##name params __asm__(#name) __attribute__((visibility("default"))); \
	int wrap_##name params
#define REAL(name) REAL_EXPANDED(name)
#define REAL_EXPANDED(name) REAL_NAMED(wrap_##name, #name)

/* For macro arguments that contain commas. */
#define UNPACK(...) __VA_ARGS__
