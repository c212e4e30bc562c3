/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_DOCUMENTS_H
#define TOPIARY_REGISTRY_DOCUMENTS_H

#include "service.h"

/* Whole documents: what a node exports or exported, and what changed from one to the next. Each fills the reply. */
void read_topology(struct call *c);
void read_history(struct call *c);

#endif
