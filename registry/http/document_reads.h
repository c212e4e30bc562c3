/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_HTTP_DOCUMENTS_H
#define TOPIARY_REGISTRY_HTTP_DOCUMENTS_H

#include "service.h"

/* GET of whole documents: a node's present or former topology, and its history with changes. Each fills the reply. */
void read_topology(struct call *c);
void read_history(struct call *c);

#endif
