/* SPDX-License-Identifier: GPL-2.0-or-later
 * Copyright (C) 2026 The Topiary authors */
#ifndef TOPIARY_REGISTRY_INGEST_H
#define TOPIARY_REGISTRY_INGEST_H

#include "service.h"

/* PUT /v1/nodes/NAME/boot and .../topology. ingest_admit is asked before the body is read: 0, or -1 with the reply filled. */
int ingest_admit(struct call *c);
int ingest_admit_zstd(struct call *c);
void ingest_boot(struct call *c);
void ingest_topology(struct call *c);

#endif
