/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#pragma once


#include "base/settings.h"

/*
 * Values of topiary.conf that are right or wrong on the registry's host only: users, hosts, files. topiaryd warns of
 * them when it starts, `topiary doctor` lists them.
 */
typedef void settings_here_fn(void *user, const char *finding);
/* registry: the uid that runs topiaryd. Calls report() for each that is wrong, "Admins=bob: no such user here". */
void settings_check_here(const struct settings *s, uid_t registry, settings_here_fn *report, void *user);

/* Admins and AdminHosts: does the predicate hold for a word of the list, separated by commas and blanks? */
bool settings_list_any(const char *list, bool (*is)(void *user, const char *word), void *user);

/* DriftHook: a program that others may write would run their code as topiaryd. 0 or -1. */
int settings_check_hook(const char *path, uid_t registry, struct err *e);
