/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_NUMBERS_H
#define TOPIARY_CLI_NUMBERS_H

#include "cmd.h"
#include "map/places/places.h"

/*
 * Fill in places->numbers, the OS CPU numbers of each host: from the topology file that `words` names for it
 * ("HOSTS=FILE[;HOSTS=FILE]..."), otherwise from the registry. 0, or -1 with an error naming the host or file.
 */
int numbers_load(const struct cmd *c, const char *words, struct places *p, struct err *e);

#endif
