/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_INNER_H
#define TOPIARY_SELECT_INNER_H

#include <stddef.h>

#include "base/err.h"

/*
 * Load the plugin in whose place we stand: the next file of the same name on PluginDir, after our own. All of
 * names[count] are looked up into pointers[], its version must be ours, and its init is called. The handle, or NULL
 * with nothing loaded.
 */
void *inner_load(const char *plugindir, const char *const names[], void *pointers[], size_t count, struct err *e);
void inner_unload(void *handle);

#endif
