/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_NUMBERS_H
#define TOPIARY_REGISTRY_CMD_NUMBERS_H

#include "cmd.h"
#include "map/places.h"

/*
 * Fill in places->numbers: each host's from the topology in a file that `words` names, "HOSTS=FILE[;HOSTS=FILE]...", and of hosts
 * that are in none of them, or without words, as the registry has it. 0, or -1 with an error naming the host or file.
 */
int numbers_load(const struct cmd *c, const char *words, struct places *p, struct err *e);

#endif
