/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "real.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

/* An MPI that was loaded with RTLD_LOCAL: any library in which, or in whose needs, PMPI_Init is found. */
static void *local_mpi(void)
{
	void *self = dlopen(NULL, RTLD_LAZY), *mpi = NULL;
	struct link_map *map = NULL;

	if (!self || dlinfo(self, RTLD_DI_LINKMAP, &map))
		return NULL;
	for (; map; map = map->l_next) {
		if (!*map->l_name || !(mpi = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD)))
			continue;
		if (dlsym(mpi, "PMPI_Init"))
			break;
		dlclose(mpi);
	}
	dlclose(self);
	return map ? mpi : NULL;
}

static void *find(void *first, const char *name)
{
	static void *known;
	void *at = dlsym(first, name), *mpi;

	if (at)
		return at;
	if (!(mpi = __atomic_load_n(&known, __ATOMIC_ACQUIRE)) && (mpi = local_mpi()))
		__atomic_store_n(&known, mpi, __ATOMIC_RELEASE);
	return mpi ? dlsym(mpi, name) : NULL;
}

void *real_find(const char *name)
{
	return find(RTLD_NEXT, name);
}

/* A program may hold a copy of a library's data, which then is what all of the process uses. */
void *real_data(const char *name)
{
	return find(RTLD_DEFAULT, name);
}
