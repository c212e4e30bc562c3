/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_CLI_PAST_H
#define TOPIARY_CLI_PAST_H

#include <jansson.h>

#include "target.h"
#include "hwxml/tree.h"

/*
 * A node in the past, computed here from the document that the registry has for that time: in the format of the
 * registry's answers about a node and about its facts, with the time as "at". NULL with an error.
 */
json_t *past_describe(const struct buf *xml, const struct tree *tree, const struct target *t, struct err *e);
json_t *past_facts(const struct tree *tree, const struct target *t, struct err *e);

#endif
