/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_FACTS_H
#define TOPIARY_CLI_FACTS_H

#include "cmd.h"

/* Print an array of {"object", "fact", "value"} as a table on stdout. 0 or -1. */
int facts_print(const json_t *facts, struct err *e);

#endif
