/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_CMD_PAST_H
#define TOPIARY_REGISTRY_CMD_PAST_H

#include <jansson.h>

#include "cmd_target.h"
#include "topo/tree.h"

/*
 * What the registry tells of a node's present is computed here for its past, of which it keeps the documents: in the form of its
 * answers about a node and about a node's facts, with the time as "at". NULL with an error.
 */
json_t *past_describe(const struct buf *xml, const struct tree *tree, const struct target *t, struct err *e);
json_t *past_facts(const struct tree *tree, const struct target *t, struct err *e);

#endif
