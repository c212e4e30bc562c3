/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#include "slurm_glue.h"

#include "inner.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_NAME "select_cons_tres.so"

static int own_file(struct stat *st)
{
	Dl_info info;

	return dladdr((void *) inner_load, &info) && !stat(info.dli_fname, st) ? 0 : -1;
}

/* Only files after our own on the path: so two copies of Topiary never load each other. */
static int find_next(const char *plugindir, char path[static PATH_MAX], struct err *e)
{
	struct stat own, st;
	bool past = false;

	if (own_file(&own))
		return err_set(e, "cannot determine the path of Topiary's own plugin");
	for (const char *dir = plugindir; dir && *dir; dir += strcspn(dir, ":"), dir += *dir == ':') {
		int len = strcspn(dir, ":");

		snprintf(path, PATH_MAX, "%.*s/" FILE_NAME, len, dir);
		if (stat(path, &st))
			continue;
		if (st.st_dev == own.st_dev && st.st_ino == own.st_ino)
			past = true;
		else if (past)
			return 0;
	}
	return err_set(e, "no " FILE_NAME " of Slurm after Topiary's in PluginDir=%s", plugindir ? plugindir : "");
}

static int check_version(void *handle, const char *path, struct err *e)
{
	const uint32_t *version = dlsym(handle, "plugin_version");

	if (version && *version == SLURM_VERSION_NUMBER)
		return 0;
	return err_set(e, "%s: version %#x, but Topiary's plugin was built for %#x", path, version ? *version : 0,
		       SLURM_VERSION_NUMBER);
}

void *inner_load(const char *plugindir, const char *const names[], void *pointers[], size_t count, struct err *e)
{
	char path[PATH_MAX];
	int (*start)(void);
	void *handle;

	if (find_next(plugindir, path, e))
		return NULL;
	if (!(handle = dlopen(path, RTLD_LAZY))) {
		err_set(e, "%s", dlerror());
		return NULL;
	}
	if (check_version(handle, path, e))
		goto error;
	for (size_t i = 0; i < count; i++)
		if (!(pointers[i] = dlsym(handle, names[i]))) {
			err_set(e, "%s: no %s", path, names[i]);
			goto error;
		}
	start = (int (*)(void)) dlsym(handle, "init");
	if (start && start() != SLURM_SUCCESS) {
		err_set(e, "%s: its init() failed", path);
		goto error;
	}
	return handle;
error:
	dlclose(handle);
	return NULL;
}

void inner_unload(void *handle)
{
	int (*stop)(void) = (int (*)(void)) dlsym(handle, "fini");

	if (stop)
		stop();
	dlclose(handle);
}
