/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_SELECT_INNER_H
#define TOPIARY_SELECT_INNER_H

#include <stddef.h>

#include "base/err.h"

/*
 * Loads the plugin that this one shadows: the next file of the same name on PluginDir after this one. Looks up all of
 * names[count] into pointers[], checks that its version is ours, and calls its init. Returns the handle, or NULL with
 * nothing loaded.
 */
void *inner_load(const char *plugindir, const char *const names[], void *pointers[], size_t count, struct err *e);
void inner_unload(void *handle);

#endif
