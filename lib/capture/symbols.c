/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (C) 2026 The Topiary authors */
#include "symbols.h"

#include <dlfcn.h>
#include <link.h>

/* The first of all loaded objects. */
static struct link_map *first_object(void)
{
	void *self = dlopen(NULL, RTLD_LAZY);
	struct link_map *map = NULL;

	if (self && dlinfo(self, RTLD_DI_LINKMAP, &map))
		map = NULL;
	if (self)
		dlclose(self);
	return map;
}

/* An MPI loaded with RTLD_LOCAL: the first library in which, or in whose dependencies, PMPI_Init is found. */
static void *local_mpi(void)
{
	struct link_map *map = first_object();
	void *mpi = NULL;

	for (; map; map = map->l_next) {
		if (!*map->l_name || !(mpi = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD)))
			continue;
		if (dlsym(mpi, "PMPI_Init"))
			break;
		dlclose(mpi);
	}
	return map ? mpi : NULL;
}

static void *find_symbol(void *first, const char *name)
{
	static void *local;
	void *at = dlsym(first, name), *mpi;

	if (at)
		return at;
	if (!(mpi = __atomic_load_n(&local, __ATOMIC_ACQUIRE)) && (mpi = local_mpi()))
		__atomic_store_n(&local, mpi, __ATOMIC_RELEASE);
	return mpi ? dlsym(mpi, name) : NULL;
}

void *symbol_next(const char *name)
{
	return find_symbol(RTLD_NEXT, name);
}

/* A copy relocation: the program may have its own copy of the data, which the whole process then uses. */
void *symbol_data(const char *name)
{
	return find_symbol(RTLD_DEFAULT, name);
}

bool symbol_in_program(const char *part)
{
	for (const struct link_map *map = first_object(); map; map = map->l_next) {
		const char *file = strrchr(map->l_name, '/') ?: "", *names = NULL;
		size_t n = 0;

		if (!strncmp(file, "/libmpi", 7) || !strncmp(file, "/libtopiary-", 12))
			continue;
		for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
			if (d->d_tag == DT_STRTAB)
				names = (const char *) d->d_un.d_ptr;
			else if (d->d_tag == DT_STRSZ)
				n = d->d_un.d_val;
		/* The kernel's vDSO has offsets where all others have addresses. */
		names += (uintptr_t) names < map->l_addr ? map->l_addr : 0;
		if (names && memmem(names, n, part, strlen(part)))
			return true;
	}
	return false;
}

/*
 * The standard ABI (MPI 5.0, chapter 20) is a separate library in each MPI, with the same version string as the other.
 */
static bool has_standard_abi(const void *of_mpi)
{
	Dl_info library;

	return dladdr(of_mpi, &library) && strstr(library.dli_fname, "mpi_abi");
}

bool symbol_mpi_is_ours(void)
{
	int (*version)(char *text, int *len) = (int (*)(char *, int *)) symbol_next("PMPI_Get_library_version");
	char text[MPI_MAX_LIBRARY_VERSION_STRING + 8192] = "";
	int len = 0;

	if (!version || version(text, &len) != MPI_SUCCESS)
		return false;
#if defined(OPEN_MPI)
	return strstr(text, "Open MPI") && !has_standard_abi((const void *) version);
#elif defined(MPI_ABI_VERSION)
	return has_standard_abi((const void *) version);
#else
	return !strstr(text, "Open MPI") && !has_standard_abi((const void *) version);
#endif
}
