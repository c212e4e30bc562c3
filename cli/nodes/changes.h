/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_NODES_CHANGES_H
#define TOPIARY_CLI_NODES_CHANGES_H

#include <jansson.h>
#include <stdio.h>

#include "hwcmp/compare.h"

/*
 * Changes as in the registry's answers: an array of {"severity", "direction", "object", "what", "from", "to", "words"}.
 */
json_t *changes_to_json(const struct changes *c);	/* NULL when memory is short */
/* Severity, direction and words are mandatory. 0, or -1 with out untouched. */
int changes_from_json(const json_t *list, struct changes *out, struct err *e);

/* {"capacity": 1, ...} */
json_t *changes_counts(const struct changes *c);
size_t changes_count(const struct changes *c, enum severity s);

/* A severity that counts as drift: cosmetic, wiring, slow or capacity; -1 for other words. */
int drift_severity_parse(const char *name);

/* "capacity  NUMA node 3: memory 64 GiB -> 48 GiB", coloured on a terminal; control characters become spaces. */
void change_print(const struct change *c, FILE *out);

#endif
